//! `spec status`: what waits, and how the last runs ended.

use std::path::Path;

use engine::{AgentFact, Outcome};
use logging::{Redactor, RunFolder};
use loop_spec::{BACKLOG, ISSUES, STORE, TBD};
use serde_json::json;

use crate::commands::spec::{perform, project};
use crate::exit::{Exit, Failure};
use crate::output::{Output, STRONG, printable};

/// So many runs are shown.
const RUNS: usize = 5;

/// Prints it.
pub fn run(root: &Path, output: &Output) -> Result<Exit, Failure> {
    let (_, runs) = project::state(root)?;
    let lists = [("Spec issues", ISSUES), ("Backlog", BACKLOG), ("To be discussed", TBD)];
    for (title, folder) in lists {
        let names = project::names(root, folder);
        output.object(&json!({ "event": "status", "folder": format!("{STORE}/{folder}"), "files": names }));
        output.report(&output.paint(STRONG, &format!("{title}: {}", names.len())));
        for name in names {
            let text = std::fs::read_to_string(project::folder(root, folder).join(&name)).unwrap_or_default();
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            output.report(&format!("  {STORE}/{folder}/{}  {}", printable(&name), printable(&short(first))));
        }
    }
    output.report(&output.paint(STRONG, "Last runs"));
    for path in
        project::runs(&runs).into_iter().rev().filter(|path| perform::begun(path).is_some()).take(RUNS)
    {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let begun = perform::begun(&path);
        let focus = begun.map(|begun| begun.inputs.focus).unwrap_or_default();
        let outcome = outcome(path);
        let word = word(outcome.as_ref());
        output.object(&json!({ "event": "run", "name": name, "focus": focus, "outcome": outcome }));
        let focus = short(focus.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default());
        output.report(&format!("  {name}  {word}  {}", printable(&focus)));
    }
    Ok(Exit::Done)
}

fn outcome(path: std::path::PathBuf) -> Option<Outcome> {
    let facts: Vec<AgentFact> = engine::facts_of(&RunFolder::open(path, Redactor::default())).ok()?;
    let last = facts.into_iter().next_back()?;
    if let AgentFact::Ended { outcome } = last { Some(outcome) } else { None }
}

fn word(outcome: Option<&Outcome>) -> String {
    match outcome {
        Some(Outcome::Done { rounds }) => format!("approved in iteration {rounds}"),
        Some(Outcome::AttemptsUsedUp { rounds } | Outcome::Stuck { rounds, .. }) => {
            format!("not approved after {rounds} iterations")
        }
        Some(Outcome::NeedsPerson { .. }) => "spec issue".to_owned(),
        Some(Outcome::ModelUnavailable { cause, .. }) => format!("stopped: {}", cause.code),
        None => "not at its end".to_owned(),
    }
}

fn short(text: &str) -> String {
    let text: String = text.trim_start_matches(['#', ' ']).chars().take(60).collect();
    text.trim_end().to_owned()
}
