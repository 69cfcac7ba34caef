//! Phases: a builder and a verifier, isolated from each other (S3).

mod access;
mod act;
pub(crate) mod agents;
mod desk;
mod folders;
mod holds;
mod lines;
pub(crate) mod past;
mod project;
pub mod request;
mod verdicts;
mod work;

pub(crate) use act::resume;
pub use act::{Request, run};
pub use desk::serve;
pub use folders::{PROJECT, SPECS, read, refuse_links};
pub use past::LOGS;
pub use project::specs;
pub use verdicts::{Override, overrule};
pub(crate) use work::Phase;
