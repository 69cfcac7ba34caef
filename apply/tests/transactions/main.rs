//! The effect of a transaction on a real tree, what it refuses, what `undo` restores, and how bad disks
//! affect it.
#![expect(
    clippy::disallowed_methods,
    reason = "trees are made with files, disks with mount; the size of the campaign is a variable"
)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of a test")]
#![expect(clippy::print_stderr, reason = "what was skipped must be seen")]

mod disks;
mod metadata;
mod planted;
mod race;
mod random;
mod recovery;
mod sets;
#[path = "../shared/mod.rs"]
mod shared;
mod tree;
mod undoing;
