//! The world of loops that drive coding-agent CLIs: whole turns of an agent instead of single model calls.

mod checkpoint;
mod fault;
mod limits;
mod listener;
mod listing;
mod role;
mod shell;
mod turn;
mod watched;
mod world;

pub use fault::AgentFault;
pub use limits::{AgentLimits, AgentUsage};
pub use role::{AgentWatch, Guarded, Repository, Role, Watched, Worker};
pub use turn::taken;
pub use watched::{Copies, watch_over};
pub use world::{AgentWorld, Around, Cast, Counted, ShellSettings};
