//! Whether a turn counts.

use code_commit_engine::{Named as _, TurnAdvice, Turned};

use crate::failed::Report;
use crate::{FAILED_SPECS, Role, reports};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Good,
    /// It does not count, but a retry may: what to tell the role.
    Again(String),
    /// It does not count, and a retry is pointless: what to tell the person.
    Stop(String),
}

/// Whether a turn left a report in the reports folder. A report that it removed does not count.
#[must_use]
pub fn has_report(turned: &Turned) -> bool {
    let folder = reports(&turned.role);
    turned
        .changed
        .iter()
        .any(|path| path.starts_with(&folder) && !turned.gone.contains(path))
}

/// A turn counts if it ended well and its report exists. An answer that was cut off looks like a
/// good end, but has no report.
pub(super) fn judge(turned: &Turned, role: Role) -> Verdict {
    match turned.end.then {
        TurnAdvice::Use if has_report(turned) => Verdict::Good,
        TurnAdvice::Use => {
            Verdict::Again(format!("wrote no report into `{}`.", reports(role.name())))
        }
        TurnAdvice::Retry => Verdict::Again(turned.end.to_string()),
        TurnAdvice::Renew
        | TurnAdvice::WaitUntil(_)
        | TurnAdvice::Repeat
        | TurnAdvice::Limit(_)
        | TurnAdvice::Stop => Verdict::Stop(turned.end.to_string()),
    }
}

/// Whether the verifier's turn created something at the path of `failed_specs.md`. It may be gone
/// if the run was killed before it was read.
pub(super) fn left_failures(turned: &Turned) -> bool {
    let is_it = |path: &String| path.split('/').next() == Some(FAILED_SPECS);
    turned
        .changed
        .iter()
        .any(|path| is_it(path) && !turned.gone.contains(path))
}

/// What the verifier has to correct in `failed_specs.md`, if anything.
pub(super) fn verification(report: &Report) -> Option<String> {
    if report.problems.is_empty() {
        return None;
    }
    let problems: String = report
        .problems
        .iter()
        .map(|problem| format!("- {problem}\n"))
        .collect();
    Some(format!(
        "`failed_specs.md` has entries that nobody can act on. Write each as the three lines SPEC:, INPUT:, OBSERVED:\n\n{problems}"
    ))
}
