//! Runs of the spec loop among all others: `runs`, `show` and `resume` ask here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use engine::{Journaled, Line, Outcome, Stop, Turned};
use logging::{Redactor, RunFolder};
use perform::{RecordOnly, ReplayFault};
use repo::WorkTree;
use report::{DIM, GOOD, Output, STRONG, WARN, phrases, printable};
use serde_json::json;
use settings::{Environment, Limits};

use crate::args::spec::AgentArgs;
use crate::commands::registry::Known;
use crate::commands::replay::other_end;
use crate::commands::runs;
use crate::commands::spec::act::{self, Begun};
use crate::commands::spec::lines::Lines;
use crate::commands::spec::{project, start};
use crate::exit::{Exit, Failure};

/// The end of the name of an audit's folder.
pub const AUDIT: &str = "audit";
/// And of that of a talk about a plan.
pub const PLAN: &str = "plan";

/// A run of the spec loop that was begun here.
#[derive(Debug)]
pub struct Past {
    /// Its folder.
    pub path: PathBuf,
    /// What it was begun with.
    pub begun: Begun,
}

impl Past {
    /// How it ended; none while it has not.
    pub fn outcome(&self) -> Option<Outcome> {
        self.record().ok()?.outcome().cloned()
    }

    /// Whether it can be gone on with, if it is the newest.
    pub fn goes_on(&self) -> bool {
        act::goes_on(self.outcome().as_ref())
    }

    /// What it works on, in a few words.
    pub fn focus(&self) -> String {
        let focus = &self.begun.inputs.focus;
        short(focus.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default())
    }

    fn folder(&self) -> RunFolder {
        RunFolder::open(self.path.clone(), Redactor::default())
    }

    fn record(&self) -> Result<perform::Past, perform::RecordError> {
        perform::Past::read(&self.path)
    }
}

/// The runs of the project in `root`, the newest first; audits and talks are none.
pub fn all(root: &Path) -> Vec<Past> {
    let folders = project::state(root).map(|(_, runs)| project::runs(&runs)).unwrap_or_default();
    let past = |path: PathBuf| Some(Past { begun: act::begun(&path)?, path });
    folders.into_iter().rev().filter_map(past).collect()
}

/// The folders of audits, the newest first.
pub fn audits(root: &Path) -> Vec<PathBuf> {
    folders(root, AUDIT)
}

/// The folders of talks about a plan, the newest first.
pub fn talks(root: &Path) -> Vec<PathBuf> {
    folders(root, PLAN)
}

/// Folders that were made for this, by their names.
fn folders(root: &Path, what: &str) -> Vec<PathBuf> {
    let Ok((_, runs)) = project::state(root) else { return Vec::new() };
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.retain(|path| is_named(&runs::name(path), what));
    folders.sort_unstable_by(|one, other| other.cmp(one));
    folders
}

/// `…-audit`, and `…-audit-2` of the same second.
fn is_named(name: &str, what: &str) -> bool {
    let is_count = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let stem = name.rsplit_once('-').filter(|(_, count)| is_count(count)).map_or(name, |(stem, _)| stem);
    stem.rsplit_once('-').is_some_and(|(_, last)| last == what)
}

/// A line for each of them; how many there were.
pub fn list(root: &Path, output: &Output) -> usize {
    let all = all(root);
    for past in &all {
        let (name, outcome) = (runs::name(&past.path), past.outcome());
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

/// The run of that name; without a name the newest, if nothing newer was made by another loop.
fn find(root: &Path, named: Option<&str>, newest_other: Option<&Path>) -> Option<Past> {
    let mut all = all(root).into_iter();
    match named {
        Some(wanted) => all.find(|past| runs::is_named(&past.path, wanted)),
        // Names begin with the time.
        None => all
            .next()
            .filter(|past| newest_other.is_none_or(|other| runs::name(other) < runs::name(&past.path))),
    }
}

/// The run of the spec loop that is meant where another loop has `known`.
pub fn meant(tree: &WorkTree, named: Option<&str>, known: &Result<Known, Failure>) -> Option<Past> {
    let newest = known.as_ref().ok().map(|known| known.path(tree.root())).filter(|_| named.is_none());
    find(tree.root(), named, newest.as_deref())
}

/// Everything about one run.
pub fn show(past: &Past, output: &Output) -> Result<(), Failure> {
    let record = past
        .record()
        .map_err(|error| Failure::refused(error, "its files are there all the same: look into the folder"))?;
    let name = runs::name(&past.path);
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

/// Goes on with a run, with the agent that it began with. Only the newest can be: each begins on the tree that the one before it left.
pub fn resume(
    past: &Past,
    root: &Path,
    limits: Limits,
    environment: &Environment,
    output: &Output,
) -> Result<Exit, Failure> {
    if !past.goes_on() {
        return Err(Failure::nothing_to_do(
            anyhow!("that run is over"),
            "code-commit show tells how it ended",
        ));
    }
    if all(root).first().is_some_and(|newest| newest.path != past.path) {
        let what = anyhow!("a newer run of the spec loop has begun since {}", runs::name(&past.path));
        return Err(Failure::refused(what, "only the newest can be resumed: code-commit spec run --resume"));
    }
    start::go_on(root, &AgentArgs::default(), limits, environment, output)
}

/// Agents write to the tree themselves: no texts of before are kept that could be put back.
pub fn refuse_undo(past: &Past) -> Failure {
    let what = anyhow!(
        "{} is a run of the spec loop: what its agents wrote is not kept twice",
        runs::name(&past.path)
    );
    let help = "take it back with git: what was committed with `git revert`, what was not with `git restore`; another run: code-commit undo RUN";
    Failure::refused(what, help)
}

/// Says whether the run would be led the same way: the same prompts, in the same order, to the same
/// end. What agents and commands did is taken from the record; nothing runs, nothing is written.
pub fn replay(past: &Past, output: &Output) -> Result<Exit, Failure> {
    let unreadable = "name a run whose record is whole";
    let folder = past.folder();
    let record = past
        .record()
        .and_then(|record| record.intact(&folder).map(|()| record))
        .map_err(|error| Failure::refused(error, unreadable))?;
    let mut harness = Journaled::new(RecordOnly::new(folder, &record), record.answers.clone());
    let replayed = loop_spec::spec(&mut harness, &past.begun.inputs)
        .and_then(|outcome| harness.ends(&outcome).map(|()| outcome));
    match replayed {
        Ok(outcome) => {
            output.object(&json!({ "same": true, "outcome": outcome }));
            output.report(&format!("the same prompts, the same end: {}", word(Some(&outcome))));
            Ok(Exit::Done)
        }
        Err(Stop::Fault(ReplayFault::RecordEnds { .. })) => Err(Failure::refused(
            anyhow!("the record of {} does not come to an end", runs::name(&past.path)),
            "only a finished run can be replayed; code-commit spec run --resume continues it",
        )),
        Err(stop) => other_end(stop, "round", output),
    }
}

/// How a run ended, in words.
pub fn word(outcome: Option<&Outcome>) -> String {
    match outcome {
        Some(Outcome::Done { rounds }) => format!("approved in iteration {rounds}"),
        Some(Outcome::AttemptsUsedUp { rounds } | Outcome::Stuck { rounds, .. }) => {
            format!("not approved after {}", phrases::count(u64::from(*rounds), "iteration"))
        }
        Some(Outcome::NeedsPerson { .. }) => "spec issue".to_owned(),
        Some(Outcome::ModelUnavailable { cause, .. }) => format!("stopped: {}", cause.code),
        None => "not at its end".to_owned(),
    }
}

/// The first words of a line.
pub fn short(text: &str) -> String {
    let text: String = text.trim_start_matches(['#', ' ']).chars().take(60).collect();
    text.trim_end().to_owned()
}
