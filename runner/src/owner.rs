//! Records which harness a process or a container belongs to in its marker, so that a later harness
//! can tell whether its owner is still alive.

use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, test_kill_process};

use crate::procfs::{Process, own_pid};

/// A marker that no other command of any harness has: `PID-STARTED-NAMESPACE-COUNT`.
pub(crate) fn next_marker() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static HARNESS: OnceLock<String> = OnceLock::new();
    let harness = HARNESS.get_or_init(|| {
        let started = Process::read(own_pid()).map_or(0, |own| own.started);
        format!("{}-{started}-{}", own_pid(), namespace().unwrap_or(0))
    });
    format!("{harness}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Whether the harness that created this marker is certainly dead. A harness in another process
/// namespace cannot be judged from here, and one that we may not inspect counts as alive.
pub(crate) fn is_gone(marker: &str) -> bool {
    let numbers: Vec<u64> = marker
        .split('-')
        .map_while(|part| part.parse().ok())
        .collect();
    let [pid, started, space, _] = numbers.as_slice() else {
        return false;
    };
    if namespace() != Some(*space) || *started == 0 {
        return false;
    }
    let Some(number) = i32::try_from(*pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    match Process::read(number.as_raw_nonzero().get()) {
        Some(now) => now.started != *started || now.is_dead,
        None => test_kill_process(number) == Err(rustix::io::Errno::SRCH),
    }
}

/// The process namespace that process IDs refer to.
fn namespace() -> Option<u64> {
    std::fs::metadata("/proc/self/ns/pid")
        .ok()
        .map(|data| data.ino())
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the test makes a process that is gone"
)]
mod tests {
    use super::*;

    #[test]
    fn our_own_markers_are_all_different_and_their_owner_is_here() {
        let (one, other) = (next_marker(), next_marker());
        assert_ne!(one, other);
        assert!(!is_gone(&one) && !is_gone(&other), "{one} {other}");
    }

    #[test]
    fn a_dead_owner_is_gone_also_where_its_number_is_another_process_now() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let started = Process::read(child.id().cast_signed()).unwrap().started;
        let space = namespace().unwrap();
        child.wait().unwrap();
        assert!(is_gone(&format!("{}-{started}-{space}-0", child.id())));
        let own = own_pid();
        assert!(
            is_gone(&format!("{own}-1-{space}-0")),
            "our number, but another process had it"
        );
    }

    #[test]
    fn what_cannot_be_judged_is_not_gone() {
        let space = namespace().unwrap();
        for marker in [
            "",
            "7",
            "1-2-3",
            "x-y-z-0",
            &format!("999999999-5-{}-0", space + 1),
            &format!("0-5-{space}-0"),
        ] {
            assert!(!is_gone(marker), "{marker}");
        }
    }
}
