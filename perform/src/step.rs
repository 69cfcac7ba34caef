//! What a loop may ask for, and what a loop is.

use std::sync::Arc;

use llm::Finish;

use crate::Outcome;

/// A decision: the facts so far in, the next step out. No I/O, no clock, no randomness, so that the facts of a journal lead to
/// the same steps again.
///
/// A loop speaks one vocabulary of steps and facts, and only an executor that knows it can be given to the driver: [`Step`] and
/// [`Fact`](crate::Fact) for loops that ask a model.
pub trait Loop {
    /// What it can ask for.
    type Step;
    /// What it can be told.
    type Fact;

    /// What to do now. Asked again without a new fact, the answer is the same.
    fn next(&self) -> Next<Self::Step>;

    /// Takes in what happened. Facts that this loop has no use for change nothing.
    fn learn(&mut self, fact: &Self::Fact);
}

/// A loop's answer to "what now?".
#[derive(Debug, Clone, PartialEq)]
pub enum Next<S = Step> {
    /// Do this, and tell me what came of it.
    Do(S),
    /// It is over.
    Stop(Outcome),
}

/// One thing to be done by the driver. A round is a model call, its writes and a build, counted from 1.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send the prompt to the model. Ends in [`CallFact::Answered`](crate::CallFact::Answered) or [`CallFact::Unanswered`](crate::CallFact::Unanswered).
    Ask {
        /// Which round.
        round: u32,
        /// The whole prompt.
        prompt: Arc<str>,
    },
    /// Parse the reply, judge every path, write all of it or nothing. Ends in [`Fact::Applied`](crate::Fact::Applied) or [`Fact::Rejected`](crate::Fact::Rejected).
    Apply {
        /// Which round.
        round: u32,
        /// What the model answered.
        answer: Answer,
    },
    /// Run the build. Ends in [`Fact::Built`](crate::Fact::Built).
    Build {
        /// Which round.
        round: u32,
    },
    /// Put every file that this run changed back as it was. Ends in [`Fact::Restored`](crate::Fact::Restored).
    Restore,
}

/// A model's answer as it is judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Its text, keys struck out.
    pub reply: Arc<str>,
    /// How the service says it ended; anything but a complete answer is rejected.
    pub finish: Finish,
    /// Whether a key was struck out of it; such a reply is rejected.
    pub held_key: bool,
}
