//! How a run ends, or waits.

use agent::End;
use perform::{AgentStep, Cause, LimitPassed, Outcome};

use crate::run::{SpecLoop, Tries};
use crate::{Files, PhaseEvent};

/// Waits for a quota before one turn. Each is at least twice as long as the one before it.
const QUOTA_WAITS: u32 = 10;

impl SpecLoop {
    /// A quota that is said to be renewed already is asked for at growing intervals, and not for ever. It stays the same turn: an agent
    /// that is lost as often as it waits is not tried for ever either.
    pub(super) fn wait(&mut self, until_unix: u64) {
        if self.waits >= QUOTA_WAITS {
            return self.stop(&format!("the agent has used up its quota, also after {QUOTA_WAITS} waits"));
        }
        let (iteration, at_least_secs) = (self.iteration, 1 << self.waits);
        self.waits += 1;
        self.announce(&PhaseEvent::QuotaWaitStart { iteration, until_unix });
        self.push(AgentStep::Wait { until_unix, at_least_secs });
        self.push_fresh();
    }

    pub(super) fn stop_for_person(&mut self, content: String) {
        let content = if content.trim().is_empty() {
            format!("The {} agent found the specs wanting and did not say where.", self.role.name())
        } else {
            content
        };
        let place = self.files.issue();
        let filename = place.file.clone();
        let remedy =
            format!("settle it in {}, remove {}, then start again", self.inputs.specs, Files::path(&place));
        self.push(AgentStep::Write { place, text: format!("{content}\n").into() });
        let cause = Cause { code: "spec-issue".to_owned(), message: content.clone(), remedy: Some(remedy) };
        let outcome = Outcome::NeedsPerson { round: self.iteration, cause };
        let iteration = self.iteration;
        self.end(outcome, Some(&PhaseEvent::LoopSpecIssue { iteration, content, filename }));
    }

    pub(super) fn stop(&mut self, why: &str) {
        let bad_end = self.last_end.as_ref().filter(|end| **end != End::Ok);
        let code = bad_end.map_or("no-marker", End::code);
        let message = format!("{}: {why}", self.role.name());
        self.unavailable(code, message, "mend what stands in the way, then: code-commit spec run --resume");
    }

    /// What was done so far stays.
    pub(super) fn stop_at(&mut self, passed: &LimitPassed) {
        self.unavailable(
            passed.code,
            passed.message.clone(),
            "look at what is there, raise the limit, then: code-commit spec run --resume",
        );
    }

    fn unavailable(&mut self, code: &str, message: String, remedy: &str) {
        let cause = Cause { code: code.to_owned(), message, remedy: Some(remedy.to_owned()) };
        // The session's files stay: the run can be gone on with.
        self.outcome = Outcome::ModelUnavailable { round: self.iteration, cause };
    }

    /// The turn that had no end is asked again, by a fresh agent.
    pub(super) fn reopen(&mut self) {
        self.steps.clear();
        self.tries = Tries::default();
        self.waits = 0;
        self.push_fresh();
    }

    /// The session's files go; the last event is the last thing that happens.
    pub(super) fn end(&mut self, outcome: Outcome, event: Option<&PhaseEvent>) {
        for place in self.files.all() {
            self.push(AgentStep::Delete(place));
        }
        if let Some(event) = event {
            self.announce(event);
        }
        self.outcome = outcome;
    }
}
