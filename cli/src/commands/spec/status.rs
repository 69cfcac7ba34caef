//! `spec status`: pending work, and how the last runs ended.

use code_commit_engine::Outcome;
use code_commit_loop_spec::{BACKLOG, ISSUES, STORE, TBD};
use code_commit_perform::Past;
use code_commit_report::{STRONG, phrases, printable_name};
use code_commit_runs::spec::{self, Failed, Store};
use code_commit_runs::{Exit, Failure, Project};
use code_commit_timeline::title;
use serde_json::json;

/// Runs to show.
const RUNS: usize = 5;

pub fn run(project: &Project<'_>) -> Result<Exit, Failure> {
    let (store, output) = (Store::of(project)?, project.host.output);
    let heading = |text: &str| output.report(&output.paint(STRONG, text));
    let parked = store.parked();
    let lists = [
        ("Spec issues", ISSUES),
        ("Backlog", BACKLOG),
        ("To be discussed", TBD),
    ];
    for (what, folder) in lists {
        let names = store.names(folder);
        output.object(
            &json!({ "event": "status", "folder": format!("{STORE}/{folder}"), "files": names }),
        );
        heading(&format!("{what}: {}", names.len()));
        for name in names {
            let text = std::fs::read_to_string(store.folder(folder).join(&name));
            let first = title(&text.unwrap_or_default()).unwrap_or_default();
            let (name, first) = (printable_name(&name), printable_name(&first));
            output.report(&format!("  {STORE}/{folder}/{name}  {first}"));
        }
    }
    if !parked.is_empty() {
        heading(&format!("Parked until edited: {}", parked.len()));
    }
    for Failed { item, times, why } in parked {
        output.object(
            &json!({ "event": "parked", "file": item.name, "failures": times, "why": why }),
        );
        let (name, why) = (printable_name(&item.name), printable_name(&why));
        output.report(&format!(
            "  {STORE}/{BACKLOG}/{name}  failed {times} times, the last time: {why}"
        ));
    }
    let runs: Vec<_> = spec::all(project).take(RUNS).collect();
    heading(if runs.is_empty() {
        "Last runs: none"
    } else {
        "Last runs"
    });
    for (known, plan) in runs {
        let (name, focus) = (known.name(&project.root), &plan.inputs.focus);
        let past = Past::read(&known.path(&project.root)).ok();
        let outcome = past.as_ref().and_then(Past::outcome);
        output.object(&json!({ "event": "run", "name": name, "focus": focus, "outcome": outcome }));
        let focus = title(focus).unwrap_or_default();
        let (how, focus) = (how_it_ended(outcome), printable_name(&focus));
        output.report(&format!("  {name}  {how}  {focus}"));
    }
    Ok(Exit::Done)
}

fn how_it_ended(outcome: Option<&Outcome>) -> String {
    match outcome {
        Some(Outcome::Done { rounds }) => format!("approved in iteration {rounds}"),
        Some(Outcome::AttemptsUsedUp { rounds }) => {
            let count = phrases::count(u64::from(*rounds), "iteration");
            format!("not approved after {count}")
        }
        Some(Outcome::NeedsPerson { .. }) => "spec issue".to_owned(),
        Some(Outcome::ModelUnavailable { cause, .. } | Outcome::Unfit { cause, .. }) => {
            format!("stopped: {}", cause.code)
        }
        None => "unfinished".to_owned(),
    }
}
