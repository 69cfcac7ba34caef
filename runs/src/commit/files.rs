//! Files of a run in the project besides its changes: its record, and the log that S0 appends for the user.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use code_commit_logging::{Redactor, Stamp};
use code_commit_repo::WorkTree;
use code_commit_report::Output;

use crate::commit::plan::Task;
use crate::exit::Failure;
use crate::records::{self, NewRun};

pub(super) fn record(task: &Task, tree: &WorkTree, redactor: Redactor) -> Result<NewRun, Failure> {
    let logs = task.logs(tree.root());
    hide(tree, &logs)?;
    stays_inside(tree.root(), &logs)?;
    let name = task.folder_name(&Stamp::now().folder_name());
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
    if real.map_err(|error| Failure::refused(error, "make the folder writable"))?.starts_with(root) {
        return Ok(());
    }
    let text = format!("{} leads out of the project", logs.display());
    Err(Failure::refused(anyhow!(text), "remove the link: records are kept inside of the project"))
}

/// Creates the file that S0 appends to, since the sandbox can only protect existing files. Gives its path if
/// it was created.
pub(super) fn said_log(task: &Task, root: &Path) -> Result<Option<PathBuf>, Failure> {
    let Some(said) = task.said_log(root) else { return Ok(None) };
    let is_new = said.symlink_metadata().is_err();
    code_commit_dir::append(&said, "")
        .map_err(|error| Failure::refused(error, "it has to be a regular file"))?;
    Ok(is_new.then_some(said))
}

/// The same for a resumed run, which may have been killed before it removed the file. Gives its path if
/// nothing was written to it yet.
pub(super) fn said_log_again(task: &Task, root: &Path) -> Result<Option<PathBuf>, Failure> {
    said_log(task, root)?;
    let is_empty = |said: &PathBuf| said.symlink_metadata().is_ok_and(|found| found.len() == 0);
    Ok(task.said_log(root).filter(is_empty))
}

/// After the run: removes that file if it is empty; otherwise warns once that git will see it.
pub(super) fn keep_said_log(said: &Path, tree: &WorkTree, output: &Output) {
    let Ok(found) = said.symlink_metadata() else { return };
    if found.len() == 0 {
        let _ = std::fs::remove_file(said);
    } else if !tree.ignores(said).unwrap_or(true) {
        let name = records::name(said);
        output.warn(&format!("{name} is new and not ignored by git: add it to .gitignore"));
    }
}
