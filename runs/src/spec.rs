//! The spec loop: plan, implement and review until the specs are met (S4).

mod access;
mod observers;
mod one_turn;
mod run;
mod store;
mod watch;
mod workspace;

pub(crate) use one_turn::{AUDIT, PLAN};
pub use one_turn::{audit, plan};
pub use run::{Plan, Request, all, run};
pub use store::{Failed, RUNS, Store};
pub use watch::watch;
pub(crate) use workspace::{Spec, check_command};
pub use workspace::{TAKEN, config};
