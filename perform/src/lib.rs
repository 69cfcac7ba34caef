#![doc = include_str!("../README.md")]

mod agents;
mod ask;
mod build;
mod commit;
mod fault;
mod intake;
mod kept;
mod observe;
mod order;
mod record;
mod replay;
mod reserve;
mod seal;
mod spending;
mod translate;
mod trial;

pub use agents::{
    AgentExecutor, AgentFact, AgentFault, AgentLimits, AgentRecord, AgentStep, AgentUsage, AgentWatch,
    COPIES, Checkpoint, Ended, Executor, Facts, Guarded, Kept, LimitPassed, Loop, Marked, Next, NotPutBack,
    Observer as AgentObserver, Place, PutBack, Repository, Role, Silent as AgentSilent, TAKEN, Text, Turned,
    Uncommitted, UncommittedCopies, Watched, drive, facts_of, forget_copies, outline_of, taken, watch_over,
};
pub use ask::Asking;
pub use build::BuildCommand;
pub use commit::CommitWorld;
pub use fault::Fault;
pub use intake::{Intake, Rules, Taken};
pub use kept::{UNDO, folders_to_undo, undo_folders};
pub use observe::{Event, Observer, Silent};
pub use order::{Baseline, CommandSettings, IGNORED_FILES, Ignored, Left, OrderWorld};
pub use record::{JOURNAL, Past, Record, RecordError, output_text};
pub use replay::{AsFound, RecordOnly, ReplayFault, Replayed, same_end};
pub use spending::{Spending, attempt_of};
pub use translate::{changes, reply_again, reply_of};

/// Loops that agents work in still speak in these.
pub use engine::{Cause, Outcome};
