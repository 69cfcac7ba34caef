//! The processes of one git: transports are processes of their own, and would wait on for a hub that says nothing.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// The process group of a git that leads it; dropping this ends the group. SIGTERM lets git remove its locks.
#[derive(Debug)]
pub(crate) struct Group(Option<Pid>);

impl Group {
    pub(crate) fn of(child: &Child) -> Self {
        Self(
            child
                .id()
                .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)),
        )
    }

    /// The number may be another group's by now.
    pub(crate) fn has_ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.0
            .map(|leader| kill_process_group(leader, Signal::TERM));
    }
}
