//! Runs of agents: phases, specs, audits, and talks about a plan.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use code_commit_logging::Redactor;
use code_commit_names::ours::ABL;
use code_commit_perform::{COPIES, TAKEN};

use crate::clean::place::Place;
use crate::clean::{Run, UNREADABLE, is_no_record};
use crate::exit::Failure;
use crate::phase::past::{self, LOGS, Past};
use crate::spec;

/// The harness's folders of the spec loop, the newest of each kind first.
pub(super) fn specs(root: &Path) -> impl Iterator<Item = Run> {
    let runs = spec::history::all(root).into_iter().enumerate().map(|(number, past)| {
        // Only the newest can be resumed.
        let goes_on =
            (number == 0 && past.goes_on()).then(|| "not over: code-commit spec run --resume".to_owned());
        Run { stays: goes_on.or_else(|| is_no_record(&past.path)), path: past.path, kind: "spec" }
    });
    // None of these can be resumed; holding the lock means that they are over.
    let audits = spec::history::audits(root).into_iter();
    let audits = audits.map(|path| Run { stays: is_no_record(&path), path, kind: "audit" });
    let talks = spec::history::talks(root).into_iter();
    let talks = talks.map(|path| Run { stays: is_no_talk(&path), path, kind: "plan" });
    runs.chain(audits).chain(talks)
}

/// A talk leaves only copies of files that it may not change but did.
fn is_no_talk(path: &Path) -> Option<String> {
    let entries: BTreeSet<_> =
        code_commit_dir::list(path).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    let is_talk = entries.iter().all(|name| name == COPIES || name == TAKEN);
    if is_talk && fs::canonicalize(path).is_ok_and(|real| real == path) { None } else { is_no_record(path) }
}

/// The runs of phases, newest first.
pub(super) fn phases(place: &Place) -> Result<Vec<Run>, Failure> {
    let all = past::all(&place.root().join(ABL).join(LOGS));
    let tracked = if all.is_empty() { Vec::new() } else { tracked(place)? };
    let mut seen = BTreeSet::new();
    let run = |past: Past| {
        let (path, number) = (past.path.clone(), past.phase);
        let goes_on = if seen.insert(number) { goes_on(past) } else { None };
        let stays =
            goes_on.or_else(|| is_known_to_git(&path, place, &tracked)).or_else(|| is_no_record(&path));
        Run { path, kind: "phase", stays }
    };
    Ok(all.into_iter().map(run).collect())
}

/// Why the newest run of a phase must be kept, if it must.
fn goes_on(past: Past) -> Option<String> {
    let phase = past.phase;
    match past.unfinished(&Redactor::default()) {
        Ok(None) => None,
        Ok(Some(_)) => Some(format!("not over: code-commit phase {phase}")),
        Err(_) => Some(UNREADABLE.to_owned()),
    }
}

/// These runs are not listed anywhere, and one that git tracks may have come with a clone.
fn is_known_to_git(run: &Path, place: &Place, tracked: &[String]) -> Option<String> {
    let below = run.strip_prefix(place.root()).ok()?;
    let is_below = |file: &String| Path::new(file).starts_with(below);
    tracked.iter().any(is_below).then(|| "git tracks what is in it; remove it by hand".to_owned())
}

fn tracked(place: &Place) -> Result<Vec<String>, Failure> {
    let Some(tree) = place.tree() else { return Ok(Vec::new()) };
    let tracked = tree.tracked().context("cannot tell what git tracks");
    let tracked = tracked.map_err(|error| Failure::refused(error, "run git status"))?;
    Ok(tracked.into_iter().map(|file| file.path).collect())
}
