#![doc = include_str!("../README.md")]

mod changed;
mod commit;
mod excerpt;

pub use commit::{CommitLoop, Inputs, Limits, OnFailure};
