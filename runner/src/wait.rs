//! The clock, and waits that signals do not cut short.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

#[expect(
    clippy::disallowed_methods,
    reason = "deadlines are kept here, by the monotonic clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns when `handle` is readable, after `limit`, or at once if it cannot be waited for.
pub(crate) fn wait_for(handle: &impl AsFd, limit: Duration) {
    // If the time overflows, wait indefinitely.
    let end = now().checked_add(limit);
    loop {
        let left = end.map(|end| end.saturating_duration_since(now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        if poll(&mut [PollFd::new(handle, PollFlags::IN)], left.as_ref()) != Err(Errno::INTR) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;

    use rustix::process::{Pid, Signal, kill_process};
    use rustix::thread::gettid;

    use super::*;

    /// Whether one of our threads sleeps in the call that waits.
    fn waits(thread: Pid) -> bool {
        let file = format!("/proc/self/task/{}/syscall", thread.as_raw_nonzero());
        let call = std::fs::read_to_string(file).unwrap_or_default();
        call.split(' ').next() == Some(&libc::SYS_ppoll.to_string())
    }

    #[track_caller]
    fn until(is_so: impl Fn() -> bool) {
        let end = now() + Duration::from_secs(20);
        while !is_so() {
            assert!(now() < end, "it never came to that");
            std::thread::yield_now();
        }
    }

    fn is_readable(handle: &impl AsFd) -> bool {
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&at_once)).unwrap() == 1
    }

    #[test]
    fn a_wait_goes_on_after_a_signal() {
        let caught = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(libc::SIGUSR1, Arc::clone(&caught)).unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        let (tell, told) = channel();
        std::thread::scope(|scope| {
            // Moved in here, so that a failure closes it and the other thread does not wait for
            // ever.
            let mut writer = writer;
            let waiter = scope.spawn(move || {
                tell.send(gettid()).unwrap();
                wait_for(&reader, Duration::MAX);
                is_readable(&reader)
            });
            let thread = told.recv().unwrap();
            until(|| waits(thread));
            // A signal for the process, which the kernel delivers to the thread with this ID if it
            // accepts signals.
            kill_process(thread, Signal::USR1).unwrap();
            until(|| caught.load(Ordering::SeqCst));
            until(|| waits(thread) || waiter.is_finished());
            // Nobody reads it if the wait was cut short.
            let _ = writer.write_all(b"x");
            assert!(
                waiter.join().unwrap(),
                "the wait was over before there was anything to read"
            );
        });
    }
}
