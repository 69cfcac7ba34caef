//! An order, what all orders of one call share, and what each may spend.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use code_commit_llm::{Model, Money};
use code_commit_logging::Redactor;
use code_commit_perform::{Fault, Spending};
use code_commit_repo::{Git, WorkTree};
use code_commit_runner::Cancel;
use code_commit_settings::Settings;

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::model::spending;
use crate::order::plan::Terms;
use crate::order::preflight::Read;
use crate::site::Site;

/// What all orders of one call share, but for their keys.
#[derive(Clone, Copy)]
pub(super) struct Setting<'s> {
    pub repo: &'s WorkTree,
    pub out: &'s Path,
    pub terms: &'s Terms,
    pub host: Host<'s>,
    pub cancel: &'s Cancel,
    pub settings: &'s Settings,
    pub model: &'s Rc<dyn Model>,
    pub redactor: &'s Redactor,
    /// Whether one run was asked for by its name.
    pub goes_on: bool,
    /// Begin a new run, whatever is recorded.
    pub new: bool,
    /// Tell what the first prompt takes, and send nothing.
    pub dry_run: bool,
    /// The supervisor's name for this work.
    pub key: Option<&'s str>,
}

/// A work order, with what its run needs.
pub(crate) struct Order<'s> {
    pub(super) setting: &'s Setting<'s>,
    pub(super) site: &'s Site<'s>,
    pub(super) read: Read,
    pub(super) git: Git,
    /// The harness's own folder.
    pub(super) state: PathBuf,
    /// For run folders.
    pub(super) out: PathBuf,
    /// The run that the tree was in the middle of; since then it was restored.
    pub(super) restored: Option<PathBuf>,
}

impl Order<'_> {
    /// Reads the whole tree.
    pub(super) fn tree_hash(&self) -> Result<String, Failure> {
        code_commit_repo::stable_hash(&self.site.root, code_commit_dir::NEVER).map_err(|error| {
            Failure::refused(error, "every file of the repository must be readable")
        })
    }
}

/// What a run of an order with this cost limit may spend.
pub(super) fn spending_of(max_cost: Option<f64>, settings: &Settings) -> Spending {
    let mut settings = settings.clone();
    let own = max_cost.and_then(|cost| Money::from_usd(cost).ok());
    settings.max_cost.value = [settings.max_cost.value, own].into_iter().flatten().min();
    spending(&settings)
}

/// A tree that could not be restored to its state before this run.
pub(super) fn not_restored(fault: Fault, run: &Path) -> Failure {
    let help = format!(
        "look at git status; what the run has done is in {}",
        run.display()
    );
    Failure::new(Exit::TreeNotRestored, fault).help(help)
}
