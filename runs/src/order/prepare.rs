//! Everything to check and look up before an order is carried out.

use std::path::PathBuf;

use std::path::Path;

use anyhow::anyhow;
use code_commit_dir::NEVER;
use code_commit_guard::Guard;
use code_commit_llm::Money;
use code_commit_loop_order::{FieldProblem, Inputs, proposal_schema};
use code_commit_perform::Spending;
use code_commit_repo::{Git, Head};
use code_commit_settings::{Dollars, Settings};

use crate::estimate::First;
use crate::exit::{Exit, Failure};
use crate::model::spending;
use crate::order::files;
use crate::order::plan::{OrderPlan, Shown};
use crate::order::preflight::{self, Read};
use crate::order::unfinished::branch;
use crate::order::work::{Order, Setting};
use crate::project::Project;

/// What the preflight found.
pub(super) struct Checked {
    pub(super) guard: Guard,
    /// What is checked out.
    pub(super) head: Head,
    /// What leads git into other repositories.
    pub(super) dot_gits: Vec<PathBuf>,
}

impl Order<'_> {
    /// Tells what the first prompt takes.
    pub(super) fn forecast(&self, mut plan: OrderPlan) -> Result<Exit, Failure> {
        let setting = self.setting;
        let Checked { head, .. } = self.check()?;
        let inputs = self.anew(&mut plan, head)?;
        first(&inputs).tell(&**setting.model, setting.settings, setting.host.output)
    }

    /// The preflight (S2 §6.1), the same for a new run and one that goes on; modifies nothing.
    pub(super) fn check(&self) -> Result<Checked, Failure> {
        let (tree, git, read) = (self.project.tree()?, &self.git, &self.read);
        preflight::nameable([read.path.as_path(), tree.root(), &self.out])?;
        let status = self.project.trusted.status(self.setting.settings)?;
        preflight::clean(tree, git, &status.dirty)?;
        preflight::verification(tree.root())?;
        preflight::unlocked(git)?;
        if self.setting.terms.commit {
            preflight::identity(git)?;
        }
        let guard = preflight::guard(&self.project.trusted, read, self.setting.settings)?;
        can_begin(read, tree.root(), self.setting)?;
        Ok(Checked {
            guard,
            head: git.head()?,
            dot_gits: status.dot_gits,
        })
    }

    /// What a new run works on; completes its plan.
    pub(super) fn anew(&self, plan: &mut OrderPlan, head: Head) -> Result<Inputs, Failure> {
        let (tree, read, setting) = (self.project.tree()?, &self.read, self.setting);
        plan.repo_baseline_commit = self.git.commit_of("HEAD")?.ok_or_else(|| {
            Failure::refused(
                anyhow!("the repository has no commit yet"),
                "commit what is there first",
            )
        })?;
        plan.branch = branch(head);
        let host = setting.host;
        host.output.note(&files::verification_line(tree.root()));
        files::warn_of_verification(&read.order, tree, host);
        plan.repo_tree_hash_before = self.tree_hash()?;
        let files = files::read(tree.root(), &read.order)
            .map_err(|problems| preflight::refused(&read.path, &problems))?;
        let shown = Shown {
            allowed: files.allowed,
            context: files.context,
            edits: setting.settings.edits(),
        };
        let inputs = plan.inputs(read, tree.root(), shown);
        self.holds_no_key(&inputs)?;
        Ok(inputs)
    }

    /// Refuses to send a key.
    pub(super) fn holds_no_key(&self, inputs: &Inputs) -> Result<(), Failure> {
        if !self.setting.redactor.finds_key(&inputs.first_prompt()) {
            return Ok(());
        }
        let error =
            anyhow!("the order or one of its context files contains an API key; nothing was sent");
        Err(Failure::refused(error, "take the key out of it"))
    }

    /// Reads the whole tree.
    pub(super) fn tree_hash(&self) -> Result<String, Failure> {
        code_commit_repo::stable_hash(&self.project.root, NEVER).map_err(|error| {
            Failure::refused(error, "every file of the repository must be readable")
        })
    }
}

/// The git program for the whole work tree.
pub(super) fn git(project: &Project<'_>, settings: &Settings) -> Result<Git, Failure> {
    project.trusted.under(settings).git(project.tree()?.top())
}

pub(super) fn first(inputs: &Inputs) -> First<'_> {
    let files = inputs.context.iter();
    First {
        prompt: inputs.first_prompt(),
        schema: Some(proposal_schema(inputs.form)),
        files: files
            .map(|file| (&*file.path, file.text.as_ref().map_or(0, String::len)))
            .collect(),
        remedy: "name fewer or smaller files in context_files",
    }
}

/// Problems that would end every run of this order, found before the first.
pub(super) fn can_begin(read: &Read, root: &Path, setting: &Setting<'_>) -> Result<(), Failure> {
    let settings = setting.settings;
    let mut problems = files::unfit(&read.order, root, setting.host.environment);
    let spending = spending_of(read.order.max_cost, settings);
    let price = settings
        .all_models()
        .into_iter()
        .try_for_each(|model| spending.keeps_cost(&model));
    problems.extend(price.err().map(|error| FieldProblem {
        field: "max_cost".to_owned(),
        message: error.to_string(),
    }));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(preflight::refused(&read.path, &problems))
    }
}

/// What a run of an order with this cost limit may spend.
pub(super) fn spending_of(max_cost: Option<f64>, settings: &Settings) -> Spending {
    let mut settings = settings.clone();
    let own = max_cost.and_then(|cost| Money::from_usd(cost).ok());
    let limit = &mut settings.options.limits.max_cost;
    let both = limit.map(Money::from).into_iter().chain(own);
    *limit = both.min().map(Dollars);
    spending(&settings)
}
