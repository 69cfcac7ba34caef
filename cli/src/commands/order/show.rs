//! `code-commit runs` and `code-commit show` for the runs of orders.

use logging::{Redactor, RunFolder};
use loop_order::{RunSummary, SUMMARY, Verdict, is_probe};
use perform::{CallFact, Condition, OrderFact, Outcome, Problem, facts_of};
use repo::WorkTree;
use serde_json::json;

use crate::changes::{self, FileChange};
use crate::commands::order::recorded::Recorded;
use crate::commands::registry::Known;
use crate::commands::runs::{self, account::Account};
use crate::exit::Failure;
use crate::output::{BAD, DIM, GOOD, Output, STRONG, WARN, printable};
use crate::terminal::phrases;

/// One line about the run.
pub fn list(known: &Known, tree: &WorkTree, output: &Output) {
    let run = &known.path(tree.root());
    let folder = RunFolder::open(run.clone(), Redactor::default());
    let facts: Vec<OrderFact> = perform::outline_of(&folder).unwrap_or_default();
    let attempts = facts.iter().filter_map(attempt_of).max().unwrap_or_default();
    let outcome = facts.last().and_then(outcome_of).map(Outcome::code);
    // A run that goes on has one from when it ended.
    let summary = summary(&folder).filter(|_| outcome.is_some());
    let name = runs::name(run);
    let recorded = Recorded::load(known, folder).ok();
    let title = recorded.as_ref().map(|recorded| recorded.read.order.title.as_str());
    let account = Account::of_order(title, &facts, summary.as_ref());
    let mut object = json!({
        "run": name, "loop": "order", "outcome": outcome, "rounds": attempts, "undone": known.undone, "folder": run.to_string_lossy(),
        "verdict": summary.as_ref().map(|summary| summary.verdict),
        "stage": summary.as_ref().map(|summary| &summary.ended_stage),
    });
    object.as_object_mut().into_iter().for_each(|members| members.extend(account.json()));
    output.object(&object);
    let ended = match &summary {
        Some(summary) => verdict(summary, output),
        None => output.paint(WARN, "not finished"),
    };
    let (spent, since, asked) = (account.spent(), known.since(), account.asked());
    output.report_prose(&format!("{name}  order: {ended}, attempts {attempts}{spent}{since}{asked}"));
}

/// Everything about the run: attempts, prompts, answers, refusals, commands, and what it changed.
pub fn show(known: &Known, tree: &WorkTree, output: &Output) -> Result<(), Failure> {
    let run = &known.path(tree.root());
    let folder = RunFolder::open(run.clone(), Redactor::default());
    let facts: Vec<OrderFact> = facts_of(&folder)
        .map_err(|error| Failure::refused(error, "its files are there all the same: look into the folder"))?;
    let changes = changes::of_run(tree.root(), run)?;
    let stats: Vec<_> = changes.iter().map(FileChange::stat).collect();
    let summary = summary(&folder);
    output.object(&json!({
        "run": runs::name(run), "loop": "order", "undone": known.undone, "folder": run.to_string_lossy(), "facts": facts, "files": stats,
        "summary": summary,
    }));
    output.report(&format!("{}{}", output.paint(STRONG, &runs::name(run)), known.since()));
    let mut attempt = 0;
    for fact in &facts {
        attempt = attempt_of(fact).unwrap_or(attempt);
        line(fact, attempt, output);
    }
    if let Some(summary) = &summary {
        output.report(&format!("ended: {}", verdict(summary, output)));
    }
    output.report(&format!("files: {}", run.display()));
    for change in &changes {
        output.report(changes::coloured(&change.diff(), output).trim_end());
    }
    Ok(())
}

/// The summary of the run in this folder; an earlier end of it may have left it.
pub fn summary(folder: &RunFolder) -> Option<RunSummary> {
    serde_json::from_str(&folder.read(SUMMARY).ok()?).ok()
}

/// `PASS (success)`.
fn verdict(summary: &RunSummary, output: &Output) -> String {
    let style = if summary.verdict == Verdict::Pass { GOOD } else { BAD };
    let stage = printable(&summary.ended_stage);
    format!("{} ({stage})", output.paint(style, summary.verdict.as_str()))
}

fn outcome_of(fact: &OrderFact) -> Option<&Outcome> {
    if let OrderFact::Ended { outcome } = fact { Some(outcome) } else { None }
}

/// The attempt that a fact begins.
pub fn attempt_of(fact: &OrderFact) -> Option<u32> {
    if let OrderFact::Call(CallFact::Asked { round, .. }) = fact { Some(*round) } else { None }
}

/// One line for each fact that a person wants to know.
fn line(fact: &OrderFact, attempt: u32, output: &Output) {
    let head = if attempt == 0 { "preflight".to_owned() } else { format!("attempt {attempt}") };
    let say = |text: &str| output.report(&format!("{}  {text}", output.paint(DIM, &head)));
    let problem = |problem: &Problem| say(&output.paint(WARN, &printable(&problem.message)));
    match fact {
        OrderFact::Call(call) => phrases::call(call, output).iter().for_each(|text| say(text)),
        OrderFact::Looked { failed } if failed.is_empty() => {}
        OrderFact::Looked { failed } => {
            say(&output.paint(BAD, "not as the order wants it:"));
            failed.iter().for_each(|condition| say(&printable(&words(condition))));
        }
        OrderFact::Written { changes, warnings, .. } => {
            changes.iter().for_each(|change| say(&phrases::change(change)));
            warnings.iter().for_each(problem);
        }
        OrderFact::Refused { problems, .. } => {
            say(&output.paint(WARN, "proposal refused, nothing was written:"));
            problems.iter().for_each(problem);
        }
        OrderFact::Ran { log, argv, ended, stdout, .. } => {
            let must_fail = is_probe(log);
            let style = if fact.is_passed_command() == must_fail { BAD } else { GOOD };
            let ended = output.paint(style, &phrases::ended(*ended));
            let wrong =
                if must_fail && fact.is_passed_command() { ", but must fail before the change" } else { "" };
            say(&format!("{}: {ended}{wrong}, {}", printable(&argv.join(" ")), stdout.file));
        }
        OrderFact::Warned { warning } => problem(warning),
        OrderFact::RolledBack { warnings } => {
            say("rolled back");
            warnings.iter().for_each(problem);
        }
        OrderFact::Broke { message } => say(&output.paint(BAD, &printable(message))),
        OrderFact::Committed { commit: Some(commit) } => say(&format!("committed as {}", printable(commit))),
        OrderFact::NotCommitted { message } => {
            say(&output.paint(BAD, &format!("not committed: {}", printable(message))));
        }
        OrderFact::Resumed => say("gone on with"),
        OrderFact::Stamped { .. }
        | OrderFact::Kept { .. }
        | OrderFact::Measured { .. }
        | OrderFact::Committed { commit: None }
        | OrderFact::Ended { .. } => {}
    }
}

/// A condition as an order has it.
pub fn words(condition: &Condition) -> String {
    match condition {
        Condition::FileExists(path) => format!("file_exists: {path}"),
        Condition::FileAbsent(path) => format!("file_absent: {path}"),
    }
}
