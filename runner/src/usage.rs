//! How much of the machine a command uses.

use std::time::{Duration, Instant};

use crate::procfs::Process;
use crate::wait::now;
use crate::{Ended, Resources};

/// How often it is looked at, unless looking takes long.
const TICK: Duration = Duration::from_millis(200);
/// Looking takes at most this part of the time.
const PART: u32 = 10;

/// Looks from time to time whether a command uses more than it may.
pub(crate) struct Watch<'w> {
    find: &'w dyn Fn() -> Vec<Process>,
    most: Resources,
    due: Option<Instant>,
}

impl<'w> Watch<'w> {
    /// `find` gives the processes of the command.
    pub(crate) fn new(find: &'w dyn Fn() -> Vec<Process>, most: Resources) -> Self {
        let has_limit = most.memory_bytes.is_some() || most.processes.is_some();
        Self {
            find,
            most,
            due: has_limit.then(|| now() + TICK),
        }
    }

    /// How long until the next look; none without a limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(now()))
    }

    /// How the command ends, if it is time to look and the command uses too much.
    pub(crate) fn look(&mut self) -> Option<Ended> {
        let begun = now();
        if self.due.is_none_or(|due| begun < due) {
            return None;
        }
        let ended = exceeds(&(self.find)(), self.most);
        self.due = Some(now() + TICK.max(begun.elapsed() * PART));
        ended
    }
}

fn exceeds(processes: &[Process], most: Resources) -> Option<Ended> {
    if most
        .processes
        .is_some_and(|most| processes.len() as u64 > most)
    {
        return Some(Ended::TooManyProcesses);
    }
    let memory = most.memory_bytes?;
    let sum = |bytes: fn(&Process) -> u64| processes.iter().map(bytes).sum::<u64>();
    // The quick count takes what a process shares with its children for its own and for theirs.
    (sum(Process::own_bytes) > memory && sum(Process::proportional_bytes) > memory)
        .then_some(Ended::TooMuchMemory)
}
