//! A line of the journal, for its readers: renderers, lists, accounts.

use serde::{Deserialize, Serialize};

use crate::agent::{LimitReached, TurnBegins};
use crate::{
    Announced, Answered, Applied, Asked, Attempted, Broke, Built, Checkpointed, Committed,
    HoldsFor, Identified, Kept, Listed, Looked, Measured, NotCommitted, Outcome, Problem, Ran,
    Refused, Rejected, Restored, RolledBack, ShellRan, Stamped, Surveyed, Turned, Unanswered,
    Waited, WasRead, Written, Wrote,
};

/// One line: an answer, or a note of something along the way, which answers no request and which no loop sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "answers are documented where they are")]
pub enum Event {
    Answered(Answered),
    Unanswered(Unanswered),
    Applied(Applied),
    Rejected(Rejected),
    Built(Built),
    Restored(Restored),
    Stamped(Stamped),
    Looked(Looked),
    Written(Written),
    Refused(Refused),
    Ran(Ran),
    RolledBack(RolledBack),
    Kept(Kept),
    Measured(Measured),
    Committed(Committed),
    NotCommitted(NotCommitted),
    Broke(Broke),
    Listed(Listed),
    Turned(Box<Turned>),
    LimitReached(LimitReached),
    ShellRan(ShellRan),
    Surveyed(Surveyed),
    Identified(Identified),
    Checkpointed(Checkpointed),
    Waited(Waited),
    Announced(Announced),
    WasRead(WasRead),
    Wrote(Wrote),
    /// A prompt is about to be sent.
    Asked(Asked),
    /// One HTTP attempt of a call is over.
    Attempted(Attempted),
    /// A turn of an agent is about to begin.
    TurnBegins(TurnBegins),
    /// A person should know this; the run continues.
    Warned {
        /// The warning.
        warning: Problem,
    },
    /// The run was stopped and continues.
    Resumed {
        /// The number of answers that are still valid, counted from the first that was valid before. The requests after
        /// them are performed again.
        kept: usize,
    },
    /// The run has ended.
    Ended {
        /// How.
        #[serde(flatten)]
        outcome: Outcome,
        /// What that holds for.
        #[serde(default, skip_serializing_if = "HoldsFor::is_empty")]
        holds_for: HoldsFor,
    },
}

impl Event {
    /// Whether it answers a request.
    pub fn is_answer(&self) -> bool {
        !matches!(
            self,
            Self::Asked(_)
                | Self::Attempted(_)
                | Self::TurnBegins(_)
                | Self::Warned { .. }
                | Self::Resumed { .. }
                | Self::Ended { .. }
        )
    }

    /// Whether it was paid for: a model's answer or an agent's turn. It was synced before the next line was
    /// written.
    pub fn is_paid(&self) -> bool {
        matches!(self, Self::Answered(_) | Self::Turned(_))
    }

    /// The round or attempt that it names, from 1.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other lines do not say")]
    pub fn round(&self) -> Option<u32> {
        match self {
            Self::Asked(asked) => Some(asked.round),
            Self::Answered(answered) => Some(answered.round),
            Self::Unanswered(none) => Some(none.round),
            Self::Applied(applied) => Some(applied.round),
            Self::Rejected(rejected) => Some(rejected.round),
            Self::Built(built) => Some(built.round),
            Self::Written(written) => Some(written.attempt),
            Self::Refused(refused) => Some(refused.attempt),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
