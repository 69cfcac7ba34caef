//! Finds what a harness that was killed by SIGKILL left running, by the marker that every command
//! carries.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use crate::procfs::{self, Process, own_pid};
use crate::reap::{PATIENCE, kill_all, wait_for_one};
use crate::wait::now;
use crate::{Containers, RUN_MARKER, owner, sandbox, temporary};

/// What was found and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphans {
    /// Processes that were killed.
    pub processes: usize,
    /// Containers, or the reason why the Docker daemon could not be asked.
    pub containers: Result<Containers, String>,
}

/// Ends everything that is left of the commands of dead harnesses, and removes their temporary
/// folders. Commands of a living harness are not touched. A process that cleared its environment is
/// not found. `docker_host` is the address of the daemon, if it is not the default.
pub fn remove_orphans(docker_host: Option<&OsStr>) -> Orphans {
    // Containers first, because their clients are among the processes.
    let containers = sandbox::remove_orphans(docker_host);
    let processes = kill_processes();
    let temporary = std::env::temp_dir();
    let usual = Path::new("/tmp");
    temporary::remove_left(usual);
    if temporary != usual {
        temporary::remove_left(&temporary);
    }
    Orphans {
        processes,
        containers,
    }
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

/// Excludes this process and its ancestors, because a user may continue to work in a session whose
/// harness is dead, and processes of other users.
fn orphans() -> Vec<Process> {
    let all = procfs::all();
    let mut spared = BTreeSet::new();
    let mut next = Some(own_pid());
    while let Some(pid) = next.filter(|pid| spared.insert(*pid)) {
        next = all
            .iter()
            .find(|process| process.pid == pid)
            .map(|process| process.parent);
    }
    let is_orphan = |process: &Process| {
        !process.is_dead
            && !spared.contains(&process.pid)
            && process.is_ours()
            && process
                .variable(RUN_MARKER)
                .is_some_and(|marker| owner::is_gone(&marker))
    };
    all.into_iter().filter(is_orphan).collect()
}
