//! `code-commit runs` and `code-commit show`: what happened.

mod agents;
mod order;

use std::path::Path;

use code_commit_engine::Line;
use code_commit_perform::Past;
use code_commit_repo::WorkTree;
use code_commit_report::{GOOD, STRONG, WARN, lines, rounds_asked};
use code_commit_runs::life::{Facts, TakesBack};
use code_commit_runs::order::summary;
use code_commit_runs::records::account::Account;
use code_commit_runs::registry::Known;
use code_commit_runs::{Exit, Failure, Host, Site, changes, records};
use serde_json::json;

use crate::args::RunName;

/// Lists the runs of this project, newest first.
pub fn list(host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let site = Site::here(host)?;
    let all = site.registry().with_imported()?;
    if all.is_empty() {
        site.tree()?;
        output.note("there is no run yet");
    }
    for known in &all {
        match site.row(known).map(|row| row.facts) {
            Some(facts) if facts.own_summary => order::list(known, site.tree()?, output),
            Some(Facts { takes_back: TakesBack::Git, .. }) => agents::list(known, &site.root, output),
            Some(_) | None => line(known, &site),
        }
    }
    Ok(Exit::Done)
}

fn line(known: &Known, site: &Site<'_>) {
    let (run, output) = (&known.path(&site.root), site.host.output);
    let (name, undone) = (records::name(run), known.undone);
    let (ended, rounds) = ending(run).unwrap_or((Some("damaged"), 0));
    // If the journal is damaged, the summary cannot be trusted either.
    let believed = ended != Some("damaged");
    let account = believed.then(|| Account::of(&records::open(run)));
    let account = account.unwrap_or_default();
    let mut object = json!({
        "run": name, "loop": known.kind(&site.root), "outcome": ended, "rounds": rounds, "undone": undone, "folder": run.to_string_lossy(),
    });
    object.as_object_mut().into_iter().for_each(|members| members.extend(account.json()));
    output.object(&object);
    let ended = ended.unwrap_or("not finished");
    let style = if matches!(ended, "done" | "applied") { GOOD } else { WARN };
    let (ended, since) = (output.paint(style, ended), known.since());
    let (spent, asked) = (account.spent(), account.asked());
    output.report_prose(&format!("{name}  {ended}, rounds {rounds}{spent}{since}{asked}"));
}

/// How a run ended according to its journal, and its number of rounds; `None` if the journal cannot be read.
fn ending(run: &Path) -> Option<(Option<&'static str>, u32)> {
    if !run.join(code_commit_perform::JOURNAL).exists() {
        let ended = if records::is_applied(run) { "applied" } else { "nothing was done" };
        return Some((Some(ended), 0));
    }
    let past = Past::read(run).ok()?;
    let last_end =
        past.lines.iter().rev().find_map(|line| {
            if let Line::Ended { outcome, .. } = line { Some(outcome.code()) } else { None }
        });
    Some((last_end, rounds_asked(&past.lines)))
}

/// What it changed. If that cannot be read, the rest of the record may be.
fn changes_of(run: &Path, tree: &WorkTree) -> Result<Vec<changes::FileChange>, Failure> {
    let help = || format!("its other files still exist: look in {}", run.display());
    changes::of_run(tree.root(), run).map_err(|error| Failure::refused(error, help()))
}

/// Everything about one run: rounds, prompts, replies, refusals, builds, cost, changes.
pub fn show(args: &RunName, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let site = Site::here(host)?;
    let known = site.registry().find(args.run.as_deref())?;
    let facts = site.row(&known).map(|row| row.facts);
    if let Some(Facts { takes_back: TakesBack::Git, .. }) = facts {
        return agents::show(&known, &site.root, output).map(|()| Exit::Done);
    }
    let (run, tree) = (known.path(&site.root), site.tree()?);
    let past = records::past(&run)?;
    let changes = changes_of(&run, tree)?;
    let has_own = facts.is_some_and(|facts| facts.own_summary);
    let summary = has_own.then(|| summary(&records::open(&run), &past));
    let stats: Vec<_> = changes.iter().map(changes::FileChange::stat).collect();
    let mut object = json!({
        "run": records::name(&run), "loop": known.kind(&site.root), "undone": known.undone, "folder": run.to_string_lossy(), "facts": past.json, "files": stats,
    });
    if let (Some(members), Some(summary)) = (object.as_object_mut(), &summary) {
        members.insert("summary".to_owned(), json!(summary));
    }
    output.object(&object);
    output.report(&format!("{}{}", output.paint(STRONG, &records::name(&run)), known.since()));
    match &summary {
        Some(summary) => order::show(&past, summary.as_ref(), output),
        None => lines("round", &past.lines, output),
    }
    if records::is_applied(&run) {
        output.report("applied: a reply that was given as text");
    }
    let shown = run.strip_prefix(tree.root()).ok().filter(|_| summary.is_none()).unwrap_or(&run);
    output.report(&format!("files: {}", shown.display()));
    for change in &changes {
        output.report(changes::coloured(&change.diff(), output).trim_end());
    }
    Ok(Exit::Done)
}
