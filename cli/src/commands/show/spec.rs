//! `code-commit runs` and `code-commit show` for the runs of the spec loop.

use std::path::Path;
use std::time::Duration;

use code_commit_engine::{Line, Outcome, Turned};
use code_commit_report::{DIM, GOOD, Output, STRONG, WARN, holds_for, phrases, printable};
use code_commit_runs::spec::Lines;
use code_commit_runs::spec::history::{Past, all, word};
use code_commit_runs::{Failure, records};
use serde_json::json;

/// Prints a line for each run; gives their number.
pub fn list(root: &Path, output: &Output) -> usize {
    let all = all(root);
    for past in &all {
        let (name, outcome) = (records::name(&past.path), past.outcome());
        output.object(&json!({
            "run": name, "loop": "spec", "outcome": outcome.as_ref().map(Outcome::code), "rounds": outcome.as_ref().map(Outcome::round),
            "folder": past.path.to_string_lossy(),
        }));
        let style = if matches!(outcome, Some(Outcome::Done { .. })) { GOOD } else { WARN };
        let ended = output.paint(style, &word(outcome.as_ref()));
        output.report(&format!("{name}  spec: {ended}  {}", printable(&past.focus())));
    }
    all.len()
}

/// Everything about one run.
pub fn show(past: &Past, output: &Output) -> Result<(), Failure> {
    let record = past
        .record()
        .map_err(|error| Failure::refused(error, "its files are there all the same: look into the folder"))?;
    let name = records::name(&past.path);
    if output.json {
        output.object(
            &json!({ "run": name, "loop": "spec", "folder": past.path.to_string_lossy(), "facts": record.json }),
        );
        return Ok(());
    }
    output.report(&output.paint(STRONG, &name));
    output.report(printable(past.begun.inputs.focus.trim_end()).as_str());
    let lines = Lines::new(output.clone(), &past.begun.inputs.specs);
    lines.of_run(&past.folder());
    for line in &record.lines {
        if let Line::Turned(turned) = line {
            output.report(&turn(turned, output));
        }
        lines.recorded(line);
    }
    output.report(&format!("ended: {}", word(past.outcome().as_ref())));
    if let Some((_, of)) = record.end() {
        holds_for(of, output);
    }
    output.report(&format!("files: {}", past.path.display()));
    Ok(())
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
