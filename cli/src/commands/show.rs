//! `code-commit runs` and `code-commit show`: what happened.

use std::time::{Duration, SystemTime};

use code_commit_engine::Outcome;
use code_commit_report::{
    GOOD, Output, STRONG, WARN, figures, phrases, printable, printable_name, steps,
};
use code_commit_runs::chronicle::{self, Found};
use code_commit_runs::{Exit, Failure, Host, Project, changes, order, records};
use code_commit_timeline::{Run, title};
use serde_json::json;

use super::page::redactor;
use crate::args::{RunName, RunsArgs, Since, Status};

/// Bytes of both ends of a file that says why a run failed.
const LONGEST: u64 = 1 << 20;

/// Lists the runs of this project, of all loops, in the order in which they began: the newest first.
pub fn list(args: &RunsArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let from_ms = args.since.map(|since| match since {
        Since::Day(from_ms) => from_ms,
        Since::Ago(ago) => millis(records::now())
            .saturating_sub(i64::try_from(ago.as_millis()).unwrap_or(i64::MAX)),
    });
    let began = |found: &Found, run: &Run| match run.steps.from_ms {
        // A run of `apply` has no journal.
        0 => millis(records::last_written(&found.path)),
        from_ms => from_ms,
    };
    let with_time = |found: Found| {
        let run = found.facts();
        (began(&found, &run), found, run)
    };
    let mut all: Vec<(i64, Found, Run)> =
        chronicle::all(host)?.into_iter().map(with_time).collect();
    let is_any = !all.is_empty();
    all.retain(|(began, found, run)| {
        from_ms.is_none_or(|from_ms| *began >= from_ms) && is_meant(args, found, run)
    });
    all.sort_by_key(|(began, ..)| std::cmp::Reverse(*began));
    if all.is_empty() {
        let elsewhere = Project::here(host)?.registry().elsewhere();
        host.output.note(&match elsewhere {
            _ if is_any => "no run matches".to_owned(),
            Some(elsewhere) => format!("there is no run here; {elsewhere}"),
            None => "there is no run yet".to_owned(),
        });
    }
    all.iter()
        .for_each(|(began, found, run)| line(*began, found, run, host));
    Ok(Exit::Done)
}

fn is_meant(args: &RunsArgs, found: &Found, run: &Run) -> bool {
    let is_status = |status: Status| match status {
        Status::Good => run.is_good == Some(true) && !found.known.undone,
        Status::Failed => run.is_good == Some(false),
        Status::Unfinished => run.is_good.is_none() && !found.known.undone,
        Status::Undone => found.known.undone,
    };
    let text = format!(
        "{}\n{}\n{}",
        run.query,
        run.verdict,
        run.remark.as_deref().unwrap_or_default()
    )
    .to_lowercase();
    args.kind.as_ref().is_none_or(|kind| *kind == run.kind)
        && args.status.is_none_or(is_status)
        && args
            .model
            .as_ref()
            .is_none_or(|model| run.model.contains(&**model))
        && args
            .grep
            .as_ref()
            .is_none_or(|words| text.contains(&words.to_lowercase()))
}

fn millis(time: SystemTime) -> i64 {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn line(began_ms: i64, found: &Found, run: &Run, host: Host<'_>) {
    let output = host.output;
    let (steps, query) = (&run.steps, run.title());
    let rounds = steps.rounds_asked();
    let is_over = steps.outcome.is_some();
    let elapsed_ms = is_over.then(|| steps.elapsed_ms());
    let outcome = steps.outcome.as_ref().map(Outcome::code);
    output.object(&json!({
        "run": run.name, "loop": run.kind, "outcome": outcome, "verdict": run.verdict, "remark": run.remark,
        "rounds": rounds, "undone": run.undone, "folder": found.path.to_string_lossy(), "query": query,
        "cost_usd": steps.cost_usd().filter(|_| is_over), "elapsed_ms": elapsed_ms, "began_ms": began_ms,
        "model": run.model,
    }));
    let spent = elapsed_ms.map_or_else(String::new, |elapsed_ms| {
        let cost = phrases::cost(steps.cost_usd());
        format!(
            ", {cost}, {}",
            phrases::seconds(Duration::from_millis(elapsed_ms))
        )
    });
    let query = query.map_or_else(String::new, |query| format!("  {}", printable_name(&query)));
    // The loop is named where the name of the run does not say it.
    let kind = if run.name.contains(&run.kind) {
        String::new()
    } else {
        format!("{}: ", printable(&run.kind))
    };
    let (ended, step, since) = (ended(run, output), step(run, host), found.known.since());
    output.report_prose(&format!(
        "{}  {kind}{ended}, {step}s {rounds}{spent}{since}{query}",
        run.name
    ));
}

/// `done`, `PASS (success)`.
fn ended(run: &Run, output: &Output) -> String {
    let style = if run.is_good == Some(true) {
        GOOD
    } else {
        WARN
    };
    let remark = run.remark.as_deref().and_then(title);
    let remark = remark.map_or_else(String::new, |remark| format!(" ({})", printable(&remark)));
    format!("{}{remark}", output.paint(style, &printable(&run.verdict)))
}

/// The loop's word for a round.
fn step(run: &Run, host: Host<'_>) -> &'static str {
    host.loops
        .iter()
        .find(|kind| kind.name == run.kind)
        .map_or("round", |kind| kind.step)
}

/// Everything about one run: rounds, prompts, replies, refusals, builds, cost, changes.
pub fn show(args: &RunName, host: Host<'_>) -> Result<Exit, Failure> {
    let (output, root) = (host.output, host.root()?);
    let found = chronicle::find(args.run.as_deref(), host)?;
    let (path, past) = (&found.path, records::past(&found.path)?);
    let run = found.whole(&root, &redactor(&root, host))?;
    let edits = run.edits();
    let stat = |edit| changes::stat_of_edit(edit, &run.contents);
    let stats: Vec<_> = edits.iter().map(stat).collect();
    output.object(&json!({
        "run": run.name, "loop": run.kind, "undone": run.undone, "folder": path.to_string_lossy(),
        "parent": run.parent, "facts": past.json, "files": stats, "summary": order::summary(&records::open(path), &past),
    }));
    output.report(&format!(
        "{}{}",
        output.paint(STRONG, &run.name),
        found.known.since()
    ));
    run.title()
        .iter()
        .for_each(|title| output.report_prose(&printable_name(title)));
    run.parent
        .iter()
        .for_each(|parent| output.report(&format!("continues {}", printable_name(parent))));
    let read = |file: &str| {
        let (start, end, _) = found.ends(file, LONGEST)?;
        Some(start + &end)
    };
    steps(step(&run, host), &found.facts().steps, &read, output);
    let missed = matches!(run.steps.outcome, Some(Outcome::AttemptsUsedUp { .. }));
    let why = run.steps.reason(&read).filter(|_| missed);
    let why = why.map_or_else(String::new, |why| {
        format!(": {}", printable_name(&why.text))
    });
    output.report_prose(&format!("ended: {}{why}", ended(&run, output)));
    let log = path
        .strip_prefix(&root)
        .unwrap_or(path)
        .display()
        .to_string();
    let used = figures(&run.steps, step(&run, host), &log);
    output.report_prose(&used);
    for edit in &edits {
        let diff = changes::of_edit(edit, &run.contents);
        output.report(changes::coloured(&diff, output).trim_end());
    }
    Ok(Exit::Done)
}
