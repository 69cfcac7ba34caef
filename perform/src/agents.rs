//! The vocabulary of loops that drive coding-agent CLIs: whole turns of an agent instead of single model calls.

mod checkpoint;
mod ears;
mod executor;
mod fact;
mod fault;
mod limits;
mod role;
mod shell;
mod snapshot;
mod step;
mod turn;
mod uncommitted;

pub use executor::AgentExecutor;
pub use fact::{AgentFact, Checkpoint, Marked, PutBack, Turned, Uncommitted};
pub use fault::AgentFault;
pub use limits::{AgentLimits, AgentUsage, LimitPassed};
pub use role::{AgentWatch, Guarded, Repository, Role, Watched};
pub use snapshot::{COPIES, Kept, NotPutBack, TAKEN, forget_copies, watch_over};
pub use step::{AgentStep, Place};
pub use turn::taken;
pub use uncommitted::UncommittedCopies;
