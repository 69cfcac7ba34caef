//! The guard's verdicts on real trees: policies, batches, preconditions, ignore rules, kinds of repository.
#![expect(
    clippy::disallowed_methods,
    reason = "trees are made with files and git"
)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of a test")]
#![expect(clippy::print_stderr, reason = "what was skipped must be seen")]

mod check_ignore;
mod files;
mod hostile_paths;
mod ignoring;
mod properties;
mod replies;
mod repositories;
mod surroundings;
mod tree;
