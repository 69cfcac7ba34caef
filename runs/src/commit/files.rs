//! Files of a run in the project besides its changes: its record, and the log that S0 appends for the user.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use code_commit_logging::{Redactor, Stamp};
use code_commit_names::ours::USER_OUTPUT;
use code_commit_repo::WorkTree;
use code_commit_report::Output;

use crate::commit::plan::Which;
use crate::exit::Failure;
use crate::project::Project;
use crate::records::{self, NewRun};

pub(super) fn record(which: Which, tree: &WorkTree, redactor: Redactor) -> Result<NewRun, Failure> {
    let logs = which.logs(tree.root());
    hide(tree, &logs)?;
    stays_inside(tree.root(), &logs)?;
    let name = which.folder_name(&Stamp::now().folder_name());
    NewRun::create(&logs, &name, redactor, "make the folder writable")
}

/// Hides our untracked files from git. A folder that existed before is left to its owner.
fn hide(tree: &WorkTree, logs: &Path) -> Result<(), Failure> {
    let is_made_here = logs.parent() == Some(tree.root()) && std::fs::create_dir(logs).is_ok();
    if !is_made_here {
        return Ok(());
    }
    code_commit_repo::hide_from_git(logs).map_err(|error| {
        // Otherwise the next run would take it for the user's.
        let _ = std::fs::remove_dir(logs);
        Failure::no_record(error)
    })
}

/// A repository may contain `logs` as a symlink: the record must not be written through it.
fn stays_inside(root: &Path, logs: &Path) -> Result<(), Failure> {
    let real = std::fs::create_dir_all(logs).and_then(|()| logs.canonicalize());
    let real = real.with_context(|| format!("cannot create {}", logs.display()));
    if real
        .map_err(|error| Failure::refused(error, "make the folder writable"))?
        .starts_with(root)
    {
        return Ok(());
    }
    let text = format!("{} points outside the project", logs.display());
    Err(Failure::refused(
        anyhow!(text),
        "remove the link: records are kept inside of the project",
    ))
}

/// The file that S0 appends the model's messages to. It exists from the beginning, since the sandbox can only
/// protect existing files. After the run an empty one is removed; otherwise a warning says once that git will see it.
pub(super) struct SaidLog {
    path: PathBuf,
    is_hidden: bool,
    output: Output,
}

impl SaidLog {
    /// Creates it; none if it is the user's own. A run that goes on may have been killed before it removed its own.
    pub(super) fn open(
        which: Which,
        project: &Project<'_>,
        goes_on: bool,
    ) -> Result<Option<Self>, Failure> {
        let Some(path) = which.said_log(&project.root) else {
            return Ok(None);
        };
        let is_new = path.symlink_metadata().is_err();
        code_commit_dir::append(&path, "")
            .map_err(|error| Failure::refused(error, "it has to be a regular file"))?;
        let is_empty = || path.symlink_metadata().is_ok_and(|found| found.len() == 0);
        let is_ours = is_new || (goes_on && is_empty());
        let around = project.trusted.surroundings()?;
        let is_hidden = around.ignores(USER_OUTPUT).unwrap_or(true);
        Ok(is_ours.then(|| Self {
            path,
            is_hidden,
            output: project.host.output.clone(),
        }))
    }
}

impl Drop for SaidLog {
    fn drop(&mut self) {
        let Ok(found) = self.path.symlink_metadata() else {
            return;
        };
        if found.len() == 0 {
            let _ = std::fs::remove_file(&self.path);
        } else if !self.is_hidden {
            let name = records::name(&self.path);
            self.output.warn(&format!(
                "{name} is new and not ignored by git: add it to .gitignore"
            ));
        }
    }
}
