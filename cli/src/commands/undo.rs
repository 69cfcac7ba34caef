//! `code-commit undo`: every file that a run has written or deleted, as it was before; without git.

use std::path::Path;

use anyhow::anyhow;
use apply::{Action, Force, UndoError};
use logging::{Redactor, RunFolder};
use perform::{UNDO, folders_to_undo};
use report::{Output, phrases, printable};
use serde_json::json;

use crate::args::UndoArgs;
use crate::changes;
use crate::commands::{registry, runs, spec};
use crate::exit::{Exit, Failure};
use crate::lock;
use crate::place;

/// Takes the run back, as one transaction.
pub fn run(args: &UndoArgs, output: &Output) -> Result<Exit, Failure> {
    let tree = place::work_tree(&place::here()?)?;
    let lock = lock::take(&tree, output)?;
    let known = runs::find_known(&tree, args.run.as_deref());
    if let Some(past) = spec::history::meant(&tree, args.run.as_deref(), &known) {
        return Err(spec::history::refuse_undo(&past));
    }
    let run = known?.path(tree.root());
    let folder = RunFolder::open(run.clone(), Redactor::default());
    let rounds = folders_to_undo(&folder)
        .map_err(|error| Failure::refused(error, "make the folder readable; it holds the old contents"))?;
    if rounds.is_empty() {
        return Err(Failure::nothing_to_do(
            anyhow!("there is no record of what {} may have changed", runs::name(&run)),
            "a run whose replies were all refused, or that was rolled back, has nothing to undo",
        ));
    }
    let force = if args.force { Force::Yes } else { Force::No };
    let undone = match apply::undo(&lock, tree.root(), &rounds, force) {
        Err(UndoError::ChangedSince { paths }) if changes::are_as_left(tree.root(), &run, &paths) => {
            apply::undo(&lock, tree.root(), &rounds, Force::Yes)
        }
        done => done,
    };
    let undone = undone.map_err(|error| failed(error, &run))?;
    registry::mark_undone(&tree, &run)?;
    undone.applied.warnings.iter().for_each(|warning| output.warn(&printable(&warning.to_string())));
    output.object(&json!({ "run": runs::name(&run), "restored": undone.applied.changes }));
    for change in &undone.applied.changes {
        let what = match change.action {
            Action::Delete => "removed",
            Action::Write => "restored",
            Action::None => "already as before:",
        };
        output.report(&format!("{what} {}", printable(&change.path)));
    }
    output.report(&format!(
        "{} before {}",
        phrases::files_as_they_were(undone.applied.changes.len()),
        runs::name(&run)
    ));
    Ok(Exit::Done)
}

/// All is put back or nothing; whichever it is, the old contents stay in the run folder.
fn failed(error: UndoError, run: &Path) -> Failure {
    let kept = run.join(UNDO);
    if matches!(error, UndoError::ChangedSince { .. }) {
        return Failure::refused(error, "look at these files; --force restores them anyway");
    }
    let help = if matches!(error, UndoError::OtherVersion { .. }) {
        format!("undo with that version; the old contents are in {}", kept.display())
    } else if matches!(error, UndoError::NoManifest { .. }) {
        format!(
            "nothing was restored; git may have the old contents, and {} has the remaining copies",
            kept.display()
        )
    } else if matches!(error, UndoError::Blocked { .. }) {
        format!("move away what is there, then undo again; the old contents are in {}", kept.display())
    } else if matches!(&error, UndoError::Apply(error) if error.leaves_tree_changed()) {
        format!(
            "the next command restores files that were not changed since; the old contents are in {}",
            kept.display()
        )
    } else {
        format!("nothing was restored; the old contents are in {}", kept.display())
    };
    Failure::new(Exit::TreeNotRestored, error).help(help)
}
