//! The world of loops that drive coding-agent CLIs: whole turns of an agent instead of single model calls.

mod checkpoint;
mod fault;
mod limits;
mod listener;
mod role;
mod shell;
mod snapshot;
mod turn;
mod uncommitted;
mod world;

pub use fault::AgentFault;
pub use limits::{AgentLimits, AgentUsage};
pub use role::{AgentWatch, Guarded, Repository, Role, Watched, Worker};
pub use snapshot::{COPIES, Kept, NotPutBack, TAKEN, forget_copies, watch_over};
pub use turn::taken;
pub use uncommitted::UncommittedCopies;
pub use world::{AgentWorld, Around, Cast, Counted, ShellSettings};
