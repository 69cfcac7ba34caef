//! What the program sets up for its own process, before it reads a key.

use std::sync::Arc;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use signal_hook::consts::SIGXFSZ;

/// Memory and environment hold keys: no other process of the user may read or trace this one, and no crash
/// may write a core file, which would be in the project. Child processes can be debugged as usual, but they write no
/// core files, either: a limit that could be raised for them could be raised for this one.
///
/// Exceeding a file size limit becomes an error of the write, which is reported, instead of ending the
/// program.
///
/// If the system refuses any of this, the program still runs.
pub fn protect() {
    // A process that traces it from the start has access anyway, and could then no longer read the names of
    // its files.
    if !is_traced() {
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
    let _ = setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    );
    // Handled, not ignored: child processes inherit ignored signals.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .filter_map(|line| line.strip_prefix("TracerPid:"))
        .any(|tracer| tracer.trim() != "0")
}
