//! Finds and kills the processes that a command left behind.
//!
//! This process is a child subreaper: a process that loses its parent becomes our child, however
//! often it forks or calls `setsid`. So a command's processes are all children that were not there
//! before, with all their descendants, except for those of another command that runs at the same time
//! (which carry its marker) and for children that another thread started in the meantime: those that we
//! started for our own work, and those that share our process group and session and do not carry the run's
//! marker.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, pidfd_open,
    pidfd_send_signal, waitid, waitpid,
};

use code_commit_dir::own_children;

use crate::Leftovers;
use crate::command::Group;
use crate::procfs::{Process, children_of, own_pid};
use crate::sandbox::Container;
use crate::wait::now;

/// How long a sweep continues while new processes appear.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The result of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Processes that were still alive and were sent SIGKILL; does not include the command itself.
    pub killed: usize,
    /// Processes that are still there: those of another user, and those that had not died when the
    /// sweep gave up (these are included in `killed`, too).
    pub left: usize,
}

/// Kills everything that is left of all commands of this process: the running one, and those that
/// ran with [`Leftovers::Keep`](crate::Leftovers::Keep). Can be called at any time from any thread.
pub fn sweep() -> Swept {
    let marks: Vec<Mark> = marks().clone();
    let mut sum = Swept::default();
    for mark in marks {
        let swept = mark.clear(BTreeSet::new());
        sum.killed += swept.killed;
        sum.left += swept.left;
    }
    sum
}

static MARKS: Mutex<Vec<Mark>> = Mutex::new(Vec::new());

fn marks() -> MutexGuard<'static, Vec<Mark>> {
    MARKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How to recognize the processes of one command.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    marker: String,
    /// The children that we had before the command started.
    before: BTreeSet<i32>,
    /// The command itself, until it has been waited for.
    root: Option<i32>,
    container: Option<Container>,
}

impl Mark {
    /// Makes this process a subreaper and records its current children.
    pub(crate) fn begin(marker: String, container: Option<Container>) -> std::io::Result<Self> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let before = if has_no_children() {
            BTreeSet::new()
        } else {
            children_of(own_pid()).into_iter().collect()
        };
        Ok(Self {
            marker,
            before,
            root: None,
            container,
        })
    }

    /// Registers the command with [`sweep`].
    pub(crate) fn started(&mut self, root: i32) {
        self.root = Some(root);
        marks().push(self.clone());
    }

    /// The command has been reaped, so its process ID may be reused. [`sweep`] forgets it or, with
    /// `Keep`, continues to search for what it started.
    pub(crate) fn waited(&mut self, leftovers: Leftovers) {
        let mut marks = marks();
        marks.retain(|mark| mark.marker != self.marker);
        self.root = None;
        if leftovers == Leftovers::Keep {
            marks.push(self.clone());
        }
    }

    /// Kills all of the command's processes, including the command itself if it has not been
    /// reaped.
    pub(crate) fn end(&self, group: Group) -> Swept {
        let found = alive(self.find());
        // As long as the group has members, its ID cannot be reused.
        let leader = self
            .root
            .filter(|root| found.iter().any(|process| process.group == *root));
        if let (Group::Own, Some(leader)) = (group, leader.and_then(Pid::from_raw)) {
            // Kills the group in one call, before anybody can fork. Failing because nobody is left
            // is fine.
            let _ = kill_process_group(leader, Signal::KILL);
        }
        self.clear(found.iter().map(|process| process.pid).collect())
    }

    /// Kills all of the command's processes repeatedly until none is left. `seen` have already been
    /// killed.
    fn clear(&self, mut seen: BTreeSet<i32>) -> Swept {
        if let Some(container) = &self.container {
            container.remove();
        }
        let end = now() + PATIENCE;
        loop {
            let found = self.find();
            let is_over = found.is_empty();
            let (dying, stuck) = kill_all(&alive(found));
            seen.extend(dying.iter().map(|(pid, _)| *pid));
            let is_late = now() >= end;
            if is_over || is_late || (dying.is_empty() && stuck > 0) {
                let killed = seen.iter().filter(|pid| Some(**pid) != self.root).count();
                return Swept {
                    killed,
                    left: stuck + if is_late { dying.len() } else { 0 },
                };
            }
            wait_for_one(&dying);
        }
    }

    /// The processes that are ours. Includes our dead children, which are reaped on the way: a
    /// child that died just now may have left a child that was not ours when the list was made, so
    /// only an empty list means that nothing is left. Dead commands are left to their owners.
    pub(crate) fn find(&self) -> Vec<Process> {
        if has_no_children() {
            return Vec::new();
        }
        let mut others = marks().clone();
        others.retain(|mark| mark.marker != self.marker);
        let commands: Vec<i32> = others
            .iter()
            .chain([self])
            .filter_map(|mark| mark.root)
            .collect();
        // Checked before listing the children, so that the list includes what a dead command had
        // started.
        let dead: Vec<i32> = commands
            .iter()
            .copied()
            .filter(|pid| is_dead_child(*pid))
            .collect();
        let own = own_children();
        let mut children = children_of(own_pid());
        children.retain(|pid| !dead.contains(pid) && !own.contains(&pid.cast_unsigned()));
        drop(own);
        let Some(harness) = Process::read(own_pid()) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for child in children.into_iter().filter_map(Process::read) {
            let is_ours = self.root == Some(child.pid) || self.owns(&child, &harness);
            if !is_ours || others.iter().any(|other| other.has_marked(&child)) {
                continue;
            }
            if child.is_dead && !commands.contains(&child.pid) {
                reap(child.pid);
            }
            with_descendants(child, &mut found);
        }
        found
    }

    /// Whether it is the command itself, or says that the command started it.
    fn has_marked(&self, child: &Process) -> bool {
        self.root == Some(child.pid)
            || child.variable(crate::RUN_MARKER).as_ref() == Some(&self.marker)
    }

    fn owns(&self, child: &Process, harness: &Process) -> bool {
        !self.before.contains(&child.pid)
            && (child.group != harness.group
                || child.session != harness.session
                || self.has_marked(child)
                || child.seccomp_filters() > harness.seccomp_filters())
    }
}

/// Certain and cheap: without any child, nothing of ours is left.
fn has_no_children() -> bool {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, peek), Err(rustix::io::Errno::CHILD))
}

/// Whether it is a child of ours that has exited and has not been reaped.
fn is_dead_child(pid: i32) -> bool {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Pid::from_raw(pid).is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), peek), Ok(Some(_))))
}

fn alive(mut processes: Vec<Process>) -> Vec<Process> {
    processes.retain(|process| !process.is_dead);
    processes
}

fn with_descendants(process: Process, found: &mut Vec<Process>) {
    let mut todo = vec![process];
    while let Some(process) = todo.pop() {
        todo.extend(
            children_of(process.pid)
                .into_iter()
                .filter_map(Process::read),
        );
        found.push(process);
    }
}

fn reap(pid: i32) {
    // Another sweep may have been faster.
    let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
}

/// Sends SIGKILL to each process; returns handles to those that will die, and counts those that we
/// may not kill.
pub(crate) fn kill_all(processes: &[Process]) -> (Vec<(i32, OwnedFd)>, usize) {
    let mut dying = Vec::new();
    let mut stuck = 0;
    for process in processes {
        match kill(process) {
            Ok(handle) => dying.push((process.pid, handle)),
            Err(rustix::io::Errno::PERM) => stuck += 1,
            Err(_) => {}
        }
    }
    (dying, stuck)
}

/// Uses a handle, and only if the process ID still refers to the same process.
fn kill(process: &Process) -> rustix::io::Result<OwnedFd> {
    let pid = Pid::from_raw(process.pid).ok_or(rustix::io::Errno::SRCH)?;
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    if !process.is_still_there() {
        return Err(rustix::io::Errno::SRCH);
    }
    pidfd_send_signal(&handle, Signal::KILL)?;
    Ok(handle)
}

/// Returns when one of them has died, but after at most 5 ms, because others may have appeared in
/// the meantime.
pub(crate) fn wait_for_one(dying: &[(i32, OwnedFd)]) {
    if dying.is_empty() {
        return;
    }
    let mut handles: Vec<_> = dying
        .iter()
        .map(|(_, handle)| PollFd::new(handle, PollFlags::IN))
        .collect();
    let soon = Timespec {
        tv_sec: 0,
        tv_nsec: 5_000_000,
    };
    // If the wait is interrupted, it is just shorter.
    let _ = poll(&mut handles, Some(&soon));
}
