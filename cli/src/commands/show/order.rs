//! `code-commit runs` and `code-commit show` for the runs of orders.

use code_commit_engine::Outcome;
use code_commit_loop_order::{RunSummary, Verdict};
use code_commit_perform::Past;
use code_commit_repo::WorkTree;
use code_commit_report::{BAD, GOOD, Output, WARN, holds_for, lines, printable, rounds_asked};
use code_commit_runs::order::{Recorded, summary};
use code_commit_runs::records::{self, account::Account};
use code_commit_runs::registry::Known;
use serde_json::json;

/// One line for the run.
pub fn list(known: &Known, tree: &WorkTree, output: &Output) {
    let run = &known.path(tree.root());
    let folder = records::open(run);
    let past = Past::read(run).unwrap_or_default();
    let attempts = rounds_asked(&past.lines);
    let outcome = past.outcome().map(Outcome::code);
    let summary = summary(&folder, &past);
    let name = records::name(run);
    let recorded = Recorded::load(known, folder).ok();
    let title = recorded.as_ref().map(|recorded| recorded.read.order.title.as_str());
    let account = Account::of_order(title, &past.lines, summary.as_ref());
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

/// Its attempts, prompts, answers, refusals and commands, and how it ended.
pub fn show(past: &Past, summary: Option<&RunSummary>, output: &Output) {
    // The verdict already says how it ended.
    let told = past.lines.len() - usize::from(past.end().is_some());
    lines("attempt", past.lines.get(..told).unwrap_or_default(), output);
    if let Some(summary) = summary {
        output.report(&format!("ended: {}", verdict(summary, output)));
    }
    if let Some((_, of)) = past.end() {
        holds_for(of, output);
    }
}

/// `PASS (success)`.
fn verdict(summary: &RunSummary, output: &Output) -> String {
    let style = if summary.verdict == Verdict::Pass { GOOD } else { BAD };
    let stage = printable(&summary.ended_stage);
    format!("{} ({stage})", output.paint(style, summary.verdict.as_str()))
}
