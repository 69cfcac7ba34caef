//! Ends the process at every step of a transaction and of the recovery after it; in every case the next start
//! must find the old or the new tree.
//!
//! `CRASH_SIZE` multiplies the strace campaign (default 1: kills or fails each system call at its first
//! occurrences; 10 tries all of them).
#![expect(
    clippy::disallowed_methods,
    reason = "the tests kill processes of their own and read what to do from variables"
)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of a test"
)]
#![expect(
    clippy::print_stderr,
    clippy::exit,
    reason = "campaigns report their numbers; a child says how it ended"
)]

mod child;
mod inject;
mod power;
mod scene;
#[path = "../shared/mod.rs"]
mod shared;
mod steps;
