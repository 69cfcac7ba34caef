//! `code-commit runs` and `code-commit show`: what happened.

use std::time::Duration;

use code_commit_engine::Outcome;
use code_commit_report::{GOOD, Output, STRONG, WARN, holds_for, phrases, printable, steps};
use code_commit_runs::chronicle::{self, Found};
use code_commit_runs::{Exit, Failure, Host, changes, order, records};
use code_commit_timeline::{Run, title};
use serde_json::json;

use crate::args::RunName;

/// Lists the runs of this project, newest first.
pub fn list(host: Host<'_>) -> Result<Exit, Failure> {
    let all = chronicle::all(host)?;
    if all.is_empty() {
        host.output.note("there is no run yet");
    }
    all.iter().for_each(|found| line(found, host));
    Ok(Exit::Done)
}

fn line(found: &Found, host: Host<'_>) {
    let (run, output) = (found.facts(), host.output);
    let (steps, query) = (&run.steps, run.title());
    let rounds = steps.rounds_asked();
    let is_over = steps.outcome.is_some();
    let elapsed_ms = is_over.then(|| steps.elapsed_ms());
    let outcome = steps.outcome.as_ref().map(Outcome::code);
    output.object(&json!({
        "run": run.name, "loop": run.kind, "outcome": outcome, "verdict": run.verdict, "remark": run.remark,
        "rounds": rounds, "undone": run.undone, "folder": found.path.to_string_lossy(), "query": query,
        "cost_usd": steps.cost_usd().filter(|_| is_over), "elapsed_ms": elapsed_ms,
    }));
    let spent = elapsed_ms.map_or_else(String::new, |elapsed_ms| {
        let cost = phrases::cost(steps.cost_usd());
        format!(", {cost}, {}", phrases::seconds(Duration::from_millis(elapsed_ms)))
    });
    let query = query.map_or_else(String::new, |query| format!("  {}", printable(&query)));
    // The loop is named where the name of the run does not say it.
    let kind =
        if run.name.contains(&run.kind) { String::new() } else { format!("{}: ", printable(&run.kind)) };
    let (ended, step, since) = (ended(&run, output), step(&run, host), found.known.since());
    output.report_prose(&format!("{}  {kind}{ended}, {step}s {rounds}{spent}{since}{query}", run.name));
}

/// `done`, `PASS (success)`.
fn ended(run: &Run, output: &Output) -> String {
    let style = if run.is_good == Some(true) { GOOD } else { WARN };
    let remark = run.remark.as_deref().and_then(title);
    let remark = remark.map_or_else(String::new, |remark| format!(" ({})", printable(&remark)));
    format!("{}{remark}", output.paint(style, &printable(&run.verdict)))
}

/// The loop's word for a round.
fn step(run: &Run, host: Host<'_>) -> &'static str {
    host.loops.iter().find(|row| row.facts.kind == run.kind).map_or("round", |row| row.facts.step)
}

/// Everything about one run: rounds, prompts, replies, refusals, builds, cost, changes.
pub fn show(args: &RunName, host: Host<'_>) -> Result<Exit, Failure> {
    let (output, root) = (host.output, host.root()?);
    let found = chronicle::find(args.run.as_deref(), host)?;
    let (path, past) = (&found.path, records::past(&found.path)?);
    let changes = changes::of_run(&root, path).map_err(|error| {
        Failure::refused(error, format!("its other files still exist: look in {}", path.display()))
    })?;
    let run = found.facts();
    let stats: Vec<_> = changes.iter().map(changes::FileChange::stat).collect();
    output.object(&json!({
        "run": run.name, "loop": run.kind, "undone": run.undone, "folder": path.to_string_lossy(),
        "facts": past.json, "files": stats, "summary": order::summary(&records::open(path), &past),
    }));
    output.report(&format!("{}{}", output.paint(STRONG, &run.name), found.known.since()));
    run.title().iter().for_each(|title| output.report_prose(&printable(title)));
    steps(step(&run, host), &run.steps, output);
    output.report_prose(&format!("ended: {}", ended(&run, output)));
    let verdict = host.loops.iter().find(|row| row.facts.kind == run.kind).map(|row| row.facts.verdict);
    let about = verdict.and_then(|about| about.line(&run.steps));
    about.iter().for_each(|about| output.report_prose(about));
    holds_for(&run.steps.holds_for, output);
    output.report(&format!("files: {}", path.strip_prefix(&root).unwrap_or(path).display()));
    for change in &changes {
        output.report(changes::coloured(&change.diff(), output).trim_end());
    }
    Ok(Exit::Done)
}
