//! What both commit loops are: ask, judge, build; on a failure ask again, a bounded number of times.

use std::sync::Arc;

use perform::{Advice, Answer, CallFact, Cause, Fact, Finish, Loop, Next, Outcome, Step, Text};

use crate::excerpt::middle_left_out;
use crate::stuck::{At, Failure};

/// Of a longer build output a prompt has the beginning and the end, unless [`Limits`] say otherwise. In bytes.
pub const BUILD_OUTPUT_BYTES: usize = 1024 * 1024;

/// How far a run may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Model calls at most.
    pub rounds: u32,
    /// A build output of more bytes is shortened in the middle before it is sent.
    pub build_output_bytes: usize,
    /// What becomes of the changes when the run fails.
    pub on_failure: OnFailure,
    /// Give up after so many rounds with the same failure.
    pub same_failures: Option<u32>,
}

/// The tree that a failed run leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The changes stay on disk, for the supervisor's `git diff` (S0, S1).
    #[default]
    Keep,
    /// Every file is put back as it was before the run.
    Restore,
}

impl Limits {
    /// So many rounds, [`BUILD_OUTPUT_BYTES`], changes kept, no giving up early.
    #[must_use]
    pub fn of_rounds(rounds: u32) -> Self {
        Self {
            rounds,
            build_output_bytes: BUILD_OUTPUT_BYTES,
            on_failure: OnFailure::Keep,
            same_failures: None,
        }
    }
}

/// What the two loops differ in: what the model is told.
pub trait Conversation {
    /// The first prompt.
    fn first(&self) -> Arc<str>;

    /// Takes in a reply whose changes are on disk.
    fn applied(&mut self, reply: &Arc<str>);

    /// The prompt after a build that failed: what the model had answered, and what the build printed.
    fn built(&mut self, reply: &Arc<str>, output: &str) -> Arc<str>;

    /// The prompt after a reply that was not used, be it refused, cut off or prose: the reply, and why.
    fn refused(&mut self, reply: &Arc<str>, reasons: &str) -> Arc<str>;
}

/// A commit loop as a value.
#[derive(Debug)]
pub struct Rounds<C> {
    conversation: C,
    limits: Limits,
    round: u32,
    changed: bool,
    last_failure: Option<Failure>,
    state: State,
}

#[derive(Debug)]
enum State {
    Asking {
        prompt: Arc<str>,
    },
    Judging(Answer),
    Building {
        reply: Arc<str>,
        /// What has failed if the build does.
        at: At,
    },
    /// Over, unless a person lets the run go on: the prompt would be sent again.
    Unanswered {
        prompt: Arc<str>,
        outcome: Outcome,
    },
    Restoring(Outcome),
    Over(Outcome),
}

impl<C: Conversation> Rounds<C> {
    /// A run that is about to begin.
    pub fn new(conversation: C, limits: Limits) -> Self {
        let prompt = conversation.first();
        let state = State::Asking { prompt };
        Self { conversation, limits, round: 1, changed: false, last_failure: None, state }
    }

    fn learn_call(&mut self, prompt: Arc<str>, fact: &Fact) {
        if let Fact::Call(CallFact::Answered { reply, finish, held_key, .. }) = fact {
            self.answered(Answer { reply: reply.share(), finish: finish.clone(), held_key: *held_key });
        } else if let Fact::Call(CallFact::Unanswered { cause, .. }) = fact {
            self.end(Outcome::ModelUnavailable { round: self.round, cause: cause.clone() });
            if let State::Over(outcome) = &self.state {
                self.state = State::Unanswered { prompt, outcome: outcome.clone() };
            }
        }
    }

    fn learn_verdict(&mut self, reply: Arc<str>, fact: &Fact) {
        if let Fact::Applied { changes, .. } = fact {
            self.conversation.applied(&reply);
            self.changed = true;
            let is_as_before = changes.iter().all(|change| change.before_sha256 == change.after_sha256);
            self.state = State::Building { reply, at: if is_as_before { At::Unchanged } else { At::Build } };
        } else if let Fact::Rejected { report, .. } = fact {
            self.failed(At::Reply, &reply, report);
        }
    }

    fn learn_build(&mut self, at: At, reply: &Arc<str>, fact: &Fact) {
        if fact.is_passed_build() {
            self.state = State::Over(Outcome::Done { rounds: self.round });
        } else if let Fact::Built { output, .. } = fact {
            self.failed(at, reply, output);
        }
    }

    /// One that only a person can do something about, a filter or a refusal, is not even judged.
    fn answered(&mut self, answer: Answer) {
        match answer.finish.advice() {
            Advice::TellPerson => self.end(unavailable(self.round, &answer.finish)),
            Advice::Use | Advice::TellModel | Advice::Retry => self.state = State::Judging(answer),
        }
    }

    /// After a build that failed, or a reply that could not be used: the next round, or the end.
    fn failed(&mut self, at: At, reply: &Arc<str>, output: &Text) {
        let failure = Failure::after(self.last_failure.take(), output.as_str());
        let times = failure.times();
        self.last_failure = Some(failure);
        if self.limits.same_failures.is_some_and(|most| times >= most) {
            return self.end(Outcome::Stuck { rounds: self.round, times });
        }
        if self.round >= self.limits.rounds {
            return self.end(Outcome::AttemptsUsedUp { rounds: self.round });
        }
        self.round += 1;
        let (text, limit) = (output.as_str(), self.limits.build_output_bytes);
        let mut output = middle_left_out(text, output.whole_bytes(), limit).into_owned();
        if times > 1 {
            output.push_str(&crate::stuck::notice(times, at));
        }
        let prompt = match at {
            At::Build | At::Unchanged => self.conversation.built(reply, &output),
            At::Reply => self.conversation.refused(reply, &output),
        };
        self.state = State::Asking { prompt };
    }

    fn end(&mut self, outcome: Outcome) {
        self.state = match self.limits.on_failure {
            OnFailure::Restore if self.changed => State::Restoring(outcome),
            OnFailure::Restore | OnFailure::Keep => State::Over(outcome),
        };
    }
}

fn unavailable(round: u32, finish: &Finish) -> Outcome {
    let remedy = Some(finish.remedy().to_owned());
    let cause = Cause { code: finish.code().to_owned(), message: finish.explain(), remedy };
    Outcome::ModelUnavailable { round, cause }
}

impl<C: Conversation> Loop for Rounds<C> {
    type Step = Step;
    type Fact = Fact;

    fn next(&self) -> Next {
        let round = self.round;
        match &self.state {
            State::Asking { prompt } => Next::Do(Step::Ask { round, prompt: Arc::clone(prompt) }),
            State::Judging(answer) => Next::Do(Step::Apply { round, answer: answer.clone() }),
            State::Building { .. } => Next::Do(Step::Build { round }),
            State::Restoring(_) => Next::Do(Step::Restore),
            State::Unanswered { outcome, .. } | State::Over(outcome) => Next::Stop(outcome.clone()),
        }
    }

    /// A fact that the state does not wait for changes nothing.
    fn learn(&mut self, fact: &Fact) {
        match &self.state {
            State::Asking { prompt } => {
                let prompt = Arc::clone(prompt);
                self.learn_call(prompt, fact);
            }
            State::Judging(answer) => {
                let reply = Arc::clone(&answer.reply);
                self.learn_verdict(reply, fact);
            }
            State::Building { reply, at } => {
                let (reply, at) = (Arc::clone(reply), *at);
                self.learn_build(at, &reply, fact);
            }
            State::Unanswered { prompt, .. } => {
                if matches!(fact, Fact::Resumed) {
                    self.state = State::Asking { prompt: Arc::clone(prompt) };
                }
            }
            State::Restoring(outcome) => {
                if matches!(fact, Fact::Restored { .. }) {
                    self.state = State::Over(outcome.clone());
                }
            }
            State::Over(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
