//! How a phase ends that does not pass.

use perform::{Cause, LimitPassed, Outcome, Turned};

use super::{PhaseLoop, Stage};

impl PhaseLoop {
    pub(super) fn end_at(&mut self, passed: LimitPassed) {
        let remedy = "look at what is there, raise the limit, then: code-commit phase run";
        self.end(passed.code, passed.message, remedy);
    }

    pub(super) fn stop(&mut self, turned: &Turned, message: &str) {
        self.give_up(if turned.end == agent::End::Ok { "no-report" } else { turned.end.code() }, message);
    }

    pub(super) fn give_up(&mut self, code: &str, message: &str) {
        let (name, _) = self.role();
        self.end(
            code,
            format!("the {name} {message}"),
            "mend what stands in the way, then: code-commit phase run",
        );
    }

    fn end(&mut self, code: &str, message: String, remedy: &str) {
        let cause = Cause { code: code.to_owned(), message, remedy: Some(remedy.to_owned()) };
        self.outcome = Outcome::ModelUnavailable { round: self.iteration, cause };
        self.stage = Stage::Over;
    }
}
