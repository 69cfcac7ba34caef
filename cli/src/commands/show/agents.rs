//! `code-commit runs` and `code-commit show` for runs of agents: phases and specs.

use std::path::Path;
use std::time::Duration;

use code_commit_engine::{Line, Outcome, Turned};
use code_commit_perform::Past;
use code_commit_report::{DIM, GOOD, Output, STRONG, WARN, holds_for, phrases, printable};
use code_commit_runs::registry::Known;
use code_commit_runs::spec::Lines;
use code_commit_runs::spec::history::{self, word};
use code_commit_runs::{Failure, chronicle, records};
use serde_json::json;

/// One line for the run.
pub fn list(known: &Known, root: &Path, output: &Output) {
    let run = known.path(root);
    let (name, kind) = (records::name(&run), known.kind(root));
    let outcome = Past::read(&run).ok().and_then(|past| past.outcome().cloned());
    output.object(&json!({
        "run": name, "loop": kind, "outcome": outcome.as_ref().map(Outcome::code), "rounds": outcome.as_ref().map(Outcome::round),
        "folder": run.to_string_lossy(),
    }));
    let style = if matches!(outcome, Some(Outcome::Done { .. })) { GOOD } else { WARN };
    let ended = output.paint(style, &ended(&kind, outcome.as_ref()));
    let (since, asked) = (known.since(), printable(&asked(known, root)));
    output.report(&format!("{name}  {}: {ended}{since}  {asked}", printable(&kind)));
}

/// Everything about one run.
pub fn show(known: &Known, root: &Path, output: &Output) -> Result<(), Failure> {
    let run = known.path(root);
    let past = Past::read(&run)
        .map_err(|error| Failure::refused(error, "its files are there all the same: look into the folder"))?;
    let (name, kind) = (records::name(&run), known.kind(root));
    if output.json {
        output.object(
            &json!({ "run": name, "loop": kind, "folder": run.to_string_lossy(), "facts": past.json }),
        );
        return Ok(());
    }
    output.report(&output.paint(STRONG, &name));
    output.report(printable(asked(known, root).trim_end()).as_str());
    let specs = history::at(&run).map(|past| past.begun.inputs.specs);
    let lines = specs.map(|specs| Lines::new(output.clone(), &specs));
    lines.iter().for_each(|lines| lines.of_run(&records::open(&run)));
    for line in &past.lines {
        if let Line::Turned(turned) = line {
            output.report(&turn(turned, output));
        }
        match &lines {
            Some(lines) => lines.recorded(line),
            None => code_commit_report::line("turn", 0, line, output),
        }
    }
    output.report(&format!("ended: {}", ended(&kind, past.outcome())));
    if let Some((_, of)) = past.end() {
        holds_for(of, output);
    }
    output.report(&format!("files: {}", run.display()));
    Ok(())
}

fn ended(kind: &str, outcome: Option<&Outcome>) -> String {
    if kind == "spec" {
        return word(outcome);
    }
    outcome.map_or("not finished".to_owned(), |outcome| outcome.code().replace('-', " "))
}

fn asked(known: &Known, root: &Path) -> String {
    let run = known.path(root);
    match history::at(&run) {
        Some(past) => past.focus(),
        None => chronicle::Found::at(run).facts().query,
    }
}

fn turn(turned: &Turned, output: &Output) -> String {
    let number = output.paint(DIM, &format!("turn {}", turned.number));
    let cost = phrases::cost(turned.cost_usd);
    let took = phrases::seconds(Duration::from_millis(turned.elapsed_ms));
    let said = &turned.answer.stored.file;
    format!(
        "{number}  the {} agent {}: {said}, {took}, {cost}",
        turned.role,
        printable(&turned.end.to_string())
    )
}
