//! From one phase of a run to the next.

use perform::{OrderStep, Outcome};

use super::{OrderLoop, SUMMARY, json, keep};
use crate::artifacts::{FailureBrief, Stage};
use crate::decide::attempt::Attempt;

/// How the names of the logs begin of commands that must fail before the change.
const PROBES: &str = "preflight/must_fail_before_";

/// Whether a command with these logs must fail before the change.
pub fn is_probe(log: &str) -> bool {
    log.starts_with(PROBES)
}

/// What the steps in `todo` are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Time and preconditions.
    Opening,
    /// Commands that have to fail at the baseline.
    Probing,
    /// The model, and the writing of its proposal.
    Asking,
    /// The global verification.
    Verifying,
    /// The acceptance commands.
    Accepting,
    /// The postconditions.
    Checking,
    /// The artifacts of an attempt that passed, and the tree's hash.
    Passing,
    /// Rollback and artifacts of an attempt that failed.
    Failing,
    /// Rollback and artifact of a run that may not begin.
    Refusing,
    /// Time.
    Closing,
    /// The summary.
    Summing,
    /// The commit of what has passed. Only behind it is the run over: one that was killed here still has it to make.
    Committing,
}

impl OrderLoop {
    /// Goes on to the next phase that has something to do.
    pub(super) fn advance(&mut self) {
        while self.todo.is_empty() {
            let Some(next) = self.following() else { return };
            self.phase = next;
            let steps = self.steps_of(next);
            self.todo.extend(steps);
        }
    }

    /// The phase after one in which all went well; none after the last.
    fn following(&mut self) -> Option<Phase> {
        Some(match self.phase {
            Phase::Opening => Phase::Probing,
            Phase::Probing => Phase::Asking,
            Phase::Asking | Phase::Verifying => Phase::Accepting,
            Phase::Accepting => Phase::Checking,
            Phase::Checking => Phase::Passing,
            Phase::Failing if self.may_try_again() => {
                self.work = Attempt::number(self.work.number + 1);
                Phase::Asking
            }
            Phase::Passing | Phase::Failing | Phase::Refusing => Phase::Closing,
            Phase::Closing => Phase::Summing,
            Phase::Summing if self.inputs.commit && self.failed_stage().is_none() => Phase::Committing,
            Phase::Summing | Phase::Committing => return None,
        })
    }

    fn steps_of(&mut self, phase: Phase) -> Vec<OrderStep> {
        let order = &self.inputs.order;
        match phase {
            Phase::Probing => self.probes(),
            Phase::Asking => {
                let failure = self.records.last().and_then(|record| record.failure_brief.as_ref());
                let prompt = self.prompt_of(self.work.number, failure).into();
                vec![OrderStep::Ask { attempt: self.work.number, prompt }]
            }
            Phase::Accepting => self.work.acceptance(&order.acceptance_commands),
            Phase::Checking if order.postconditions.is_empty() => Vec::new(),
            Phase::Checking => vec![OrderStep::Look { conditions: order.postconditions.clone() }],
            Phase::Passing => {
                self.outcome = Outcome::Done { rounds: self.work.number };
                self.records.push(self.work.record(&self.inputs.baseline_commit));
                let mut steps = self.work.artifacts();
                steps.push(OrderStep::Measure);
                steps
            }
            Phase::Closing => vec![OrderStep::Stamp],
            Phase::Summing => vec![keep(SUMMARY.to_owned(), json(&self.summary()))],
            Phase::Committing => vec![OrderStep::Commit { message: self.commit_message() }],
            Phase::Opening | Phase::Verifying | Phase::Failing | Phase::Refusing => Vec::new(),
        }
    }

    /// Each at the baseline, which the ones before may have left.
    fn probes(&self) -> Vec<OrderStep> {
        let commands = &self.inputs.order.must_fail_before;
        let runs = commands.iter().zip(1..).flat_map(|(command, number)| {
            let log = format!("{PROBES}{number}");
            [OrderStep::Run { log, argv: command.argv.clone() }, OrderStep::RollBack]
        });
        runs.collect()
    }

    fn may_try_again(&self) -> bool {
        let failed = self.work.brief.as_ref().map(|brief| brief.stage);
        failed != Some(Stage::Exception) && self.work.number < self.inputs.max_attempts
    }

    /// The attempt, or the run before its first one, has failed: nothing of it stays in the tree.
    pub(super) fn fail(&mut self, brief: FailureBrief) {
        self.todo.clear();
        if matches!(self.phase, Phase::Opening | Phase::Probing) {
            if self.phase == Phase::Probing {
                self.todo.push_back(OrderStep::RollBack);
            }
            self.phase = Phase::Refusing;
            self.todo.push_back(keep("preflight/failure_brief.json".to_owned(), json(&brief)));
            self.refused = Some(brief);
            return;
        }
        self.phase = Phase::Failing;
        self.outcome = Outcome::AttemptsUsedUp { rounds: self.work.number };
        if self.work.has_written() {
            self.todo.push_back(OrderStep::RollBack);
        }
        self.work.brief = Some(brief);
        self.records.retain(|record| record.attempt_index != self.work.number);
        self.records.push(self.work.record(&self.inputs.baseline_commit));
        self.todo.extend(self.work.artifacts());
    }

    /// The tree is at the baseline again. An attempt that has failed already goes on; any other begins again where the model has
    /// answered, since that was paid for. Where it has not, and the run was over for that, it is asked again.
    pub(super) fn rewind(&mut self) {
        let passed = matches!(self.outcome, Outcome::Done { .. });
        let was_over = self.phase == Phase::Summing && self.todo.is_empty();
        match self.phase {
            Phase::Summing if was_over && matches!(self.outcome, Outcome::ModelUnavailable { .. }) => {
                self.begin_again();
            }
            Phase::Opening => {}
            Phase::Probing => self.todo = self.probes().into(),
            Phase::Failing | Phase::Refusing | Phase::Closing | Phase::Summing if !passed => {}
            Phase::Asking
            | Phase::Verifying
            | Phase::Accepting
            | Phase::Checking
            | Phase::Passing
            | Phase::Failing
            | Phase::Refusing
            | Phase::Closing
            | Phase::Summing
            | Phase::Committing => self.begin_again(),
        }
    }

    fn begin_again(&mut self) {
        self.records.retain(|record| record.attempt_index != self.work.number);
        self.outcome = Outcome::AttemptsUsedUp { rounds: self.work.number };
        self.tree_hash_after = None;
        self.work.again();
        self.phase = Phase::Asking;
        self.todo = match self.work.answer.clone() {
            Some(answer) => vec![self.write(answer)].into(),
            None => self.steps_of(Phase::Asking).into(),
        };
    }
}
