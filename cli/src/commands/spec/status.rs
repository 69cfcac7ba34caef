//! `spec status`: pending work, and how the last runs ended.

use code_commit_loop_spec::{BACKLOG, ISSUES, STORE, TBD};
use code_commit_report::{STRONG, printable_name};
use code_commit_runs::spec::history::{self, word};
use code_commit_runs::spec::{self, Failed, project};
use code_commit_runs::{Exit, Site, records};
use code_commit_timeline::title;
use serde_json::json;

/// Runs to show.
const RUNS: usize = 5;

pub fn run(site: &Site<'_>) -> Exit {
    let (root, output) = (&*site.root, site.host.output);
    let parked = spec::parked(root);
    let lists = [
        ("Spec issues", ISSUES),
        ("Backlog", BACKLOG),
        ("To be discussed", TBD),
    ];
    for (heading, folder) in lists {
        let names = project::names(root, folder);
        output.object(
            &json!({ "event": "status", "folder": format!("{STORE}/{folder}"), "files": names }),
        );
        output.report(&output.paint(STRONG, &format!("{heading}: {}", names.len())));
        for name in names {
            let text = std::fs::read_to_string(project::folder(root, folder).join(&name))
                .unwrap_or_default();
            let first = title(&text).unwrap_or_default();
            output.report(&format!(
                "  {STORE}/{folder}/{}  {}",
                printable_name(&name),
                printable_name(&first)
            ));
        }
    }
    if !parked.is_empty() {
        output.report(&output.paint(STRONG, &format!("Parked until edited: {}", parked.len())));
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
    let runs = history::all(site);
    output.report(&output.paint(
        STRONG,
        if runs.is_empty() {
            "Last runs: none"
        } else {
            "Last runs"
        },
    ));
    for past in runs.iter().take(RUNS) {
        let (name, outcome) = (records::name(&past.path), past.outcome());
        let focus = &past.begun.inputs.focus;
        output.object(&json!({ "event": "run", "name": name, "focus": focus, "outcome": outcome }));
        let focus = title(focus).unwrap_or_default();
        output.report(&format!(
            "  {name}  {}  {}",
            word(outcome.as_ref()),
            printable_name(&focus)
        ));
    }
    Exit::Done
}
