#![doc = include_str!("../README.md")]

mod agent;
mod commit;
mod event;
mod journaled;
mod model;
mod observe;
mod order;
mod outcome;
mod request;
mod scripted;
mod text;
mod vocabulary;

pub use agent::{
    AgentLoop, Agents, Amount, Announce, Announced, Append, At, Checkpoint, CheckpointResult,
    Checkpointed, CommitAll, Delete, Denial, Identified, Identify, LimitReached, List, Listed,
    Marked, Named, Next, Pace, Place, Read, Replace, Shell, ShellRan, Survey, Surveyed, Turn,
    TurnAdvice, TurnAnswer, TurnBegins, TurnEnd, Turned, Uncommitted, Wait, Waited, WasRead, Wrote,
};
pub use code_commit_model::{Action, Attempt, Changed, Ended, Finish, ModelUsage, Stored, Usage};
pub use commit::{Applied, Apply, ApplyAnswer, Build, Built, Present, Rejected, Restore, Restored};
pub use commit::{GRADER, NEEDED, PLACEHOLDER};
pub use event::Event;
pub use journaled::{Difference, Journaled, Live, Recorded, Stop, World};
pub use model::{Answered, Ask, AskAnswer, Asked, AtMost, Attempted, Reply, Unanswered};
pub use observe::{Observer, Progress, Silent};
pub use order::IGNORED_FILES;
pub use order::{
    Broke, Commit, CommitAnswer, Committed, Condition, Keep, Kept, Look, Looked, Measure, Measured,
    NotCommitted, Ran, Refused, RollBack, RolledBack, Run, Stamp, Stamped, Tail, Tried, WhyRefused,
    Write, WriteAnswer, Written,
};
pub use outcome::{Cause, HoldsFor, Outcome};
pub use request::{Answer, Durability, Harness, Request, Stops};
pub use scripted::{NoSuchAnswer, Scripted};
pub use text::{Digest, Text, digest};
pub use vocabulary::Problem;
