//! `code-commit runs` and `code-commit show`: what happened.

use std::path::Path;

use logging::{Redactor, RunFolder};
use perform::{CallFact, Fact};
use serde_json::{Value, json};

use crate::args::RunName;
use crate::changes;
use crate::commands::order::{self, Recorded};
use crate::commands::runs::account::Account;
use crate::commands::{registry, runs, spec};
use crate::exit::{Exit, Failure};
use crate::output::{BAD, DIM, GOOD, Output, STRONG, WARN, printable};
use crate::terminal::phrases;

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
    let facts: Vec<Fact> = perform::outline_of(&RunFolder::open(run.to_owned(), Redactor::default())).ok()?;
    let mut rounds = 0;
    let mut ended = None;
    for fact in &facts {
        if let Fact::Call(CallFact::Asked { round, .. }) = fact {
            rounds = rounds.max(*round);
        }
        if let Fact::Ended { outcome } = fact {
            ended = Some(outcome.code());
        }
    }
    Some((ended, rounds))
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
    let folder = RunFolder::open(run.clone(), Redactor::default());
    let facts = facts(&folder)?;
    let changes = changes::of_run(tree.root(), &run)?;
    if output.json {
        let stats: Vec<_> = changes.iter().map(changes::FileChange::stat).collect();
        let facts: Vec<Value> = facts.iter().filter_map(|fact| serde_json::to_value(fact).ok()).collect();
        output.object(&json!({
            "run": runs::name(&run), "loop": runs::loop_of(&known, tree.root()), "undone": known.undone, "folder": run.to_string_lossy(), "facts": facts, "files": stats,
        }));
        return Ok(Exit::Done);
    }
    output.report(&format!("{}{}", output.paint(STRONG, &runs::name(&run)), known.since()));
    for fact in &facts {
        line(fact, output);
    }
    if is_applied(&run) {
        output.report("applied: a reply that was given as text");
    }
    output.report(&format!("files: {}", run.strip_prefix(tree.root()).unwrap_or(&run).display()));
    for change in &changes {
        output.report(changes::coloured(&change.diff(), output).trim_end());
    }
    Ok(Exit::Done)
}

/// The facts of a run; `apply` has none, since nobody was asked.
fn facts(folder: &RunFolder) -> Result<Vec<Fact>, Failure> {
    let path = folder.path();
    if is_applied(path) {
        return Ok(Vec::new());
    }
    perform::facts_of(folder)
        .map_err(|error| Failure::refused(error, "its files are there all the same: look into the folder"))
}

/// Whether this is the record of an `apply` that came to its end: what to put back, and no journal.
fn is_applied(run: &Path) -> bool {
    !run.join(perform::JOURNAL).exists() && runs::has_applied(run)
}

/// One line for each fact that a person wants to know.
pub fn line(fact: &Fact, output: &Output) {
    let say = |round: &u32, text: &str| say(*round, text, output);
    match fact {
        Fact::Call(fact) => {
            phrases::call(fact, output).iter().for_each(|text| say(&round_of(fact), text));
        }
        Fact::Applied { round, changes, warnings, no_change } => {
            if let Some(reason) = no_change {
                say(round, &format!("nothing to change: {}", printable(reason.trim())));
            }
            changes.iter().for_each(|change| say(round, &phrases::change(change)));
            for warning in warnings {
                say(round, &output.paint(WARN, &printable(&warning.message)));
            }
        }
        Fact::Rejected { round, problems, .. } => {
            for problem in problems {
                let text = format!("refused: {} [{}]", printable(&problem.message), problem.code);
                say(round, &output.paint(WARN, &text));
            }
        }
        Fact::Built { round, ended, output: log, .. } => {
            let style = if fact.is_passed_build() { GOOD } else { BAD };
            let text = format!("build: {}, {}", phrases::ended(*ended), log.stored.file);
            say(round, &output.paint(style, &text));
        }
        Fact::Warned { warning } => {
            let head = output.paint(WARN, "warning:");
            output.report_prose(&format!("{head} {}", printable(&warning.message)));
        }
        Fact::Restored { paths } => {
            output.report(&format!("put back: {}", phrases::count(paths.len() as u64, "file")));
        }
        Fact::Resumed => output.report("gone on with: the prompt is sent again"),
        Fact::Ended { outcome } => output.report(&format!("ended: {}", outcome.code())),
    }
}

fn round_of(call: &CallFact) -> u32 {
    match call {
        CallFact::Asked { round, .. }
        | CallFact::Attempted { round, .. }
        | CallFact::Answered { round, .. }
        | CallFact::Unanswered { round, .. } => *round,
    }
}

fn say(round: u32, text: &str, output: &Output) {
    output.report_prose(&format!("{}  {text}", output.paint(DIM, &format!("round {round}"))));
}
