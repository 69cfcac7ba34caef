//! What the program asks of the system for itself, before it reads a key.

use std::sync::Arc;

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};
use signal_hook::consts::SIGXFSZ;

/// Keys stand in its memory and in its environment: no other process of the user may read or trace it, and no crash leaves them in a core
/// file, which would lie in the project. What it starts can be debugged as usual, but for cores (`ulimit -c` allows them).
///
/// A limit on the length of files is an error of the write that passes it, which is told, rather than the end of the program.
///
/// A system that refuses any of it is none the worse for running the program.
pub fn protect() {
    // Whoever traces it from its first instruction on has all of it anyway, and could no longer read the names of its files.
    if !is_traced() {
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) });
    // Handled, not ignored: what is ignored stays so in every program that is started.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter_map(|line| line.strip_prefix("TracerPid:")).any(|tracer| tracer.trim() != "0")
}
