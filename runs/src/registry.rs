//! The runs that were made here: a list in the harness's own state, which no repository can contain.
//!
//! Run folders are in the project, so a cloned repository could contain one: with a plan that disables the
//! sandbox, or with pre-images that restore a hook. Only listed runs are resumed, undone or replayed, and
//! only with the plan that they began with.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use code_commit_logging::Stored;
use code_commit_repo::WorkTree;
use serde::{Deserialize, Serialize};

pub use code_commit_perform::RUN_JSON;

use crate::exit::Failure;

const LIST: &str = "known-runs.json";

/// A run that was made here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its folder, relative to the root if it is below it.
    folder: PathBuf,
    /// SHA-256 of its `run.json`; `None` for a run without a plan.
    plan_sha256: Option<String>,
    /// Whether it was undone: then it cannot be resumed.
    pub undone: bool,
    /// Set for a run that was made elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) imported: Option<Imported>,
}

/// A run that was made elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Imported {
    /// Who vouches for it; `None` if nobody does.
    pub(crate) believed: Option<String>,
}

impl Known {
    /// Its folder.
    pub fn path(&self, root: &Path) -> PathBuf {
        root.join(&self.folder)
    }

    /// Whether it began with a plan; `apply` has none.
    pub(crate) fn has_plan(&self) -> bool {
        self.plan_sha256.is_some()
    }

    /// Its status since it ended, appended to the outcome.
    pub fn since(&self) -> &'static str {
        match (&self.imported, self.undone) {
            (Some(_), _) => ", imported",
            (None, true) => ", undone since",
            (None, false) => "",
        }
    }

    /// Where it was made, and who vouches for it.
    pub fn belief(&self) -> String {
        match self.imported.as_ref().map(|imported| imported.believed.as_deref()) {
            None => "made here".to_owned(),
            Some(Some("--trust")) => "imported; believed because of --trust".to_owned(),
            Some(Some(who)) => format!("imported; signed by {who}"),
            Some(None) => "imported; nobody vouches for it".to_owned(),
        }
    }

    /// Whether it was made elsewhere.
    pub fn is_imported(&self) -> bool {
        self.imported.is_some()
    }

    /// Whether its plan and its verdict count: it was made here, or somebody vouches for it.
    pub(crate) fn is_believed(&self) -> bool {
        self.imported.as_ref().is_none_or(|imported| imported.believed.is_some())
    }

    /// Who vouches for a run that was made elsewhere.
    pub(crate) fn vouched_for(&self) -> Option<String> {
        self.imported.as_ref()?.believed.clone()
    }

    /// Refuses a plan that differs from the one that the run began with.
    pub(crate) fn check_plan(&self, plan: &str) -> anyhow::Result<()> {
        if self.plan_sha256.as_deref() == Some(code_commit_logging::sha256_hex(plan.as_bytes()).as_str()) {
            return Ok(());
        }
        Err(anyhow!("{RUN_JSON} of {} is not what it was when the run began", self.folder.display()))
    }
}

/// Every run that was made here and still exists, newest first.
pub fn all(tree: &WorkTree) -> Result<Vec<Known>, Failure> {
    let mut known = with_imported(tree)?;
    known.retain(|run| !run.is_imported());
    Ok(known)
}

/// The same with the runs that were imported.
pub fn with_imported(tree: &WorkTree) -> Result<Vec<Known>, Failure> {
    let mut known = read(tree)?;
    known.retain(|run| run.path(tree.root()).is_dir());
    known.reverse();
    Ok(known)
}

/// The folders that hold runs on the list, and those that held one when a command was killed.
pub(crate) fn bases(tree: &WorkTree) -> Result<BTreeSet<PathBuf>, Failure> {
    let bases = read(tree)?.into_iter().filter_map(|run| Some(run.path(tree.root()).parent()?.to_owned()));
    Ok(bases.collect())
}

/// Whether the run in this folder was made here. A run of another clone may be in the place of one that was.
pub(crate) fn knows(tree: &WorkTree, folder: &Path) -> Result<bool, Failure> {
    let plan = code_commit_dir::read(&folder.join(RUN_JSON), u64::MAX, code_commit_dir::Links::Refused)
        .ok()
        .flatten();
    let sha256 = plan.map(|plan| code_commit_logging::sha256_hex(&plan));
    Ok(read(tree)?
        .iter()
        .any(|run| !run.is_imported() && run.path(tree.root()) == folder && run.plan_sha256 == sha256))
}

/// Adds a run as the newest, with its plan. The caller holds the lock of the tree.
pub fn add(tree: &WorkTree, folder: &Path, plan: Option<Stored>) -> Result<(), Failure> {
    put(tree, folder, plan, None)
}

/// The same for a run that was made elsewhere.
pub(crate) fn import(
    tree: &WorkTree,
    folder: &Path,
    plan: Stored,
    imported: Imported,
) -> Result<(), Failure> {
    put(tree, folder, Some(plan), Some(imported))
}

fn put(
    tree: &WorkTree,
    folder: &Path,
    plan: Option<Stored>,
    imported: Option<Imported>,
) -> Result<(), Failure> {
    let folder = folder.strip_prefix(tree.root()).unwrap_or(folder).to_owned();
    let plan_sha256 = plan.map(|plan| plan.sha256);
    let mut known = read(tree)?;
    known.retain(|run| run.folder != folder && run.path(tree.root()).is_dir());
    known.push(Known { folder, plan_sha256, undone: false, imported });
    let is_begun = known.last().is_some_and(|run| run.imported.is_none() && run.has_plan());
    let written = if is_begun { write_before_begin(tree, &known) } else { write(tree, &known) };
    written.map_err(Failure::no_record)
}

/// Removes a run from the list; its folder then no longer counts as a run. The caller holds the lock of the
/// tree.
pub(crate) fn forget(tree: &WorkTree, folder: &Path) -> Result<(), Failure> {
    let mut known = read(tree)?;
    known.retain(|run| run.path(tree.root()) != folder);
    Ok(write(tree, &known)?)
}

/// Notes who vouches for a run that was made elsewhere.
pub(crate) fn believe(tree: &WorkTree, folder: &Path, believed: Option<&String>) -> Result<(), Failure> {
    let mut known = read(tree)?;
    let found = known.iter_mut().find(|run| run.path(tree.root()) == folder);
    found.into_iter().for_each(|run| run.imported = Some(Imported { believed: believed.cloned() }));
    Ok(write(tree, &known)?)
}

pub(crate) fn mark_undone(tree: &WorkTree, folder: &Path) -> Result<(), Failure> {
    let mut known = read(tree)?;
    known.iter_mut().filter(|run| run.path(tree.root()) == folder).for_each(|run| run.undone = true);
    Ok(write(tree, &known)?)
}

/// Also lists a run under the path that its folder is about to be moved to, so that the list is right if the
/// harness is killed before or after the move. Adding the next run removes the old path.
pub(crate) fn will_move(tree: &WorkTree, from: &Path, to: &Path) -> Result<(), Failure> {
    let mut known = read(tree)?;
    let folder = to.strip_prefix(tree.root()).unwrap_or(to);
    let moved = known.iter().cloned().enumerate().find(|(_, run)| run.path(tree.root()) == from);
    if let Some((at, run)) = moved {
        known.insert(at, Known { folder: folder.to_owned(), ..run });
    }
    Ok(write(tree, &known)?)
}

fn read(tree: &WorkTree) -> Result<Vec<Known>, Failure> {
    let path = tree.state_of_root()?.join(LIST);
    match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text)
            .with_context(|| format!("cannot understand {}", path.display()))
            .map_err(|error| {
                Failure::refused(error, "remove it; the runs that it lists can then only be read by hand")
            }),
        Err(none) if none.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => {
            let error = anyhow::Error::from(error).context(format!("cannot read {}", path.display()));
            Err(Failure::refused(error, "see that it is a file of yours"))
        }
    }
}

/// A run that is not on the list on disk could not be resumed after a power cut, and would be paid for again.
fn write(tree: &WorkTree, known: &[Known]) -> anyhow::Result<()> {
    let write = || {
        let list = tree.state_of_root()?.join(LIST);
        anyhow::Ok(code_commit_dir::replace(&list, &serde_json::to_vec_pretty(known)?)?)
    };
    write().context("cannot keep the list of runs")
}

/// The same; the name of the new list is synced with the folder, when the run is noted as under way.
fn write_before_begin(tree: &WorkTree, known: &[Known]) -> anyhow::Result<()> {
    let write = || {
        let list = tree.state_of_root()?.join(LIST);
        let known = serde_json::to_vec_pretty(known)?;
        let fill = |file: &mut fs::File| file.write_all(&known).and_then(|()| file.sync_all());
        anyhow::Ok(code_commit_dir::replace_with(&list, fill)?)
    };
    write().context("cannot keep the list of runs")
}
