//! The last words of a run.

use code_commit_engine::{HoldsFor, Outcome};
use code_commit_logging::RunFolder;
use code_commit_perform::Past;
use code_commit_report::{BAD, Output, Volume, printable};
use serde_json::{Value, json};

pub(super) fn say(output: &Output, outcome: &Outcome, folder: &RunFolder) {
    output.object(&summary(outcome, folder));
    say_for_person(output, outcome, folder);
}

/// For a run that was over before: nobody was asked.
pub(super) fn say_again(output: &Output, outcome: &Outcome, folder: &RunFolder) {
    let mut last = summary(outcome, folder);
    if let Some(fields) = last.as_object_mut() {
        fields.insert("from_record".to_owned(), json!(true));
    }
    output.object(&last);
    say_for_person(output, outcome, folder);
}

fn held_for(folder: &RunFolder) -> HoldsFor {
    let past = Past::read(folder.path()).unwrap_or_default();
    past.end().map(|(_, holds_for)| holds_for.clone()).unwrap_or_default()
}

fn summary(outcome: &Outcome, folder: &RunFolder) -> Value {
    let (holds_for, log) = (held_for(folder), folder.path().display().to_string());
    json!({ "event": "summary", "outcome": outcome, "holds_for": holds_for, "log": log })
}

fn say_for_person(output: &Output, outcome: &Outcome, folder: &RunFolder) {
    let log = folder.path().display().to_string();
    if let Outcome::NeedsPerson { cause, .. } | Outcome::ModelUnavailable { cause, .. } = outcome {
        if matches!(outcome, Outcome::ModelUnavailable { .. }) {
            output.report(&output.paint(BAD, &format!("[Loop] Stopped: {}", printable(&cause.message))));
        }
        output.report(&format!("help: {}", cause.remedy.as_deref().unwrap_or_default()));
    }
    if matches!(outcome, Outcome::AttemptsUsedUp { .. }) {
        output.report("help: go on from this review, or from one of yours: code-commit spec review FILE");
    }
    if output.volume == Volume::Verbose {
        code_commit_report::holds_for(&held_for(folder), output);
    }
    output.report(&format!("log: {log}"));
}
