#![doc = include_str!("../README.md")]

mod changed;
mod commit;
mod committed;
mod excerpt;
mod implement;
mod resume;
mod rounds;
mod same_failure;

pub use commit::{COMMIT_ROUNDS, Inputs, commit};
pub use committed::committed;
pub use excerpt::on_screen;
pub use implement::{Brief, IMPLEMENT_ROUNDS, implement};
pub use resume::still_holds;
pub use rounds::{BUILD_OUTPUT_BYTES, Limits, OnFailure};
