//! The default loop: one attempt and up to three repairs (S1).

use std::sync::Arc;

use engine::{Advice, Answer, Cause, Fact, Finish, Loop, Next, Outcome, Step};
use prompt::commit::{Task, initial, repair};

use crate::changed::ChangedFiles;
use crate::excerpt::middle_left_out;

/// What a run is about; the same over all of its rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// `agent-config/query.txt`.
    pub query: Arc<str>,
    /// `agent-config/codeRollup.txt`.
    pub codebase: Arc<str>,
    /// What may not be written, shown to the model.
    pub protected: Vec<String>,
}

/// How far a run may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Model calls at most: one attempt and the repairs.
    pub rounds: u32,
    /// A build output of more bytes is shortened in the middle before it is sent.
    pub build_output_bytes: usize,
    /// What becomes of the changes when the run fails.
    pub on_failure: OnFailure,
}

/// The tree that a failed run leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The changes stay on disk, for the supervisor's `git diff` (S1).
    #[default]
    Keep,
    /// Every file is put back as it was before the run.
    Restore,
}

impl Default for Limits {
    /// One attempt, three repairs (S1), and 1 MiB of build output.
    fn default() -> Self {
        Self { rounds: 4, build_output_bytes: 1024 * 1024, on_failure: OnFailure::Keep }
    }
}

/// S1 as a value.
#[derive(Debug)]
pub struct CommitLoop {
    inputs: Inputs,
    limits: Limits,
    round: u32,
    changed: ChangedFiles,
    state: State,
}

#[derive(Debug)]
enum State {
    Asking { prompt: Arc<str> },
    Judging(Answer),
    Building,
    Restoring(Outcome),
    Over(Outcome),
}

impl CommitLoop {
    /// A run that is about to begin.
    #[must_use]
    pub fn new(inputs: Inputs, limits: Limits) -> Self {
        let prompt = initial(&task(&inputs)).text.into();
        Self { inputs, limits, round: 1, changed: ChangedFiles::default(), state: State::Asking { prompt } }
    }

    /// After a build that failed, or a reply that could not be used: the next repair, or the end.
    fn repair(&mut self, output: &str) {
        if self.round >= self.limits.rounds {
            self.fail(Outcome::AttemptsUsedUp { rounds: self.round });
            return;
        }
        self.round += 1;
        let output = middle_left_out(output, self.limits.build_output_bytes);
        let prompt = repair(&task(&self.inputs), &output, &self.changed.replacements()).into();
        self.state = State::Asking { prompt };
    }

    fn fail(&mut self, outcome: Outcome) {
        self.state = match self.limits.on_failure {
            OnFailure::Restore if !self.changed.is_empty() => State::Restoring(outcome),
            OnFailure::Restore | OnFailure::Keep => State::Over(outcome),
        };
    }
}

fn task(inputs: &Inputs) -> Task<'_> {
    Task { query: &inputs.query, codebase: &inputs.codebase, protected: &inputs.protected }
}

/// An answer that only a person can do something about: a filter, a refusal.
fn unavailable(round: u32, finish: &Finish) -> Outcome {
    let cause = Cause { code: finish.code().to_owned(), message: finish.explain(), remedy: None };
    Outcome::ModelUnavailable { round, cause }
}

impl Loop for CommitLoop {
    type Step = Step;
    type Fact = Fact;

    fn next(&self) -> Next {
        let round = self.round;
        match &self.state {
            State::Asking { prompt } => Next::Do(Step::Ask { round, prompt: Arc::clone(prompt) }),
            State::Judging(answer) => Next::Do(Step::Apply { round, answer: answer.clone() }),
            State::Building => Next::Do(Step::Build { round }),
            State::Restoring(_) => Next::Do(Step::Restore),
            State::Over(outcome) => Next::Stop(outcome.clone()),
        }
    }

    fn learn(&mut self, fact: &Fact) {
        match (fact, &self.state) {
            (Fact::Answered { reply, finish, held_key, .. }, State::Asking { .. }) => match finish.advice() {
                Advice::TellPerson => self.fail(unavailable(self.round, finish)),
                Advice::Use | Advice::TellModel | Advice::Retry => {
                    let answer = Answer { reply: reply.share(), finish: finish.clone(), held_key: *held_key };
                    self.state = State::Judging(answer);
                }
            },
            (Fact::Unanswered { cause, .. }, State::Asking { .. }) => {
                self.fail(Outcome::ModelUnavailable { round: self.round, cause: cause.clone() });
            }
            (Fact::Applied { .. }, State::Judging(answer)) => {
                self.changed.learn(&answer.reply);
                self.state = State::Building;
            }
            (Fact::Rejected { report, .. }, State::Judging(_)) => self.repair(report.as_str()),
            (Fact::Built { ended, .. }, State::Building) if ended.exit_code() == Some(0) => {
                self.state = State::Over(Outcome::Done { rounds: self.round });
            }
            (Fact::Built { output, .. }, State::Building) => self.repair(output.as_str()),
            (Fact::Restored { .. }, State::Restoring(outcome)) => self.state = State::Over(outcome.clone()),
            // A fact that this state does not wait for.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
