//! The driver: performs what a loop asks for, one step after another. It decides nothing.

use engine::Outcome;

use crate::agents::record::{Facts, Record};
use crate::record::RecordError;

/// A decision: the facts so far in, the next step out.
pub trait Loop {
    /// What it can ask for.
    type Step;
    /// What it can be told.
    type Fact;

    /// What to do now. Asked again without a new fact, the answer is the same.
    fn next(&self) -> Next<Self::Step>;

    /// Takes in what happened.
    fn learn(&mut self, fact: &Self::Fact);
}

/// A loop's answer to "what now?".
#[derive(Debug, Clone, PartialEq)]
pub enum Next<S> {
    /// Do this, and tell me what came of it.
    Do(S),
    /// It is over.
    Stop(Outcome),
}

/// Whoever performs steps: the real executor, or the facts of a recorded run.
pub trait Executor<S, F> {
    /// What stops a run from the outside: an interruption, a fault of the disk, a tree that cannot be put back.
    type Fault: From<RecordError>;

    /// Performs one step and says what came of it. Facts on the way (a prompt sent, an attempt failed) go to the record.
    fn perform(&mut self, step: &S, record: &mut Record<'_, F>) -> Result<F, Self::Fault>;
}

/// Lets `decide` run to its end. Every fact is in the journal **before** the loop hears of it; that is what makes a run that was
/// killed at any point resumable.
pub fn drive<L, H>(
    decide: &mut L,
    executor: &mut H,
    record: &mut Record<'_, L::Fact>,
) -> Result<Outcome, H::Fault>
where
    L: Loop<Fact: Facts>,
    H: Executor<L::Step, L::Fact>,
{
    loop {
        match decide.next() {
            Next::Do(step) => {
                let fact = executor.perform(&step, record)?;
                record.note(&fact)?;
                decide.learn(&fact);
            }
            Next::Stop(outcome) => {
                record.note(&Facts::ended(outcome.clone()))?;
                return Ok(outcome);
            }
        }
    }
}
