//! Waiting that a signal does not cut short.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::run::now;

/// Returns when `handle` is readable, or after `limit`, or at once where it cannot be waited for.
pub(crate) fn wait_for(handle: &impl AsFd, limit: Duration) {
    // As good as for ever where there is no such moment.
    let end = now().checked_add(limit);
    loop {
        let left = end.map(|end| end.saturating_duration_since(now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        if poll(&mut [PollFd::new(handle, PollFlags::IN)], left.as_ref()) != Err(Errno::INTR) {
            return;
        }
    }
}
