//! The spec loop: plan, implement and review until the specs are met (S4).

mod act;
mod audit;
pub(crate) mod check;
pub mod config;
mod events;
mod failures;
pub mod history;
mod lines;
mod mending;
mod options;
mod plan;
pub mod project;
mod start;
mod summary;
mod uuid;
mod watch;
mod workspace;

pub(crate) use act::Spec;
pub use audit::run as audit;
pub use failures::{Failed, parked};
pub use lines::Lines;
pub use options::{Agent, AgentOptions, Permissions};
pub use plan::run as plan;
pub use project::RUNS;
pub(crate) use start::resume;
pub use start::{Request, review, run};
pub use watch::run as watch;
