//! The lock of a project, which every command takes that writes; and what a killed run has left is put right first.

use std::path::Path;
use std::time::Duration;

use apply::{Lock, LockError};
use repo::WorkTree;
use report::{phrases, printable, printable_name};
use runner::{Containers, Orphans};

use crate::commit::late;
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::place::{state, state_of};
use crate::{records, registry};

/// Puts right what a killed run has left: no process of it goes on writing, and the tree is the old one or the new one. Where another run
/// is at work, both are that run's.
pub fn recover_in(folder: &Path, host: Host<'_>) -> Result<(), Failure> {
    if ![apply::TXN_FOLDER, apply::LOCK].iter().any(|name| repo::may_hold_state(folder, name)) {
        return Ok(());
    }
    let tree = WorkTree::at(folder).ok();
    let state = match &tree {
        Some(tree) => state(tree)?,
        // Agents work in folders without a repository, too. Transactions are found by the command that looks for one.
        None if folder.join(names::ours::STATE).is_dir() => state_of(folder)?,
        None => return Ok(()),
    };
    let lock = match acquire(&state) {
        Ok(lock) => lock,
        Err(LockError::Held { .. }) => return Ok(()),
        Err(error) => return Err(no_lock(error)),
    };
    end_orphans_of(&lock, host);
    tree.map_or(Ok(()), |tree| recover(&lock, &tree, host))
}

/// Takes the lock of a work tree and puts right what a killed run has left.
pub fn take(tree: &WorkTree, host: Host<'_>) -> Result<Lock, Failure> {
    let lock = take_in(&state(tree)?, host)?;
    recover(&lock, tree, host)?;
    Ok(lock)
}

/// Takes the lock that lies in this folder, and ends what a killed run has left running.
pub fn take_in(state: &Path, host: Host<'_>) -> Result<Lock, Failure> {
    let lock = acquire(state).map_err(no_lock)?;
    end_orphans_of(&lock, host);
    Ok(lock)
}

/// Ends what the last holder of a lock has left running, if it was killed: without a sandbox an agent outlives its harness, and goes on
/// writing.
pub(crate) fn end_orphans_of(lock: &Lock, host: Host<'_>) {
    if lock.was_abandoned() {
        end_orphans(host);
    }
}

/// What a harness that was killed has left running, in containers or without.
pub(crate) fn end_orphans(host: Host<'_>) {
    let Orphans { processes, containers } = runner::remove_orphans(host.environment.docker_host());
    // Where no daemon answers there is none that could still run anything.
    let Containers { removed, left } = containers.unwrap_or_default();
    if processes + removed > 0 {
        host.output.note(&format!(
            "ended what a killed run left behind; processes: {processes}, containers: {removed}"
        ));
    }
    if !left.is_empty() {
        let names = left.join(" ");
        host.output.warn(&format!(
            "a killed run left containers that docker does not remove; docker rm --force {names}"
        ));
    }
}

fn recover(lock: &Lock, tree: &WorkTree, host: Host<'_>) -> Result<(), Failure> {
    let state = state(tree)?;
    let recovery = apply::recover(lock, tree.root()).map_err(|error| {
        let waits = state.join(apply::TXN_FOLDER);
        let way = if matches!(error, apply::RecoverError::OtherVersion { .. }) {
            "try again with that version"
        } else {
            "fix that and try again"
        };
        let help = format!("{way}, or move {} away to keep the files as they are", waits.display());
        Failure::new(Exit::TreeNotRestored, error).help(help)
    })?;
    match recovery {
        apply::Recovery::Nothing => {}
        apply::Recovery::RolledBack(back) => {
            host.output
                .warn("an earlier run was killed while it wrote files; its unfinished changes were undone");
            if !back.left.is_empty() {
                host.output.warn(&left_alone(&back));
            }
        }
        apply::Recovery::Finished { applied, .. } => {
            host.output.warn("an earlier run was killed right after it wrote files; they are complete");
            applied.warnings.iter().for_each(|warning| host.output.warn(&printable(&warning.to_string())));
        }
    }
    settle(&state, tree, host)?;
    if lock.was_abandoned()
        && let Err(error) = late::summaries(tree)
    {
        host.output.warn(&format!("{error:#}"));
    }
    Ok(())
}

/// Puts back what the build of a run that was killed has changed: it came to no end, and is run again if the run goes on.
///
/// State in the tree may have come with a clone: it cannot say what was there before.
fn settle(state: &Path, tree: &WorkTree, host: Host<'_>) -> Result<(), Failure> {
    if state == tree.root().join(names::ours::STATE) {
        return Ok(());
    }
    let Some(newest) = registry::all(tree)?.into_iter().next() else { return Ok(()) };
    let run = newest.path(tree.root());
    let restored = perform::settle(tree.root(), &run).map_err(|error| {
        let help = format!("what was there before is in {}; fix that and try again", run.display());
        Failure::new(Exit::TreeNotRestored, error).help(help)
    })?;
    if !restored.is_empty() {
        host.output.warn(&format!(
            "{} was killed while a command of it ran; what that had changed was restored: {}; what was there is kept in its folder",
            records::name(&run),
            phrases::first(&restored, NAMED)
        ));
    }
    Ok(())
}

/// This many of the restored files are named.
const NAMED: usize = 5;

/// The files that somebody has changed since the run was killed, and where they are as they were before it.
fn left_alone(back: &apply::RolledBack) -> String {
    let kept = back.left_in.as_ref().map(|folder| format!("; as they were: {}", folder.display()));
    format!(
        "changed since, so left alone: {}{}",
        printable_name(&back.left.join(", ")),
        kept.unwrap_or_default()
    )
}

/// What to do where the lock cannot be had.
pub(crate) fn no_lock(error: LockError) -> Failure {
    let help = error.hint();
    Failure::refused(error, help)
}

/// The lock. A process that was killed while it started a build leaves its lock to the half-started child for a moment: a holder that is
/// gone is waited for.
fn acquire(state: &Path) -> Result<Lock, LockError> {
    let is_gone = |error: &LockError| matches!(error, LockError::Held { pid, .. } if !Path::new(&format!("/proc/{pid}")).exists());
    for _ in 0..20 {
        match Lock::acquire(state, "code-commit") {
            Err(error) if is_gone(&error) => std::thread::sleep(Duration::from_millis(50)),
            taken => return taken,
        }
    }
    Lock::acquire(state, "code-commit")
}
