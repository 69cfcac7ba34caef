//! Finds and kills what a command left behind.
//!
//! This process is a child subreaper: whatever loses its parent becomes our child, however often it
//! forks or calls `setsid`. What is ours is then every child that was not there before, with all
//! below it, except children that another thread started in the plain way meanwhile (they share
//! our process group and session and do not carry the run's marker).

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, pidfd_open,
    pidfd_send_signal, waitid, waitpid,
};

use crate::Leftovers;
use crate::procfs::{Process, children_of};
use crate::run::now;
use crate::sandbox::Container;
use crate::spawn::Group;

/// How long a sweep goes on while something still appears.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// What a sweep found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Processes that were still alive and got a SIGKILL; the command itself is not among them.
    pub killed: usize,
    /// Processes that are still there: those of another user, and those that had not died when the sweep gave up (then in `killed` too).
    pub left: usize,
}

/// Kills, at once and from any thread, whatever is left of every command of this process: of the
/// one that runs and of those that ran with [`Leftovers::Keep`](crate::Leftovers::Keep).
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

/// How to know the processes of one command.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    marker: String,
    /// Children that we had before the command was started.
    before: BTreeSet<i32>,
    /// The command itself, until it has been waited for.
    root: Option<i32>,
    container: Option<Container>,
}

impl Mark {
    /// Makes this process a subreaper and notes what it has for children now.
    pub(crate) fn begin(marker: String, container: Option<Container>) -> std::io::Result<Self> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let before =
            if has_no_children() { BTreeSet::new() } else { children_of(own_pid()).into_iter().collect() };
        Ok(Self { marker, before, root: None, container })
    }

    /// From now on [`sweep`] knows of this command.
    pub(crate) fn started(&mut self, root: i32) {
        self.root = Some(root);
        marks().push(self.clone());
    }

    /// The command has been waited for: its number may soon be another's. [`sweep`] forgets it, or,
    /// with `Keep`, goes on looking for what it started.
    pub(crate) fn waited(&mut self, leftovers: Leftovers) {
        let mut marks = marks();
        marks.retain(|mark| mark.marker != self.marker);
        self.root = None;
        match leftovers {
            Leftovers::Sweep => {}
            Leftovers::Keep => marks.push(self.clone()),
        }
    }

    /// Kills the command, if it has not been waited for, and all of its processes.
    pub(crate) fn end(&self, group: Group) -> Swept {
        let found = alive(self.find());
        // While somebody is in the group, its number means no other.
        let leader = self.root.filter(|root| found.iter().any(|process| process.group == *root));
        if let (Group::Own, Some(leader)) = (group, leader.and_then(Pid::from_raw)) {
            // At one stroke, before anybody can fork; fails where nobody is left, which is fine.
            let _ = kill_process_group(leader, Signal::KILL);
        }
        self.clear(found.iter().map(|process| process.pid).collect())
    }

    /// Kills all of the command's processes, again and again until none is left. `seen` are known
    /// to have been killed already.
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
                return Swept { killed, left: stuck + if is_late { dying.len() } else { 0 } };
            }
            wait_for_one(&dying);
        }
    }

    /// What there is of ours. Our own dead children are part of it and are waited for on the way: one
    /// that died just now may have left a child that was not ours when the list was made, so only
    /// an empty list means that nothing is left. Dead commands are left to their owners.
    fn find(&self) -> Vec<Process> {
        if has_no_children() {
            return Vec::new();
        }
        let commands: Vec<i32> = marks().iter().chain([self]).filter_map(|mark| mark.root).collect();
        // Looked at before the children are listed: what a dead command had started is among them.
        let dead: Vec<i32> = commands.iter().copied().filter(|pid| is_dead_child(*pid)).collect();
        let mut children = children_of(own_pid());
        children.retain(|pid| !dead.contains(pid));
        let Some(harness) = Process::read(own_pid()) else { return Vec::new() };
        let mut found = Vec::new();
        for child in children.into_iter().filter_map(Process::read) {
            if self.root != Some(child.pid) && !self.owns(&child, &harness) {
                continue;
            }
            if child.is_dead && !commands.contains(&child.pid) {
                reap(child.pid);
            }
            with_descendants(child, &mut found);
        }
        found
    }

    fn owns(&self, child: &Process, harness: &Process) -> bool {
        !self.before.contains(&child.pid)
            && (child.group != harness.group
                || child.session != harness.session
                || child.variable(crate::RUN_MARKER).as_ref() == Some(&self.marker)
                || child.seccomp_filters() > harness.seccomp_filters())
    }
}

/// Certain and cheap: no child at all, so nothing of ours is left.
fn has_no_children() -> bool {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, peek), Err(rustix::io::Errno::CHILD))
}

/// Whether it is a child of ours that has exited and was not waited for yet.
fn is_dead_child(pid: i32) -> bool {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Pid::from_raw(pid).is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), peek), Ok(Some(_))))
}

fn alive(mut processes: Vec<Process>) -> Vec<Process> {
    processes.retain(|process| !process.is_dead);
    processes
}

pub(crate) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn with_descendants(process: Process, found: &mut Vec<Process>) {
    let mut todo = vec![process];
    while let Some(process) = todo.pop() {
        todo.extend(children_of(process.pid).into_iter().filter_map(Process::read));
        found.push(process);
    }
}

fn reap(pid: i32) {
    // Another sweep may have been quicker.
    let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
}

/// Sends SIGKILL to each; gives what will die, and counts what we may not kill.
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

/// Through a handle, and only if the number still means the same process.
fn kill(process: &Process) -> rustix::io::Result<OwnedFd> {
    let pid = Pid::from_raw(process.pid).ok_or(rustix::io::Errno::SRCH)?;
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    if !process.is_still_there() {
        return Err(rustix::io::Errno::SRCH);
    }
    pidfd_send_signal(&handle, Signal::KILL)?;
    Ok(handle)
}

/// Returns when one of them has died, or after 5 ms: others may have come meanwhile.
pub(crate) fn wait_for_one(dying: &[(i32, OwnedFd)]) {
    if dying.is_empty() {
        return;
    }
    let mut handles: Vec<_> = dying.iter().map(|(_, handle)| PollFd::new(handle, PollFlags::IN)).collect();
    let soon = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
    // An interrupted wait is a short one.
    let _ = poll(&mut handles, Some(&soon));
}
