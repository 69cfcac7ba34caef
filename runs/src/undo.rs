//! `code-commit undo`: restores every file that a run wrote or deleted; without git.

use std::path::Path;

pub use code_commit_apply::Force;

use anyhow::anyhow;
use code_commit_apply::{Action, UndoError};
use code_commit_perform::{Format, JOURNAL, UNDO, folders_to_undo};
use code_commit_report::{phrases, printable};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::life::{InTree, TakesBack};
use crate::records;
use crate::registry::Known;
use crate::site::Site;

/// Undoes the named run, or the newest, in one transaction.
pub fn run(named: Option<&str>, force: Force, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let site = Site::here(host)?;
    let lock = site.lock()?;
    let known = site.registry().find(named)?;
    let (run, row) = (known.path(&site.root), site.row(&known));
    if row.is_some_and(|row| row.facts.takes_back == TakesBack::Git) {
        return Err(with_git(&run, &known.kind(&site.root)));
    }
    let tree = site.tree()?;
    if known.is_imported() {
        let error = anyhow!("{} was made elsewhere: it changed nothing here", records::name(&run));
        return Err(Failure::nothing_to_do(error, "another run: code-commit undo RUN"));
    }
    if row.and_then(|row| (row.in_tree)(&known, &site)) == Some(InTree::Restored) {
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
        return nothing(named, &known, &site);
    }
    let undone =
        code_commit_apply::undo(&lock, tree.root(), &rounds, force).map_err(|error| failed(error, &run))?;
    site.registry().mark_undone(&run)?;
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
fn nothing(named: Option<&str>, known: &Known, site: &Site<'_>) -> Result<Exit, Failure> {
    let (run, output) = (known.path(&site.root), site.host.output);
    let name = records::name(&run);
    let is_kept = || site.row(known).is_none_or(|row| row.facts.own_summary);
    if named.is_some() && !known.undone && !is_kept() && site.is_over(known) == Some(false) {
        site.registry().mark_undone(&run)?;
        output.object(&json!({ "run": name, "restored": [] }));
        output.report(&format!("{name} changed no file; it is closed and cannot be resumed"));
        return Ok(Exit::Done);
    }
    let changed = |known: &Known| {
        let rounds = folders_to_undo(&records::open(&known.path(&site.root))).ok()?;
        (!known.undone && code_commit_apply::changed_anything(&rounds).ok()?).then(|| known.path(&site.root))
    };
    let older = if named.is_none() { site.registry().all()?.iter().find_map(changed) } else { None };
    let help = older.map_or_else(
        || "a run whose replies were all refused, or that was rolled back, has nothing to undo".to_owned(),
        |older| format!("the newest run that did: code-commit undo {}", records::name(&older)),
    );
    Err(Failure::nothing_to_do(anyhow!("there is no record of what {name} may have changed"), help))
}

/// Agents write to the tree themselves: no texts of before are kept that could be put back.
fn with_git(run: &Path, kind: &str) -> Failure {
    let name = records::name(run);
    let what = anyhow!("{name} is a run of the {kind} loop: what its agents wrote is not kept twice");
    let help = "take it back with git: what was committed with `git revert`, what was not with `git restore`; another run: code-commit undo RUN";
    Failure::refused(what, help)
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
