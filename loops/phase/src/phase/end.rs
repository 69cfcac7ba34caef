//! How a phase ends before it has passed.

use code_commit_engine::{Cause, Named as _, Outcome, Turned};

use super::{Halt, Work};
use crate::Role;

impl<H> Work<'_, H> {
    pub(super) fn stuck(&self) -> Cause {
        Cause {
            code: "stuck".to_owned(),
            message: match self.iteration {
                1 => "contracts still fail after 1 verification".to_owned(),
                times => format!("contracts still fail after {times} verifications"),
            },
            remedy: Some("clarify the specs, then: code-commit phase run".to_owned()),
        }
    }

    /// A phase whose work is not committed has not passed.
    pub(super) fn not_committed<S>(&self, message: String) -> Halt<S> {
        let remedy = Some("fix what prevents the commit, then: code-commit phase run".to_owned());
        let cause = Cause {
            code: "not-committed".to_owned(),
            message,
            remedy,
        };
        Halt::End(Outcome::NeedsPerson {
            round: self.iteration,
            cause,
        })
    }

    pub(super) fn end_at<S>(&self, limit: Cause) -> Halt<S> {
        let hint = "check the result, raise the limit, then: code-commit phase run";
        self.end(limit.code, limit.message, hint)
    }

    pub(super) fn stopped<S>(&self, role: Role, turned: &Turned) -> Halt<S> {
        self.give_up(role, &turned.end.how, &turned.end.said)
    }

    pub(super) fn give_up<S>(&self, role: Role, code: &str, message: &str) -> Halt<S> {
        let message = format!("the {} {message}", role.name());
        self.end(
            code.to_owned(),
            message,
            "fix the cause, then: code-commit phase run",
        )
    }

    fn end<S>(&self, code: String, message: String, hint: &str) -> Halt<S> {
        let cause = Cause {
            code,
            message,
            remedy: Some(hint.to_owned()),
        };
        Halt::End(Outcome::ModelUnavailable {
            round: self.iteration,
            cause,
        })
    }
}
