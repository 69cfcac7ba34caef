//! Going through the recorded run of an order again: the facts answer what the model, the commands and the disk answered then; the loop
//! decides anew, and every prompt, every command and every artifact that it asks for is compared.

use std::collections::VecDeque;

use logging::sha256_hex;

use crate::order::{OrderFact, OrderStep};
use crate::replay::{ReplayFault, compare, differs};
use crate::{CallFact, Loop, Next, Outcome};

/// Lets `decide` run to its end with these facts for answers; how the run ends.
pub fn replay_order<L>(decide: &mut L, facts: Vec<OrderFact>) -> Result<Outcome, ReplayFault>
where
    L: Loop<Step = OrderStep, Fact = OrderFact> + ?Sized,
{
    let mut record = Recorded { facts: facts.into(), attempt: 0 };
    loop {
        // A run that was stopped and went on did its last step again.
        if record.facts.front() == Some(&OrderFact::Resumed) {
            record.facts.pop_front();
            decide.learn(&OrderFact::Resumed);
            continue;
        }
        match decide.next() {
            Next::Do(step) => {
                if let Some(fact) = record.answer(&step)? {
                    decide.learn(&fact);
                }
            }
            Next::Stop(outcome) => {
                record.ends(&outcome)?;
                // A run that ended because the model gave no answer may have gone on.
                if record.facts.is_empty() {
                    return Ok(outcome);
                }
            }
        }
    }
}

struct Recorded {
    facts: VecDeque<OrderFact>,
    attempt: u32,
}

impl Recorded {
    /// What came of the step then; none where the run was stopped in the middle of it.
    fn answer(&mut self, step: &OrderStep) -> Result<Option<OrderFact>, ReplayFault> {
        if let OrderStep::Ask { attempt, .. } | OrderStep::Write { attempt, .. } = step {
            self.attempt = *attempt;
        }
        while self.facts.front() != Some(&OrderFact::Resumed) {
            let Some(fact) = self.facts.pop_front() else {
                return Err(ReplayFault::RecordEnds { round: self.attempt });
            };
            if self.is_answer(step, &fact)? {
                return Ok(Some(fact));
            }
        }
        Ok(None)
    }

    /// Whether the fact answers the step; false for one that happened on the way to the answer.
    fn is_answer(&self, step: &OrderStep, fact: &OrderFact) -> Result<bool, ReplayFault> {
        if let (OrderStep::Ask { prompt, .. }, OrderFact::Call(call)) = (step, fact) {
            return self.ends_call(prompt, call);
        }
        // It went to a person, and decided nothing.
        if matches!(fact, OrderFact::Warned { .. }) {
            return Ok(false);
        }
        let is_of_step = match step {
            OrderStep::Run { log, argv } => {
                if let OrderFact::Ran { log: then, argv: then_argv, .. } = fact {
                    self.same("the command", &format!("{then}: {then_argv:?}"), &format!("{log}: {argv:?}"))?;
                }
                matches!(fact, OrderFact::Ran { .. })
            }
            OrderStep::Keep { file, text } => {
                if let OrderFact::Kept { stored } = fact {
                    let now = format!("{file} {}", sha256_hex(text.as_bytes()));
                    self.same("an artifact", &format!("{} {}", stored.file, stored.sha256), &now)?;
                }
                matches!(fact, OrderFact::Kept { .. })
            }
            OrderStep::Ask { .. } => false,
            OrderStep::Stamp => matches!(fact, OrderFact::Stamped { .. }),
            OrderStep::Look { .. } => matches!(fact, OrderFact::Looked { .. }),
            OrderStep::Write { .. } => matches!(fact, OrderFact::Written { .. } | OrderFact::Refused { .. }),
            OrderStep::RollBack => matches!(fact, OrderFact::RolledBack { .. }),
            OrderStep::Measure => matches!(fact, OrderFact::Measured { .. }),
            OrderStep::Commit { .. } => {
                matches!(fact, OrderFact::Committed { .. } | OrderFact::NotCommitted { .. })
            }
        };
        if is_of_step || matches!(fact, OrderFact::Broke { .. }) {
            Ok(true)
        } else {
            Err(differs(self.attempt, "the next step", &format!("{fact:?}"), &format!("{step:?}")))
        }
    }

    /// The same of a call: its prompt, and attempts that failed, come before its answer.
    fn ends_call(&self, prompt: &str, call: &CallFact) -> Result<bool, ReplayFault> {
        match call {
            CallFact::Asked { prompt: then, .. } => {
                self.same("the prompt", then.as_str(), prompt)?;
                Ok(false)
            }
            CallFact::Attempted { .. } => Ok(false),
            CallFact::Answered { .. } | CallFact::Unanswered { .. } => Ok(true),
        }
    }

    fn ends(&mut self, outcome: &Outcome) -> Result<(), ReplayFault> {
        let Some(fact) = self.facts.pop_front() else {
            return Err(ReplayFault::RecordEnds { round: self.attempt });
        };
        let now = OrderFact::Ended { outcome: outcome.clone() };
        self.same("the end", &format!("{fact:?}"), &format!("{now:?}"))
    }

    fn same(&self, what: &'static str, recorded: &str, now: &str) -> Result<(), ReplayFault> {
        compare(self.attempt, what, recorded, now)
    }
}
