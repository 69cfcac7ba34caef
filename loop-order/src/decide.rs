//! The loop of a work order: software engineer, tool runner, judge (S2 §6, §8).

mod attempt;
mod phase;

use std::collections::VecDeque;
use std::sync::Arc;

use perform::{Advice, Answer, CallFact, Cause, Loop, Next, OrderFact, OrderStep, Outcome};
use prompt::order::{Allowed, Context, Failure, Task};

use crate::artifacts::{AttemptRecord, CmdResult, FailureBrief, RunSummary, Stage, Verdict};
use crate::brief;
use crate::context::shown_in_part;
use crate::order::WorkOrder;
use attempt::{Attempt, json};
use phase::Phase;

pub use phase::is_probe;

/// Name of the summary in the run folder.
pub const SUMMARY: &str = "run_summary.json";

/// What the preflight has read; the same over all attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct Inputs {
    /// The order.
    pub order: WorkOrder,
    /// Where it was read.
    pub work_order_path: String,
    /// The root of the repository.
    pub repo_path: String,
    /// The commit that is checked out.
    pub baseline_commit: String,
    /// The tree before the first attempt.
    pub tree_hash_before: String,
    /// The name of the run.
    pub run_id: String,
    /// How many attempts there may be.
    pub max_attempts: u32,
    /// Whether the changes are committed where the order passes.
    pub commit: bool,
    /// The allowed files with their hashes.
    pub allowed: Vec<Allowed>,
    /// The context files as they are shown.
    pub context: Vec<Context>,
}

/// S2 as a value.
#[derive(Debug)]
pub struct OrderLoop {
    inputs: Inputs,
    phase: Phase,
    todo: VecDeque<OrderStep>,
    work: Attempt,
    records: Vec<AttemptRecord>,
    /// Why there was no first attempt.
    refused: Option<FailureBrief>,
    started: String,
    ended: String,
    tree_hash_after: Option<String>,
    not_committed: Option<String>,
    outcome: Outcome,
}

impl OrderLoop {
    /// A run that is about to begin.
    #[must_use]
    pub fn new(inputs: Inputs) -> Self {
        let mut decide = Self {
            inputs,
            phase: Phase::Opening,
            todo: VecDeque::from([OrderStep::Stamp]),
            work: Attempt::number(1),
            records: Vec::new(),
            refused: None,
            started: String::new(),
            ended: String::new(),
            tree_hash_after: None,
            not_committed: None,
            outcome: Outcome::AttemptsUsedUp { rounds: 0 },
        };
        decide.open();
        decide
    }

    /// The prompt of the first attempt; the preflight looks whether it may be sent.
    pub fn first_prompt(&self) -> String {
        self.prompt_of(1, None)
    }

    /// What `run_summary.json` says, once the run is over.
    pub fn summary(&self) -> RunSummary {
        let Inputs { order, .. } = &self.inputs;
        let failed = self.failed_stage();
        let passed = failed.is_none();
        RunSummary {
            run_id: self.inputs.run_id.clone(),
            repo_path: self.inputs.repo_path.clone(),
            work_order_path: self.inputs.work_order_path.clone(),
            work_order_hash: order.hash.clone(),
            repo_baseline_commit: self.inputs.baseline_commit.clone(),
            repo_tree_hash_before: self.inputs.tree_hash_before.clone(),
            repo_tree_hash_after: self.tree_hash_after.clone().filter(|_| passed),
            max_attempts: self.inputs.max_attempts,
            attempts: self.records.clone(),
            verdict: if passed { Verdict::Pass } else { Verdict::Fail },
            ended_stage: failed.map_or("success", Stage::as_str).to_owned(),
            started_utc: self.started.clone(),
            ended_utc: self.ended.clone(),
        }
    }

    /// Where the run has failed last, once it is over; none where it has passed.
    pub fn failed_stage(&self) -> Option<Stage> {
        if matches!(self.outcome, Outcome::Done { .. }) {
            return None;
        }
        let last = self.records.last().and_then(|record| record.failure_brief.as_ref());
        Some(last.or(self.refused.as_ref()).map_or(Stage::Exception, |brief| brief.stage))
    }

    /// Why git did not commit what has passed.
    pub fn not_committed(&self) -> Option<&str> {
        self.not_committed.as_deref()
    }

    /// Names the run, so that a commit whose harness was killed before its journal said so is found again.
    fn commit_message(&self) -> String {
        let WorkOrder { id, title, .. } = &self.inputs.order;
        format!("{title}\n\nWork order: {id}\nRun: {}\n", self.inputs.run_id)
    }

    fn open(&mut self) {
        let conditions = self.inputs.order.preconditions.clone();
        if !conditions.is_empty() {
            self.todo.push_back(OrderStep::Look { conditions });
        }
    }

    fn prompt_of(&self, number: u32, failure: Option<&FailureBrief>) -> String {
        let Inputs { order, allowed, context, max_attempts, .. } = &self.inputs;
        let acceptance = order.acceptance_texts();
        let task = Task {
            title: &order.title,
            intent: &order.intent,
            allowed,
            forbidden: &order.forbidden,
            acceptance_commands: &acceptance,
            notes: order.notes.as_deref(),
            context,
        };
        let failure = failure.map(|brief| Failure {
            stage: brief.stage.as_str(),
            command: brief.command.as_deref(),
            exit_code: brief.exit_code,
            excerpt: &brief.primary_error_excerpt,
            reminder: &brief.constraints_reminder,
        });
        prompt::order::prompt(&task, &prompt::order::Attempt { number, of: *max_attempts, failure })
    }

    /// Takes in the fact that answers the first step of `todo`.
    fn take(&mut self, fact: &OrderFact) {
        match fact {
            OrderFact::Stamped { at } if self.phase == Phase::Opening => self.started.clone_from(at),
            OrderFact::Stamped { at } => self.ended.clone_from(at),
            OrderFact::Looked { failed } if failed.is_empty() => {}
            OrderFact::Looked { failed } => {
                let stage =
                    if self.phase == Phase::Opening { Stage::Preflight } else { Stage::AcceptanceFailed };
                self.fail(brief::conditions(stage, failed, &self.inputs.order));
            }
            OrderFact::Call(CallFact::Answered { reply, finish, held_key, .. }) => {
                self.answered(Answer { reply: reply.share(), finish: finish.clone(), held_key: *held_key });
            }
            OrderFact::Call(CallFact::Unanswered { cause, .. }) => self.give_up(cause),
            OrderFact::Written { touched, verify_script, .. } => {
                self.work.written(touched);
                self.todo.extend(self.work.verification(*verify_script));
                self.phase = Phase::Verifying;
            }
            OrderFact::Refused { why, touched, problems, .. } => {
                self.work.refused(touched, problems);
                self.fail(brief::refused(*why, problems, &self.inputs.order));
            }
            OrderFact::Ran { .. } => self.ran(fact),
            OrderFact::Measured { tree_sha256 } => self.tree_hash_after = Some(tree_sha256.clone()),
            OrderFact::NotCommitted { message } => self.not_committed = Some(message.clone()),
            OrderFact::Broke { message } => {
                self.fail(brief::plain(Stage::Exception, message, &self.inputs.order));
            }
            OrderFact::RolledBack { .. }
            | OrderFact::Warned { .. }
            | OrderFact::Kept { .. }
            | OrderFact::Committed { .. }
            | OrderFact::Resumed
            | OrderFact::Ended { .. }
            | OrderFact::Call(CallFact::Asked { .. } | CallFact::Attempted { .. }) => {}
        }
    }

    fn answered(&mut self, answer: Answer) {
        match answer.finish.advice() {
            Advice::TellPerson => {
                let (code, message) = (answer.finish.code().to_owned(), answer.finish.explain());
                self.give_up(&Cause { code, message, remedy: Some(answer.finish.remedy().to_owned()) });
            }
            Advice::Use | Advice::TellModel | Advice::Retry => {
                self.todo.push_back(self.write(answer.clone()));
                self.work.answer = Some(answer);
            }
        }
    }

    fn write(&self, answer: Answer) -> OrderStep {
        let shown_in_part = shown_in_part(&self.inputs.context);
        OrderStep::Write { attempt: self.work.number, answer, shown_in_part }
    }

    fn ran(&mut self, fact: &OrderFact) {
        let Some(result) = CmdResult::of(fact) else { return };
        let order = &self.inputs.order;
        let succeeded = result.exit_code == 0;
        let text = |commands: &[crate::order::Command]| {
            let known = commands.iter().find(|command| command.argv == result.command);
            known.map_or_else(|| result.command.join(" "), |command| command.text.clone())
        };
        let failure = if self.phase == Phase::Probing && succeeded {
            Some(brief::passes_before(&text(&order.must_fail_before), &result, order))
        } else if self.phase == Phase::Verifying && !succeeded {
            Some(brief::of_command(Stage::VerifyFailed, &result.command.join(" "), &result, order))
        } else if self.phase == Phase::Accepting && !succeeded {
            let command = text(&order.acceptance_commands);
            Some(brief::of_command(Stage::AcceptanceFailed, &command, &result, order))
        } else {
            None
        };
        if self.phase == Phase::Verifying {
            self.work.verify.push(result);
        } else if self.phase == Phase::Accepting {
            self.work.acceptance.push(result);
        }
        if let Some(brief) = failure {
            self.fail(brief);
        }
    }

    /// Nobody can be asked: there is no point in a further attempt.
    fn give_up(&mut self, cause: &Cause) {
        let round = self.work.number;
        self.fail(brief::plain(Stage::Exception, &cause.message, &self.inputs.order));
        self.outcome = Outcome::ModelUnavailable { round, cause: cause.clone() };
    }
}

impl OrderLoop {
    /// The artifact that the attempt which is under way does not have as long as it has not failed: an earlier try of it, which got no
    /// answer, may have left one.
    pub fn stale_brief_file(&self) -> Option<String> {
        self.work.brief.is_none().then(|| self.work.brief_file())
    }
}

impl Loop for OrderLoop {
    type Step = OrderStep;
    type Fact = OrderFact;

    fn next(&self) -> Next<OrderStep> {
        match self.todo.front() {
            Some(step) => Next::Do(step.clone()),
            None => Next::Stop(self.outcome.clone()),
        }
    }

    fn learn(&mut self, fact: &OrderFact) {
        if *fact == OrderFact::Resumed {
            self.rewind();
        } else if self.todo.front().is_some_and(|step| answers(fact, step)) {
            self.todo.pop_front();
            self.take(fact);
            self.advance();
        }
    }
}

/// Whether the fact is what came of the step; other facts happen on the way.
fn answers(fact: &OrderFact, step: &OrderStep) -> bool {
    if matches!(fact, OrderFact::Broke { .. }) {
        return true;
    }
    match step {
        OrderStep::Stamp => matches!(fact, OrderFact::Stamped { .. }),
        OrderStep::Look { .. } => matches!(fact, OrderFact::Looked { .. }),
        OrderStep::Ask { .. } => {
            matches!(fact, OrderFact::Call(CallFact::Answered { .. } | CallFact::Unanswered { .. }))
        }
        OrderStep::Write { .. } => matches!(fact, OrderFact::Written { .. } | OrderFact::Refused { .. }),
        OrderStep::Run { log, .. } => matches!(fact, OrderFact::Ran { log: of, .. } if log == of),
        OrderStep::RollBack => matches!(fact, OrderFact::RolledBack { .. }),
        OrderStep::Keep { .. } => matches!(fact, OrderFact::Kept { .. }),
        OrderStep::Measure => matches!(fact, OrderFact::Measured { .. }),
        OrderStep::Commit { .. } => {
            matches!(fact, OrderFact::Committed { .. } | OrderFact::NotCommitted { .. })
        }
    }
}

fn keep(file: String, text: String) -> OrderStep {
    OrderStep::Keep { file, text: Arc::from(text) }
}

#[cfg(test)]
mod tests;
