//! `code-commit undo`: every file that a run has changed, as it was before; without git.

use apply::{Action, Force, UndoError};
use engine::undo_folders;
use serde_json::json;

use crate::args::UndoArgs;
use crate::commands::runs;
use crate::exit::{Exit, Failure};
use crate::output::{Output, printable};

/// Takes the run back, as one transaction.
pub fn run(args: &UndoArgs, output: &Output) -> Result<Exit, Failure> {
    let tree = super::work_tree(&super::here()?)?;
    let lock = super::lock(&tree, output)?;
    let run = runs::find(&tree, args.run.as_deref())?;
    let force = if args.force { Force::Yes } else { Force::No };
    let undone = apply::undo(&lock, tree.root(), &undo_folders(&run), force).map_err(|error| {
        if matches!(error, UndoError::ChangedSince { .. }) {
            return Failure::refused(error, "look at these files; --force puts them back all the same");
        }
        Failure::new(Exit::TreeNotRestored, error)
    })?;
    output.object(&json!({ "run": runs::name(&run), "restored": undone.applied.changes }));
    for change in &undone.applied.changes {
        let what = if change.action == Action::Delete { "removed" } else { "restored" };
        output.report(&format!("{what} {}", printable(&change.path)));
    }
    output.report(&format!(
        "{} files are as they were before {}",
        undone.applied.changes.len(),
        runs::name(&run)
    ));
    Ok(Exit::Done)
}
