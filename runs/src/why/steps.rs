//! What the runs of a project have changed in one file, from their records.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use code_commit_logging::sha256_hex;
use code_commit_perform::{JOURNAL, undo_folders};
use code_commit_report::Output;
use code_commit_timeline::{Run as Facts, Steps, What};
use jiff::Timestamp;
use serde::Deserialize;

use super::lines::Change;
use crate::chronicle::{Found, contents};
use crate::records;
use crate::registry::Known;

/// A run that has changed the file.
#[derive(Debug)]
pub(super) struct Run {
    pub folder: PathBuf,
    pub facts: Rc<Facts>,
    /// The steps that hold.
    pub steps: Steps,
}

/// One round of it, or the build of that round.
#[derive(Debug)]
pub(super) struct Step {
    /// The index of its run.
    pub run: usize,
    pub round: u32,
    pub by_build: bool,
    /// Relative to the root.
    pub path: String,
    pub after_sha256: String,
    /// `None` if nobody has kept the result: a build made it, and somebody has changed it since.
    pub change: Option<Change>,
    first: Vec<u8>,
    before: Vec<u8>,
}

impl Step {
    /// The change if it led to this content.
    pub(super) fn change_to(&self, content: &[u8]) -> Option<Change> {
        (sha256_hex(content) == self.after_sha256)
            .then(|| Change::new(&self.first, &self.before, content.to_vec()))
    }
}

/// When a run began, in seconds since 1970; `None` if it has no journal that says so.
pub(super) fn began(run: &Path) -> Option<i64> {
    #[derive(Deserialize)]
    struct First {
        at: Timestamp,
    }
    let mut line = String::new();
    BufReader::new(File::open(run.join(JOURNAL)).ok()?)
        .read_line(&mut line)
        .ok()?;
    Some(serde_json::from_str::<First>(&line).ok()?.at.as_second())
}

/// The steps of all of these runs that changed one of these files and that count here, the newest first.
pub(super) fn all(
    known: &[Known],
    root: &Path,
    paths: &BTreeSet<String>,
    output: &Output,
) -> (Vec<Run>, Vec<Step>) {
    let (mut runs, mut steps) = (Vec::new(), Vec::new());
    for known in known {
        let path = known.path(root);
        // `apply` asks no model and keeps no journal.
        if records::is_applied(&path) || !changes_any(&path, paths) {
            continue;
        }
        let Ok(past) = records::intact(&records::open(&path)) else {
            output.warn(&format!(
                "the record of {} was changed, so it says nothing here",
                records::name(&path)
            ));
            continue;
        };
        let facts = Rc::new(Found::of(known.clone(), root).facts());
        let run = Run {
            folder: path,
            facts,
            steps: past.steps_held(),
        };
        let mut own = run.steps(runs.len(), paths, root);
        own.reverse();
        steps.extend(own);
        runs.push(run);
    }
    (runs, steps)
}

/// From the manifests of its pre-images, which are small.
fn changes_any(run: &Path, paths: &BTreeSet<String>) -> bool {
    let folders = undo_folders(run).unwrap_or_default();
    let changed = code_commit_apply::hashes_after(&folders).unwrap_or_default();
    changed.keys().any(|path| paths.contains(path))
}

impl Run {
    /// What changed the tree and was not put back, oldest first.
    fn steps(&self, run: usize, paths: &BTreeSet<String>, root: &Path) -> Vec<Step> {
        let contents = contents::raw(&self.steps, paths, &self.folder, root);
        let content = |hash: &str| contents.0.get(hash).cloned();
        let mut steps: Vec<Step> = Vec::new();
        for of in &self.steps.all {
            let by_build = match &of.what {
                What::Change(_) => false,
                What::Command(command) if command.is_build() => true,
                What::Event(event) => {
                    if event.is_restore {
                        steps.clear();
                    }
                    continue;
                }
                What::Call(_) | What::Command(_) => continue,
            };
            for change in of
                .changes()
                .iter()
                .filter(|change| paths.contains(&change.path))
            {
                let Some(after_sha256) = change.after_sha256.clone() else {
                    continue;
                };
                let before = change
                    .before_sha256
                    .as_deref()
                    .and_then(content)
                    .unwrap_or_default();
                let first = steps.iter().find(|step| step.path == change.path);
                let first = first.map_or_else(|| before.clone(), |step| step.first.clone());
                let (round, path) = (of.round, change.path.clone());
                let change =
                    content(&after_sha256).map(|after| Change::new(&first, &before, after));
                steps.push(Step {
                    run,
                    round,
                    by_build,
                    path,
                    after_sha256,
                    change,
                    first,
                    before,
                });
            }
        }
        steps
    }
}
