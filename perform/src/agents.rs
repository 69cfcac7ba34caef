//! The vocabulary of loops that drive coding-agent CLIs: whole turns of an agent instead of single model calls.

mod checkpoint;
mod drive;
mod ears;
mod executor;
mod fact;
mod fault;
mod limits;
mod record;
mod role;
mod shell;
mod snapshot;
mod step;
mod text;
mod turn;
mod uncommitted;

pub use drive::{Executor, Loop, Next, drive};
pub use executor::AgentExecutor;
pub use fact::{AgentFact, Checkpoint, Marked, PutBack, Turned, Uncommitted};
pub use fault::AgentFault;
pub use limits::{AgentLimits, AgentUsage, LimitPassed};
pub use record::{Facts, Observer, Record as AgentRecord, Silent, facts_of, outline_of};
pub use role::{AgentWatch, Guarded, Repository, Role, Watched};
pub use runner::Ended;
pub use snapshot::{COPIES, Kept, NotPutBack, TAKEN, forget_copies, watch_over};
pub use step::{AgentStep, Place};
pub use text::Text;
pub use turn::taken;
pub use uncommitted::UncommittedCopies;
