//! `code-commit undo`: restores every file that a run wrote or deleted; without git.

use std::path::Path;

pub use code_commit_apply::Force;

use anyhow::anyhow;
use code_commit_apply::{Action, UndoError};
use code_commit_perform::{Format, JOURNAL, Past, UNDO, folders_to_undo};
use code_commit_repo::WorkTree;
use code_commit_report::{Output, phrases, printable};
use serde_json::json;

use crate::commit::run::can_go_on;
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::lock;
use crate::order::recorded::Recorded;
use crate::place;
use crate::registry::Known;
use crate::{order, records, registry, spec};

/// Undoes the named run, or the newest, in one transaction.
pub fn run(named: Option<&str>, force: Force, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let tree = place::work_tree(place::here(host)?)?;
    let lock = lock::take(&tree, host)?;
    let known = records::find_known(&tree, named);
    if let Some(past) = spec::history::meant(&tree, named, &known) {
        return Err(spec::history::refuse_undo(&past));
    }
    let known = known?;
    let run = known.path(tree.root());
    if known.is_imported() {
        let error = anyhow!("{} was made elsewhere: it changed nothing here", records::name(&run));
        return Err(Failure::nothing_to_do(error, "another run: code-commit undo RUN"));
    }
    if order::is_restored(&run, &place::state(&tree)?)? {
        let error = anyhow!("{} left nothing: the tree was restored already", records::name(&run));
        return Err(Failure::nothing_to_do(error, "to go on with it: code-commit resume"));
    }
    let folder = records::open(&run);
    Format::same(&run).map_err(|error| {
        let kept = run.join(UNDO);
        let help = format!(
            "the version that made it can undo it; or restore the files with git, or from {}",
            kept.display()
        );
        Failure::refused(error, help)
    })?;
    if known.has_plan() && run.join(UNDO).is_dir() && !run.join(JOURNAL).is_file() {
        let error =
            anyhow!("the journal of {} is gone, so nothing says what may be undone", records::name(&run));
        return Err(Failure::refused(error, format!("the old contents are in {}", run.join(UNDO).display())));
    }
    let rounds = folders_to_undo(&folder).map_err(|error| {
        Failure::refused(
            error,
            format!("nothing was restored; the old contents are in {}", run.join(UNDO).display()),
        )
    })?;
    // A set that cannot be read may have changed something; the undo says what it lacks.
    if !code_commit_apply::changed_anything(&rounds).unwrap_or(true) {
        return nothing(named, &known, &tree, output);
    }
    let undone =
        code_commit_apply::undo(&lock, tree.root(), &rounds, force).map_err(|error| failed(error, &run))?;
    registry::mark_undone(&tree, &run)?;
    undone.applied.warnings.iter().for_each(|warning| output.warn(&printable(&warning.to_string())));
    output.object(&json!({ "run": records::name(&run), "restored": undone.applied.changes }));
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
        records::name(&run)
    ));
    Ok(Exit::Done)
}

/// The run changed nothing. If it was named and could go on, it is closed, so that it does not.
fn nothing(named: Option<&str>, known: &Known, tree: &WorkTree, output: &Output) -> Result<Exit, Failure> {
    let run = known.path(tree.root());
    let name = records::name(&run);
    let goes_on = || Past::read(&run).is_ok_and(|past| can_go_on(&past));
    if named.is_some() && !known.undone && !Recorded::is_in(&run) && goes_on() {
        registry::mark_undone(tree, &run)?;
        output.object(&json!({ "run": name, "restored": [] }));
        output.report(&format!("{name} changed no file; it is closed and cannot be resumed"));
        return Ok(Exit::Done);
    }
    let changed = |known: &Known| {
        let rounds = folders_to_undo(&records::open(&known.path(tree.root()))).ok()?;
        (!known.undone && code_commit_apply::changed_anything(&rounds).ok()?).then(|| known.path(tree.root()))
    };
    let older = if named.is_none() { registry::all(tree)?.iter().find_map(changed) } else { None };
    let help = older.map_or_else(
        || "a run whose replies were all refused, or that was rolled back, has nothing to undo".to_owned(),
        |older| format!("the newest run that did: code-commit undo {}", records::name(&older)),
    );
    Err(Failure::nothing_to_do(anyhow!("there is no record of what {name} may have changed"), help))
}

/// Either everything was restored or nothing; in both cases the old contents stay in the run folder.
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
