#![doc = include_str!("../README.md")]

mod changed;
mod commit;
mod excerpt;
mod implement;
mod rounds;
mod stuck;

pub use commit::{COMMIT_ROUNDS, CommitLoop, Inputs, Repairs};
pub use implement::{Brief, IMPLEMENT_ROUNDS, ImplementLoop, Transcript};
pub use rounds::{BUILD_OUTPUT_BYTES, Conversation, Limits, OnFailure, Rounds};
