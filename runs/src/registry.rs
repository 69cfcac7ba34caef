//! Which runs were made here: a list in the harness's own state, which no repository can bring along.
//!
//! Run folders lie in the project, so a cloned repository could ship one: with a plan that switches the sandbox off, or with pre-images
//! that put a hook back. Only a run that stands in this list is gone on with, undone or replayed, and only with the plan it began with.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use logging::Stored;
use repo::WorkTree;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;

/// What a run was begun with, in its folder, whatever its loop.
pub const RUN_JSON: &str = "run.json";
const LIST: &str = "known-runs.json";

/// A run that was made here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its folder, relative to the root where it lies below it.
    folder: PathBuf,
    /// SHA-256 of its `run.json`; none for a run without a plan.
    plan_sha256: Option<String>,
    /// Whether it was undone: such a run cannot be gone on with.
    pub undone: bool,
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

    /// What has become of it since, as it is said behind how it ended.
    pub fn since(&self) -> &'static str {
        if self.undone { ", undone since" } else { "" }
    }

    /// An error unless the plan is the one that the run began with.
    pub(crate) fn check_plan(&self, plan: &str) -> anyhow::Result<()> {
        if self.plan_sha256.as_deref() == Some(logging::sha256_hex(plan.as_bytes()).as_str()) {
            return Ok(());
        }
        Err(anyhow!("{RUN_JSON} of {} is not what it was when the run began", self.folder.display()))
    }
}

/// Every run that was made here and is still there, the newest first.
pub fn all(tree: &WorkTree) -> Result<Vec<Known>, Failure> {
    let mut known = read(tree)?;
    known.retain(|run| run.path(tree.root()).is_dir());
    known.reverse();
    Ok(known)
}

/// Adds a run, which is then the newest, with the plan that it began with. The caller holds the lock of the tree.
pub fn add(tree: &WorkTree, folder: &Path, plan: Option<Stored>) -> Result<(), Failure> {
    let folder = folder.strip_prefix(tree.root()).unwrap_or(folder).to_owned();
    let plan_sha256 = plan.map(|plan| plan.sha256);
    let mut known = read(tree)?;
    known.retain(|run| run.folder != folder && run.path(tree.root()).is_dir());
    known.push(Known { folder, plan_sha256, undone: false });
    write(tree, &known).map_err(Failure::no_record)
}

/// Takes a run out: whatever becomes of its folder is none. The caller holds the lock of the tree.
pub(crate) fn forget(tree: &WorkTree, folder: &Path) -> Result<(), Failure> {
    let mut known = read(tree)?;
    known.retain(|run| run.path(tree.root()) != folder);
    Ok(write(tree, &known)?)
}

/// Notes that a run was undone.
pub(crate) fn mark_undone(tree: &WorkTree, folder: &Path) -> Result<(), Failure> {
    let mut known = read(tree)?;
    known.iter_mut().filter(|run| run.path(tree.root()) == folder).for_each(|run| run.undone = true);
    Ok(write(tree, &known)?)
}

/// Lists a run whose folder is about to be moved at its new place too: killed before the move or behind it, the list knows where it is. The
/// old place goes with the next run that is added.
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
        // The list is not synced with every run: a power cut may leave an empty file in its place.
        Ok(text) if text.is_empty() => Ok(Vec::new()),
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

/// Under one name until it is whole: what a killed write has left is gone with the next one.
fn write(tree: &WorkTree, known: &[Known]) -> anyhow::Result<()> {
    let write = || {
        let list = tree.state_of_root()?.join(LIST);
        let known = serde_json::to_vec_pretty(known)?;
        anyhow::Ok(dir::replace_with(&list, |file| file.write_all(&known))?)
    };
    write().context("cannot keep the list of runs")
}
