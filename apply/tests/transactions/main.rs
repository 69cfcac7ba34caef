//! What a transaction does to a real tree, what it refuses, what `undo` gives back, and what bad disks do to it.
#![expect(clippy::disallowed_methods, reason = "trees are made with files, disks with mount")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of a test")]
#![expect(clippy::print_stderr, reason = "what was skipped must be seen")]

mod disks;
mod planted;
mod random;
mod recovery;
mod sets;
mod tree;
mod undoing;
