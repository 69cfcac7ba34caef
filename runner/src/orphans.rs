//! What a harness that was killed by SIGKILL has left running, found by the marker that every command carries.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use crate::procfs::{self, Process};
use crate::reap::{PATIENCE, kill_all, own_pid, wait_for_one};
use crate::run::now;
use crate::{RUN_MARKER, owner, sandbox, temporary};

/// What was found and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphans {
    /// Processes that were killed.
    pub processes: usize,
    /// Containers, or why the Docker daemon could not be asked.
    pub containers: Result<Containers, String>,
}

/// What became of the containers that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Containers {
    /// So many are gone.
    pub removed: usize,
    /// The names of those that the daemon did not remove.
    pub left: Vec<String>,
}

/// Ends what is left of the commands of every harness that is gone; those of a harness that lives are not touched. A process
/// that has wiped its environment is not found. Its folders for temporary files go, too. `docker_host` is where the daemon listens, if not in the usual place.
pub fn remove_orphans(docker_host: Option<&OsStr>) -> Orphans {
    // First the containers: their clients are among the processes.
    let containers = sandbox::remove_orphans(docker_host);
    let processes = kill_processes();
    let temporary = std::env::temp_dir();
    let usual = Path::new("/tmp");
    temporary::remove_left(usual);
    if temporary != usual {
        temporary::remove_left(&temporary);
    }
    Orphans { processes, containers }
}

fn kill_processes() -> usize {
    let mut killed = BTreeSet::new();
    let end = now() + PATIENCE;
    loop {
        let (dying, _) = kill_all(&orphans());
        killed.extend(dying.iter().map(|(pid, _)| *pid));
        if dying.is_empty() || now() >= end {
            return killed.len();
        }
        wait_for_one(&dying);
    }
}

/// Not ourselves and what we were started from: a person may work on in a session whose harness is gone. Nor what another user has
/// started.
fn orphans() -> Vec<Process> {
    let all = procfs::all();
    let mut spared = BTreeSet::new();
    let mut next = Some(own_pid());
    while let Some(pid) = next.filter(|pid| spared.insert(*pid)) {
        next = all.iter().find(|process| process.pid == pid).map(|process| process.parent);
    }
    let is_orphan = |process: &Process| {
        !process.is_dead
            && !spared.contains(&process.pid)
            && process.is_ours()
            && process.variable(RUN_MARKER).is_some_and(|marker| owner::is_gone(&marker))
    };
    all.into_iter().filter(is_orphan).collect()
}
