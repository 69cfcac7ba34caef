#![doc = include_str!("../README.md")]

mod event;
mod files;
mod focus;
mod inputs;
mod judge;
mod marker;
mod run;
pub mod watch;

pub use event::PhaseEvent;
pub use files::{BACKLOG, Files, ISSUES, MEMORY, STORE, TBD, WIP};
pub use focus::asks_to_change;
pub use inputs::{CommitScope, Inputs, Patience};
pub use marker::{Role, SPEC_ISSUE, is_terminal};
pub use run::{LOG, SpecLoop};

/// The name of the one repository of a run.
pub const PROJECT: &str = "project";
/// The user's line that runs after planning.
pub const SETUP: &str = "setup";
/// The user's line that runs before implementing and reviewing.
pub(crate) const CHECK: &str = "check";
