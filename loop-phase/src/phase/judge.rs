//! Whether a turn counts.

use agent::End;
use perform::Turned;

use crate::failed::Report;
use crate::reports;

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
pub(super) fn build(turned: &Turned) -> Verdict {
    if turned.end != End::Ok {
        let end = turned.end.to_string();
        return if turned.end.may_pass() { Verdict::Again(end) } else { Verdict::Stop(end) };
    }
    if has_report(turned) {
        Verdict::Good
    } else {
        Verdict::Again(format!("wrote no report into `{}`.", reports(&turned.role)))
    }
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
