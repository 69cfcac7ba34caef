//! Changes that no loop asked for: a reply that somebody has pasted, the files of an agent. Each leaves a record that
//! `show`, `diff` and `undo` know.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use code_commit_apply::{Action, Applied};
use code_commit_changes::BACKUP;
use code_commit_engine::Reply;
use code_commit_guard::{Configuration, Guard, Surroundings};
use code_commit_logging::{Redactor, RunFolder, Stamp};
use code_commit_names::ours::AGENT_CONFIG;
use code_commit_perform::{Fault, Rules};
use code_commit_repo::WorkTree;
use code_commit_settings::{Keys, Options};

use crate::commit::{self, leaves_tree_changed};
use crate::exit::{Exit, Failure};
use crate::gitignore::hides_agent_config;
use crate::host::Host;
use crate::registry::Registry;
use crate::{config, lock, place, preflight, records};

/// Writes files of a project under its lock, through its guard.
#[derive(Debug)]
pub struct Writer {
    /// Judges and writes.
    pub rules: Rules,
    tree: WorkTree,
    redactor: Redactor,
}

impl Writer {
    /// The project in the current folder.
    pub fn open(host: Host<'_>) -> Result<Self, Failure> {
        let tree = place::work_tree(host.here()?)?;
        let lock = lock::take(&tree, host)?;
        let settings = config::load(tree.root(), &Options::default(), host)?;
        let policy = commit::policy(&settings, tree.root(), Some(&tree));
        let guard = Guard::open(tree.root(), policy)
            .map_err(|error| Failure::refused(error, "make the folder readable"))?;
        let keys = Keys::find(host.environment, tree.root());
        Ok(Self {
            rules: Rules {
                root: tree.root().to_owned(),
                guard: guard.into(),
                lock: lock.into(),
            },
            redactor: Redactor::new(keys.exposed()),
            tree,
        })
    }

    /// The reply in the form that a model gives.
    pub fn reply(&self, text: &str) -> Reply {
        Reply {
            held_key: self.redactor.finds_key(text),
            ..Reply::of_text(text)
        }
    }

    /// Begins a record; [`settle`] ends it.
    pub fn record(&self) -> Result<RunFolder, Failure> {
        let name = format!("{}-apply", Stamp::now().folder_name());
        RunFolder::create(&base(&self.tree)?, &name, Redactor::default())
            .context("cannot keep a record")
            .map_err(|error| Failure::refused(error, "make the folder writable"))
            .and_then(|folder| {
                Registry::of(&self.tree)
                    .add(folder.path(), None)
                    .inspect_err(|_| records::discard(&folder))?;
                Ok(folder)
            })
    }
}

/// Where the pre-images of a record go.
pub fn backup(record: &RunFolder) -> PathBuf {
    record.path().join(BACKUP).join("1")
}

/// The name of the record, for `undo`; `None` if nothing was changed, and then it is gone.
pub fn settle(record: &RunFolder, applied: Option<&Applied>) -> Option<String> {
    let has_changed = applied.is_some_and(|applied| {
        applied
            .changes
            .iter()
            .any(|change| change.action != Action::None)
    });
    if !has_changed {
        records::discard(record);
        return None;
    }
    Some(records::name(record.path()))
}

/// The error of a change that could not be made.
pub fn failed(error: Fault, record: &RunFolder) -> Failure {
    if leaves_tree_changed(&error) {
        let help = format!(
            "the next command restores files that were not changed since; the old contents are in {}",
            record.path().join(BACKUP).display()
        );
        return Failure::new(Exit::TreeNotRestored, error).help(help);
    }
    records::discard(record);
    Failure::refused(error, "fix that and try again; the work tree is unchanged")
}

/// With the runs if git ignores them, otherwise in the harness's own state.
fn base(tree: &WorkTree) -> Result<PathBuf, Failure> {
    let root: &Path = tree.root();
    let around = Surroundings::find(root, Configuration::All).ok();
    let hidden = around.is_some_and(|around| hides_agent_config(&around).unwrap_or(false));
    if hidden && preflight::own_or_absent(root).is_ok() && root.join(AGENT_CONFIG).is_dir() {
        return Ok(records::logs(root));
    }
    Ok(tree.state_of_root()?.join(records::RUNS))
}
