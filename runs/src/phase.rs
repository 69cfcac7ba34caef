//! Phases: a builder and a verifier, isolated from each other (S3).

pub(crate) mod agents;
pub mod commands;
mod folders;
mod lines;
mod project;
mod roles;
mod run;

pub use folders::{PROJECT, SPECS, read, refuse_links};
pub use project::{Override, config, overrule, specs};
pub(crate) use run::Phase;
pub use run::{LOGS, Request, run};
