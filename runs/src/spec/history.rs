//! Runs of the spec loop among all others: `runs`, `show` and `resume` ask here.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use code_commit_engine::{Journaled, Outcome, Stop};
use code_commit_logging::RunFolder;
use code_commit_perform::{RecordOnly, ReplayFault};
use code_commit_repo::WorkTree;
use code_commit_report::{Output, phrases};
use code_commit_settings::Limits;
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::records;
use crate::registry::Known;
use crate::replay::other_end;
use crate::spec::act::{self, Begun};
use crate::spec::options::AgentOptions;
use crate::spec::{project, start};

/// The end of the name of an audit's folder.
pub(crate) const AUDIT: &str = "audit";
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

    /// Its record, to read files from.
    pub fn folder(&self) -> RunFolder {
        records::open(&self.path)
    }

    /// What happened in it.
    pub fn record(&self) -> Result<code_commit_perform::Past, code_commit_perform::RecordError> {
        code_commit_perform::Past::read(&self.path)
    }
}

/// A run of the spec loop that was made elsewhere.
pub(crate) fn imported(known: &Known, root: &Path) -> Option<Past> {
    let path = known.path(root);
    let begun = known.is_imported().then(|| act::begun(&path))??;
    Some(Past { path, begun })
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
    let entries = code_commit_dir::list(runs).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.retain(|path| is_named(&records::name(path), what));
    folders.sort_unstable_by(|one, other| other.cmp(one));
    folders
}

/// `…-audit`, and `…-audit-2` of the same second.
fn is_named(name: &str, what: &str) -> bool {
    let is_count = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let stem = name.rsplit_once('-').filter(|(_, count)| is_count(count)).map_or(name, |(stem, _)| stem);
    stem.rsplit_once('-').is_some_and(|(_, last)| last == what)
}

/// The run of that name; without a name the newest, if nothing newer was made by another loop.
fn find(root: &Path, named: Option<&str>, newest_other: Option<&Path>) -> Option<Past> {
    let mut all = all(root).into_iter();
    match named {
        Some(wanted) => all.find(|past| records::is_named(&past.path, wanted)),
        // Names begin with the time.
        None => all
            .next()
            .filter(|past| newest_other.is_none_or(|other| records::name(other) < records::name(&past.path))),
    }
}

/// The run of the spec loop that is meant where another loop has `known`.
pub fn meant(tree: &WorkTree, named: Option<&str>, known: &Result<Known, Failure>) -> Option<Past> {
    let newest = known.as_ref().ok().map(|known| known.path(tree.root())).filter(|_| named.is_none());
    find(tree.root(), named, newest.as_deref())
}

/// Goes on with a run, with the agent that it began with. Only the newest can be: each begins on the tree that the one before it left.
pub fn resume(past: &Past, root: &Path, limits: Limits, host: Host<'_>) -> Result<Exit, Failure> {
    if !past.goes_on() {
        return Err(Failure::nothing_to_do(
            anyhow!("that run is over"),
            "code-commit show tells how it ended",
        ));
    }
    if all(root).first().is_some_and(|newest| newest.path != past.path) {
        let what = anyhow!("a newer run of the spec loop has begun since {}", records::name(&past.path));
        return Err(Failure::refused(what, "only the newest can be resumed: code-commit spec run --resume"));
    }
    start::go_on(root, &AgentOptions::default(), limits, host)
}

/// Agents write to the tree themselves: no texts of before are kept that could be put back.
pub(crate) fn refuse_undo(past: &Past) -> Failure {
    let what = anyhow!(
        "{} is a run of the spec loop: what its agents wrote is not kept twice",
        records::name(&past.path)
    );
    let help = "take it back with git: what was committed with `git revert`, what was not with `git restore`; another run: code-commit undo RUN";
    Failure::refused(what, help)
}

/// Says whether the run would be led the same way: the same prompts, in the same order, to the same
/// end. What agents and commands did is taken from the record; nothing runs, nothing is written.
pub fn replay(past: &Past, output: &Output) -> Result<Exit, Failure> {
    let unreadable = "name a run whose record is whole";
    let folder = past.folder();
    let record = records::intact(&folder).map_err(|error| Failure::refused(error, unreadable))?;
    let mut harness = Journaled::new(RecordOnly::new(folder, &record), record.answers.clone());
    match harness.run(|harness| code_commit_loop_spec::spec(harness, &past.begun.inputs)) {
        Ok(outcome) => {
            output.object(&json!({ "same": true, "outcome": outcome }));
            output.report(&format!("the same prompts, the same end: {}", word(Some(&outcome))));
            Ok(Exit::Done)
        }
        Err(Stop::Fault(ReplayFault::RecordEnds { .. })) => Err(Failure::refused(
            anyhow!("the record of {} does not come to an end", records::name(&past.path)),
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
        Some(Outcome::ModelUnavailable { cause, .. } | Outcome::Unfit { cause, .. }) => {
            format!("stopped: {}", cause.code)
        }
        None => "not at its end".to_owned(),
    }
}

/// The first words of a line.
pub fn short(text: &str) -> String {
    let text: String = text.trim_start_matches(['#', ' ']).chars().take(60).collect();
    text.trim_end().to_owned()
}
