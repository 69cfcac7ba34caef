//! `code-commit runs` and `code-commit show` for the runs of orders.

use code_commit_engine::{Line, Outcome};
use code_commit_loop_order::{RunSummary, Verdict};
use code_commit_perform::Past;
use code_commit_repo::WorkTree;
use code_commit_report::{BAD, GOOD, Output, STRONG, WARN, holds_for, lines, printable, rounds_asked};
use code_commit_runs::Failure;
use code_commit_runs::changes::{self, FileChange};
use code_commit_runs::order::{Recorded, summary};
use code_commit_runs::records::{self, account::Account, past};
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

/// Everything about the run: attempts, prompts, answers, refusals, commands, changes.
pub fn show(known: &Known, tree: &WorkTree, output: &Output) -> Result<(), Failure> {
    let run = &known.path(tree.root());
    let folder = records::open(run);
    let past = past(run)?;
    let changes = super::changes_of(run, tree)?;
    let stats: Vec<_> = changes.iter().map(FileChange::stat).collect();
    let summary = summary(&folder, &past);
    output.object(&json!({
        "run": records::name(run), "loop": "order", "undone": known.undone, "folder": run.to_string_lossy(), "facts": past.json, "files": stats,
        "summary": summary,
    }));
    output.report(&format!("{}{}", output.paint(STRONG, &records::name(run)), known.since()));
    let (last, before) = past.lines.split_last().unzip();
    lines("attempt", before.unwrap_or_default(), output);
    // The verdict already says how it ended.
    let last = last.filter(|last| !matches!(last, Line::Ended { .. }));
    lines("attempt", last.map(std::slice::from_ref).unwrap_or_default(), output);
    if let Some(summary) = &summary {
        output.report(&format!("ended: {}", verdict(summary, output)));
    }
    if let Some((_, of)) = past.end() {
        holds_for(of, output);
    }
    output.report(&format!("files: {}", run.display()));
    for change in &changes {
        output.report(changes::coloured(&change.diff(), output).trim_end());
    }
    Ok(())
}

/// `PASS (success)`.
fn verdict(summary: &RunSummary, output: &Output) -> String {
    let style = if summary.verdict == Verdict::Pass { GOOD } else { BAD };
    let stage = printable(&summary.ended_stage);
    format!("{} ({stage})", output.paint(style, summary.verdict.as_str()))
}
