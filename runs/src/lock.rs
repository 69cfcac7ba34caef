//! The lock of a project, taken by every command that writes; taking it first cleans up after a killed run.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use code_commit_apply::{Lock, LockError};
use code_commit_changes::Settled;
use code_commit_repo::WorkTree;
use code_commit_report::{phrases, printable_name};
use code_commit_runner::{Containers, Orphans};
use serde::{Deserialize, Serialize};

use crate::check::traces;
use crate::driver::missing_summaries;
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::place::{state, state_of, work_tree, work_tree_if_any};
use crate::project::Project;
use crate::records;
use crate::registry::Registry;
use crate::trusted::Trusted;

/// Cleans up after a killed run: none of its processes keep writing, and the tree is in its old or its new
/// state. Leaves processes and tree alone if another run is active.
pub fn recover_in(folder: &Path, host: Host<'_>) -> Result<(), Failure> {
    // The note stays where a run ended before it could revert what its command had changed.
    if ![
        code_commit_apply::TXN_FOLDER,
        code_commit_apply::LOCK,
        UNDER_WAY,
    ]
    .iter()
    .any(|name| code_commit_repo::may_hold_state(folder, name))
    {
        return Ok(());
    }
    let tree = work_tree_if_any(folder)?;
    let state = match &tree {
        Some(tree) => state(tree)?,
        // Agents also work in folders without a repository. Transactions there are recovered by the command
        // that needs them.
        None if folder.join(code_commit_names::ours::STATE).is_dir() => state_of(folder)?,
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

impl Project<'_> {
    /// Takes the lock, and cleans up after a killed run.
    pub fn lock(&self) -> Result<Lock, Failure> {
        match self.trusted.tree() {
            Some(tree) => take(tree, self.host),
            None => take_in(&self.state()?, self.host),
        }
    }
}

/// Takes the lock of a work tree and cleans up after a killed run.
pub fn take(tree: &WorkTree, host: Host<'_>) -> Result<Lock, Failure> {
    let lock = take_in(&state(tree)?, host)?;
    recover(&lock, tree, host)?;
    Ok(lock)
}

/// Takes the lock in this folder, and ends processes left by a killed run.
pub fn take_in(state: &Path, host: Host<'_>) -> Result<Lock, Failure> {
    let lock = acquire(state).map_err(no_lock)?;
    end_orphans_of(&lock, host);
    Ok(lock)
}

/// Ends the processes that the lock's last holder left running if it was killed: without a sandbox an agent
/// outlives its harness and keeps writing.
pub(crate) fn end_orphans_of(lock: &Lock, host: Host<'_>) {
    if lock.was_abandoned() {
        end_orphans(host);
    }
}

/// Ends what killed harnesses left running, in containers or without.
pub(crate) fn end_orphans(host: Host<'_>) {
    let Orphans {
        processes,
        containers,
    } = code_commit_runner::remove_orphans(host.environment.docker_host());
    // If no daemon answers, nothing can be running in a container.
    let Containers { removed, left } = containers.unwrap_or_default();
    if processes + removed > 0 {
        host.output.note(&format!(
            "stopped the processes of a killed run; processes: {processes}, containers: {removed}"
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
    let recovery = code_commit_apply::recover(lock, tree.root()).map_err(|error| {
        let waits = state.join(code_commit_apply::TXN_FOLDER);
        let way = if matches!(error, code_commit_apply::RecoverError::OtherVersion { .. }) {
            "try again with that version"
        } else {
            "fix that and try again"
        };
        let help = format!(
            "{way}, or move {} away to keep the current files",
            waits.display()
        );
        Failure::new(Exit::TreeNotRestored, error).help(help)
    })?;
    match recovery {
        code_commit_apply::Recovery::Nothing => {}
        code_commit_apply::Recovery::RolledBack(back) => {
            host.output
                .warn("an earlier run was killed while it wrote files; its unfinished changes were undone");
            if !back.left.is_empty() {
                host.output.warn(&left_alone(&back));
            }
        }
        code_commit_apply::Recovery::Finished { applied, .. } => {
            host.output
                .warn("an earlier run was killed right after it wrote files; they are complete");
            applied
                .warnings
                .iter()
                .for_each(|warning| host.output.warn(&warning.to_string()));
        }
    }
    settle(lock, tree, host)?;
    if lock.was_abandoned() {
        code_commit_dir::sweep(&state);
        code_commit_dir::sweep(&tree.state_of_root().map_err(anyhow::Error::from)?);
        code_commit_repo::sweep_index(tree.git_dir());
        let own = [
            records::logs(tree.root()),
            records::implement_logs(tree.root()),
            // A check is listed only once its folder is there.
            state.join(records::RUNS),
        ];
        Registry::of(tree)
            .bases()?
            .iter()
            .chain(&own)
            .for_each(|base| code_commit_runner::remove_left(base));
    }
    if lock.was_abandoned()
        && let Err(error) = missing_summaries(&Project::of(tree, host))
    {
        host.output.warn(&format!("{error:#}"));
    }
    Ok(())
}

/// The note about the run whose commands may have left changes to revert. It is in the state folder, beside the
/// lock: a list of runs cannot tell which of them was resumed last.
const UNDER_WAY: &str = "under-way.json";

/// A run whose commands change a tree.
#[derive(Serialize, Deserialize)]
struct UnderWay {
    /// Relative to the top: several roots share a state folder.
    root: PathBuf,
    /// Its folder, relative to the root if it is below it.
    run: PathBuf,
}

/// Notes that commands of this run are about to start. If the harness is killed, the next command reverts
/// what the last of them changed, whichever run is the newest by then. The note gets to the disk with the record.
pub(crate) fn under_way(_lock: &Lock, tree: &WorkTree, run: &Path) -> Result<(), Failure> {
    let below = |path: &Path, above: &Path| path.strip_prefix(above).unwrap_or(path).to_owned();
    let note = UnderWay {
        root: below(tree.root(), tree.top()),
        run: below(run, tree.root()),
    };
    let state = state(tree)?;
    let write = || {
        let (path, note) = (state.join(UNDER_WAY), serde_json::to_vec(&note)?);
        if code_commit_dir::is_one_file_system(&state, run) {
            code_commit_dir::replace_with(&path, |file| file.write_all(&note))?;
        } else {
            code_commit_dir::replace(&path, &note)?;
        }
        anyhow::Ok(())
    };
    write()
        .context("cannot note which run is under way")
        .map_err(Failure::no_record)
}

/// Restores what the command of a killed run changed: it did not finish, and is run again when the run is
/// resumed.
///
/// State in the tree is there only if the git directory says that it was made here, and only a listed run is
/// believed: neither can come with a clone.
fn settle(lock: &Lock, tree: &WorkTree, host: Host<'_>) -> Result<(), Failure> {
    let state = state(tree)?;
    traces::sweep(tree, &state)?;
    let note = state.join(UNDER_WAY);
    let noted = match std::fs::read(&note) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        noted => noted.with_context(|| format!("cannot read {}", note.display()))?,
    };
    let remove = || {
        let removed = code_commit_dir::remove(&note);
        removed.with_context(|| format!("cannot remove {}", note.display()))
    };
    // Torn by a power cut before the first sync of its run.
    if noted.is_empty() || noted.contains(&0) {
        return Ok(remove()?);
    }
    let UnderWay { root, run } = serde_json::from_slice(&noted)
        .with_context(|| format!("cannot understand {}", note.display()))
        .map_err(|error| Failure::refused(error, "remove it to keep the current files"))?;
    let root = tree.top().join(root);
    if root.is_dir() {
        let tree = if root == tree.root() {
            tree.clone()
        } else {
            work_tree(&root)?
        };
        let run = root.join(run);
        if Registry::of(&tree)
            .all()?
            .iter()
            .any(|known| known.path(&root) == run)
        {
            settle_run(lock, &state, &tree, &run, host)?;
        }
    }
    Ok(remove()?)
}

fn settle_run(
    lock: &Lock,
    state: &Path,
    tree: &WorkTree,
    run: &Path,
    host: Host<'_>,
) -> Result<(), Failure> {
    let failed = |error| {
        let help = format!(
            "what was there before is in {}; fix that and try again",
            run.display()
        );
        Failure::new(Exit::TreeNotRestored, error).help(help)
    };
    let is_recorded = |set: &str| code_commit_perform::is_recorded(run, set);
    let git = Trusted::of(tree, host.environment).git(tree.root()).ok();
    let settled = code_commit_changes::settle(lock, state, tree.root(), run, git, is_recorded);
    let settled = settled.map_err(failed)?;
    tell(&settled, run, host);
    if traces::is_check(run, state) {
        return traces::put_away(tree, &records::open(run));
    }
    Ok(())
}

fn tell(settled: &Settled, run: &Path, host: Host<'_>) {
    let killed = format!(
        "{} was killed while a command of it ran",
        records::name(run)
    );
    let kept = settled
        .kept
        .as_ref()
        .map(|folder| format!("what was there is kept in {}", folder.display()));
    let restored = format!(
        "what that had changed was restored: {}",
        phrases::first(&settled.restored, NAMED)
    );
    let said = [
        Some(restored).filter(|_| !settled.restored.is_empty()),
        kept,
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    if !said.is_empty() {
        host.output.warn(&format!("{killed}; {}", said.join("; ")));
    }
}

/// Restored files named in a message.
const NAMED: usize = 5;

/// The files changed since the run was killed, and where their old content is.
fn left_alone(back: &code_commit_apply::RolledBack) -> String {
    let kept = back
        .left_in
        .as_ref()
        .map(|folder| format!("; the originals are in {}", folder.display()));
    format!(
        "changed since, so left alone: {}{}",
        printable_name(&back.left.join(", ")),
        kept.unwrap_or_default()
    )
}

pub(crate) fn no_lock(error: LockError) -> Failure {
    Failure::hinted(error, LockError::hint)
}

/// Takes the lock. A process killed while starting a build leaves its lock to the half-started child for a
/// moment, so wait for a holder that is gone.
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
