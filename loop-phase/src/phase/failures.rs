//! What the verifier left in `failed_specs.md` decides.

use std::sync::Arc;

use perform::Cause;

use super::judge::verification;
use super::{PhaseLoop, Stage};
use crate::FAILED_SPECS;

impl PhaseLoop {
    /// What is `odd` may have been left by an earlier try, and was not there before the first.
    pub(super) fn learn_failures(&mut self, text: Option<Arc<str>>, odd: bool) {
        if odd || (text.is_none() && self.left_failures()) {
            return self.odd_failures();
        }
        let report = crate::failed::parse(text.as_deref().unwrap_or_default());
        if let Some(complaint) = verification(&report)
            && self.tries < self.inputs.limits.tries
        {
            return self.again(complaint);
        }
        // What nobody can make sense of is no pass: it goes to the builder as it is.
        self.stage = if report.is_pass() { Stage::RemoveFailures } else { Stage::CommitFailed };
        self.failures = text.filter(|_| !report.is_pass());
    }

    /// Whether the verifier's turn made something there. It may be gone since, where the run was killed before it was read.
    fn left_failures(&self) -> bool {
        let is_it = |path: &String| path.split('/').next() == Some(FAILED_SPECS);
        self.turned.as_ref().is_some_and(|turned| {
            turned.changed.iter().any(|path| is_it(path) && !turned.gone.contains(path))
        })
    }

    /// A link, a folder, a pipe, a file without end: nobody can say that nothing failed.
    fn odd_failures(&mut self) {
        let complaint = "made a `failed_specs.md` that is no regular file of less than 16 MiB.";
        if self.tries < self.inputs.limits.tries {
            self.again(complaint.to_owned());
            self.stage = Stage::RemoveOldFailures;
            return;
        }
        self.give_up("odd-failures", complaint);
    }

    pub(super) fn stuck(&self) -> Cause {
        Cause {
            code: "stuck".to_owned(),
            message: match self.iteration {
                1 => "contracts still fail after 1 verification".to_owned(),
                times => format!("contracts still fail after {times} verifications"),
            },
            remedy: Some("make the specs say what is meant, then: code-commit phase run".to_owned()),
        }
    }
}
