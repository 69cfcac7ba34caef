//! The last words of a run.

use code_commit_engine::Outcome;
use code_commit_report::{BAD, printable};
use serde_json::{Map, Value, json};

use crate::life::Over;

/// For a person; gives what a program is told besides.
pub(super) fn tell(over: &Over<'_>) -> Map<String, Value> {
    let (output, log) = (over.output, over.run.path().display().to_string());
    if let Outcome::NeedsPerson { cause, .. } | Outcome::ModelUnavailable { cause, .. } = over.ended
    {
        if matches!(over.ended, Outcome::ModelUnavailable { .. }) {
            output.report(&output.paint(
                BAD,
                &format!("[Loop] Stopped: {}", printable(&cause.message)),
            ));
        }
        output.report(&format!(
            "help: {}",
            cause.remedy.as_deref().unwrap_or_default()
        ));
    }
    if matches!(over.ended, Outcome::AttemptsUsedUp { .. }) {
        output.report(
            "help: go on from this review, or from one of yours: code-commit spec review FILE",
        );
    }
    output.report(&format!("log: {log}"));
    let members = [
        ("outcome", json!(over.ended)),
        ("holds_for", json!(over.holds_for)),
        ("log", json!(log)),
    ];
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
