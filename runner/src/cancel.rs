//! A flag that one thread sets, and that a running command notices at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use crate::wait::wait_for;

/// Tells running commands to stop. Clones share one flag; setting it also wakes a wait in progress.
///
/// The flag is never cleared; use a new one for a new run.
#[derive(Debug, Clone)]
pub struct Cancel {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    set: AtomicBool,
    wake: OwnedFd,
}

impl Cancel {
    /// A flag that is not set. Fails only if the process has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            shared: Arc::new(Shared {
                set: AtomicBool::new(false),
                wake,
            }),
        })
    }

    /// Sets the flag. May be called any number of times, from any thread.
    pub fn set(&self) {
        self.shared.set.store(true, Ordering::SeqCst);
        // Fails only if the counter is full, and then the waiter is already awake.
        let _ = rustix::io::write(&self.shared.wake, &1_u64.to_ne_bytes());
    }

    /// Waits for `duration`, or until the flag is set; returns whether it is set.
    pub fn wait(&self, duration: Duration) -> bool {
        wait_for(self, duration);
        self.is_set()
    }

    /// Whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.shared.set.load(Ordering::SeqCst)
    }
}

/// Becomes readable once the flag is set, so that callers can poll it together with other
/// descriptors.
impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn awake(cancel: &Cancel) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut [PollFd::new(cancel, PollFlags::IN)], Some(&now)).unwrap() == 1
    }

    #[test]
    fn a_clone_that_is_set_wakes_the_original_for_good() {
        let cancel = Cancel::new().unwrap();
        assert!(!cancel.is_set() && !awake(&cancel));
        cancel.clone().set();
        cancel.set();
        assert!(cancel.is_set() && awake(&cancel) && awake(&cancel));
    }
}
