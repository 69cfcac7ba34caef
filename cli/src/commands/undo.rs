//! `code-commit undo`: every file that a run has changed, as it was before; without git.

use apply::{Force, UndoError};
use engine::undo_folders;
use serde_json::json;

use crate::args::UndoArgs;
use crate::commands::runs;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::terminal::phrases;

/// Takes the run back, as one transaction.
pub fn run(args: &UndoArgs, output: &Output) -> Result<Exit, Failure> {
    let tree = super::work_tree(&super::here()?)?;
    let lock = super::lock(&tree, output)?;
    let run = runs::find(&tree, args.run.as_deref())?;
    let force = if args.force { Force::Yes } else { Force::No };
    let undone =
        apply::undo(&lock, tree.root(), &undo_folders(&run), force).map_err(|error| match &error {
            UndoError::ChangedSince { .. } => {
                Failure::refused(error, "look at these files; --force puts them back all the same")
            }
            _ => Failure::new(Exit::TreeNotRestored, error),
        })?;
    output.object(&json!({ "run": runs::name(&run), "restored": undone.applied.changes }));
    for change in &undone.applied.changes {
        output.report(&phrases::change(change));
    }
    output.report(&format!(
        "{} files are as they were before {}",
        undone.applied.changes.len(),
        runs::name(&run)
    ));
    Ok(Exit::Done)
}
