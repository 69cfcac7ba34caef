#![doc = include_str!("../README.md")]

mod agents;
mod call;
mod drive;
mod executor;
mod fact;
mod intake;
mod kept;
mod observe;
mod order;
mod outcome;
mod record;
mod replay;
mod step;
mod text;

pub use agents::{
    AgentExecutor, AgentFact, AgentFault, AgentLimits, AgentStep, AgentUsage, AgentWatch, COPIES, Checkpoint,
    Guarded, Kept, LimitPassed, Marked, NotPutBack, Place, PutBack, Repository, Role, TAKEN, Turned,
    Uncommitted, UncommittedCopies, Watched, forget_copies, taken, watch_over,
};
pub use call::CallFact;
pub use drive::{Executor, drive};
pub use executor::{Asking, BuildCommand, CommitExecutor, Fault, Spending};
pub use fact::{Fact, Problem};
pub use intake::{Intake, Rules, Taken, normalized_path};
pub use kept::{OnTree, UNDO, folders_to_undo, undo_folders};
pub use observe::{Event, Observer, Silent};
pub use order::{
    Baseline, CommandSettings, Condition, IGNORED_FILES, Ignored, Left, OrderExecutor, OrderFact, OrderStep,
    Tail, VERIFY_SCRIPT, WhyRefused, replay_order,
};
pub use outcome::{Cause, Outcome};
pub use record::{Facts, JOURNAL, Record, RecordError, facts_of, outline_of};
pub use replay::{AsFound, Difference, ReplayFault, Replayed};
pub use step::{Answer, Loop, Next, Step};
pub use text::Text;

/// How a model's answer ended, as the services say it, and what to do about it.
pub use llm::{Advice, Finish};
/// How a command ended.
pub use runner::Ended;
