//! `code-commit runs` and `code-commit show`: what happened.

use std::path::Path;

use engine::{Changed, Committed, Line, Problem};
use logging::{Redactor, RunFolder};
use loop_order::is_probe;
use perform::Past;
use serde_json::json;

use crate::args::RunName;
use crate::changes;
use crate::commands::order::{self, Recorded};
use crate::commands::runs::account::Account;
use crate::commands::{registry, runs, spec};
use crate::exit::{Exit, Failure};
use crate::output::{BAD, DIM, GOOD, Output, STRONG, WARN, printable};
use crate::terminal::{phrases, round_of};

/// Lists the runs of this project, the newest first.
pub fn list(output: &Output) -> Result<Exit, Failure> {
    let tree = super::work_tree(&super::here()?)?;
    let all = registry::all(&tree)?;
    for known in &all {
        let run = &known.path(tree.root());
        if Recorded::is_in(run) {
            order::list(known, &tree, output);
            continue;
        }
        let (name, undone) = (runs::name(run), known.undone);
        let (ended, rounds) = ending(run).unwrap_or((Some("damaged"), 0));
        let made_by = runs::loop_of(known, tree.root());
        // What a summary says of a run whose journal is not to be believed is not to be believed either.
        let believed = ended != Some("damaged");
        let account = believed.then(|| Account::of(&RunFolder::open(run.clone(), Redactor::default())));
        let account = account.unwrap_or_default();
        let mut object = json!({
            "run": name, "loop": made_by, "outcome": ended, "rounds": rounds, "undone": undone, "folder": run.to_string_lossy(),
        });
        object.as_object_mut().into_iter().for_each(|members| members.extend(account.json()));
        output.object(&object);
        let ended = ended.unwrap_or("not finished");
        let style = if matches!(ended, "done" | "applied") { GOOD } else { WARN };
        let (ended, since) = (output.paint(style, ended), known.since());
        let (spent, asked) = (account.spent(), account.asked());
        output.report_prose(&format!("{name}  {ended}, rounds {rounds}{spent}{since}{asked}"));
    }
    if spec::history::list(tree.root(), output) + all.len() == 0 {
        output.note("there is no run yet");
    }
    Ok(Exit::Done)
}

/// How a run ended, as far as its journal says, and how many rounds it took; none if the journal cannot be read.
fn ending(run: &Path) -> Option<(Option<&'static str>, u32)> {
    if !run.join(perform::JOURNAL).exists() {
        let ended = if is_applied(run) { "applied" } else { "nothing was done" };
        return Some((Some(ended), 0));
    }
    let past = Past::read(run).ok()?;
    let last_end = past
        .lines
        .iter()
        .rev()
        .find_map(|line| if let Line::Ended { outcome } = line { Some(outcome.code()) } else { None });
    Some((last_end, rounds_asked(&past.lines)))
}

/// Everything about one run: rounds, prompts, replies, refusals, builds, cost, and what it changed.
pub fn show(args: &RunName, output: &Output) -> Result<Exit, Failure> {
    let tree = super::work_tree(&super::here()?)?;
    let known = runs::find_known(&tree, args.run.as_deref());
    if let Some(past) = spec::history::meant(&tree, args.run.as_deref(), &known) {
        return spec::history::show(&past, output).map(|()| Exit::Done);
    }
    let known = known?;
    let run = known.path(tree.root());
    if Recorded::is_in(&run) {
        return order::show(&known, &tree, output).map(|()| Exit::Done);
    }
    let past = past(&run)?;
    let changes = changes::of_run(tree.root(), &run)?;
    if output.json {
        let stats: Vec<_> = changes.iter().map(changes::FileChange::stat).collect();
        output.object(&json!({
            "run": runs::name(&run), "loop": runs::loop_of(&known, tree.root()), "undone": known.undone, "folder": run.to_string_lossy(), "facts": past.json, "files": stats,
        }));
        return Ok(Exit::Done);
    }
    output.report(&format!("{}{}", output.paint(STRONG, &runs::name(&run)), known.since()));
    lines("round", &past.lines, output);
    if is_applied(&run) {
        output.report("applied: a reply that was given as text");
    }
    output.report(&format!("files: {}", run.strip_prefix(tree.root()).unwrap_or(&run).display()));
    for change in &changes {
        output.report(changes::coloured(&change.diff(), output).trim_end());
    }
    Ok(Exit::Done)
}

/// The last round, or attempt, in which the model was asked; 0 where it never was.
pub fn rounds_asked(lines: &[Line]) -> u32 {
    let asked = |line: &Line| if let Line::Asked(asked) = line { Some(asked.round) } else { None };
    lines.iter().filter_map(asked).max().unwrap_or_default()
}

/// The record of a run; `apply` has none, since nobody was asked.
pub fn past(run: &Path) -> Result<Past, Failure> {
    if is_applied(run) {
        return Ok(Past::default());
    }
    let folder = RunFolder::open(run.to_owned(), Redactor::default());
    let past = Past::read(run).and_then(|past| past.intact(&folder).map(|()| past));
    past.map_err(|error| Failure::refused(error, "its files still exist: look in the folder"))
}

/// Whether this is the record of an `apply` that came to its end: what to put back, and no journal.
fn is_applied(run: &Path) -> bool {
    !run.join(perform::JOURNAL).exists() && runs::has_applied(run)
}

/// What a person wants to know of these lines, each with the round or attempt that it belongs to:
/// `what` says which of them the run counts.
pub fn lines(what: &str, recorded: &[Line], output: &Output) {
    let mut now = 0;
    for one in recorded {
        now = round_of(one).unwrap_or(now);
        line(what, now, one, output);
    }
}

/// The same of one line.
pub fn line(what: &str, now: u32, recorded: &Line, output: &Output) {
    let head = if now == 0 { "preflight".to_owned() } else { format!("{what} {now}") };
    let say = |text: &str| output.report_prose(&format!("{}  {text}", output.paint(DIM, &head)));
    let warn = |problem: &Problem| say(&output.paint(WARN, &printable(&problem.message)));
    let wrote = |changes: &[Changed], warnings: &[Problem]| {
        changes.iter().for_each(|change| say(&phrases::change(change)));
        warnings.iter().for_each(warn);
    };
    match recorded {
        Line::Asked(_) | Line::Attempted(_) | Line::Answered(_) | Line::Unanswered(_) => {
            phrases::call(recorded, output).iter().for_each(|text| say(text));
        }
        Line::Applied(applied) => {
            if let Some(reason) = &applied.no_change {
                say(&format!("nothing to change: {}", printable(reason.trim())));
            }
            wrote(&applied.changes, &applied.warnings);
        }
        Line::Rejected(rejected) => {
            for problem in &rejected.problems {
                let text = format!("refused: {} [{}]", printable(&problem.message), problem.code);
                say(&output.paint(WARN, &text));
            }
        }
        Line::Built(built) => {
            let style = if built.passed() { GOOD } else { BAD };
            let text = format!("build: {}, {}", phrases::ended(built.ended), built.output.stored.file);
            say(&output.paint(style, &text));
        }
        Line::Looked(looked) if !looked.failed.is_empty() => {
            say(&output.paint(BAD, "not as the order wants it:"));
            looked.failed.iter().for_each(|condition| say(&printable(&phrases::condition(condition))));
        }
        Line::Written(written) => wrote(&written.changes, &written.warnings),
        Line::Refused(refused) => {
            say(&output.paint(WARN, "proposal refused, nothing was written:"));
            refused.problems.iter().for_each(warn);
        }
        Line::Ran(ran) => {
            let must_fail = is_probe(&ran.log);
            let style = if ran.passed() == must_fail { BAD } else { GOOD };
            let ended = output.paint(style, &phrases::ended(ran.ended));
            let wrong = if must_fail && ran.passed() { ", but must fail before the change" } else { "" };
            say(&format!("{}: {ended}{wrong}, {}", printable(&ran.argv.join(" ")), ran.stdout.file));
        }
        Line::RolledBack(rolled_back) => {
            say("rolled back");
            rolled_back.warnings.iter().for_each(warn);
        }
        Line::Broke(broke) => say(&output.paint(BAD, &printable(&broke.message))),
        Line::Committed(Committed { commit: Some(commit), .. }) => {
            say(&format!("committed as {}", printable(commit)));
        }
        Line::NotCommitted(why) => {
            say(&output.paint(BAD, &format!("not committed: {}", printable(&why.message))));
        }
        Line::Warned { warning } => {
            let head = output.paint(WARN, "warning:");
            output.report_prose(&format!("{head} {}", printable(&warning.message)));
        }
        Line::Restored(restored) => {
            output.report(&format!("restored: {}", phrases::count(restored.paths.len() as u64, "file")));
        }
        Line::Resumed { .. } => output.report("resumed: the prompt is sent again"),
        Line::Ended { outcome } => output.report(&format!("ended: {}", outcome.code())),
        _ => {}
    }
}
