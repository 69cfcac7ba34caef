//! Whether a turn counts.

use engine::{Named as _, TurnAdvice, Turned};

use crate::failed::Report;
use crate::{FAILED_SPECS, Role, reports};

/// What to make of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It counts.
    Good,
    /// It does not, and may when it is tried again: what to tell the role.
    Again(String),
    /// It does not, and trying again is of no use: what to tell the person.
    Stop(String),
}

/// Whether a turn left a report where reports go. One that it removed is none.
#[must_use]
pub fn has_report(turned: &Turned) -> bool {
    let folder = reports(&turned.role);
    turned.changed.iter().any(|path| path.starts_with(&folder) && !turned.gone.contains(path))
}

/// A turn counts when it ended well and its report is there: an answer that was cut off looks like a good end, but it has not
/// come to its report.
pub(super) fn judge(turned: &Turned, role: Role) -> Verdict {
    match turned.end.then {
        TurnAdvice::Use if has_report(turned) => Verdict::Good,
        TurnAdvice::Use => Verdict::Again(format!("wrote no report into `{}`.", reports(role.name()))),
        TurnAdvice::Retry => Verdict::Again(turned.end.to_string()),
        TurnAdvice::Renew
        | TurnAdvice::WaitUntil(_)
        | TurnAdvice::Repeat
        | TurnAdvice::Limit(_)
        | TurnAdvice::Stop => Verdict::Stop(turned.end.to_string()),
    }
}

/// Whether the verifier's turn made something in the place of its file. It may be gone since, where
/// the run was killed before it was read.
pub(super) fn left_failures(turned: &Turned) -> bool {
    let is_it = |path: &String| path.split('/').next() == Some(FAILED_SPECS);
    turned.changed.iter().any(|path| is_it(path) && !turned.gone.contains(path))
}

/// What the verifier has to put right in its file, if anything.
pub(super) fn verification(report: &Report) -> Option<String> {
    if report.problems.is_empty() {
        return None;
    }
    let problems: String = report.problems.iter().map(|problem| format!("- {problem}\n")).collect();
    Some(format!(
        "`failed_specs.md` has entries that nobody can act on. Write each as the three lines SPEC:, INPUT:, OBSERVED:\n\n{problems}"
    ))
}
