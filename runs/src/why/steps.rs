//! What the runs of a project have changed in one file, from their records.

use std::collections::BTreeSet;
use std::path::Path;

use code_commit_apply::PreImage;
use code_commit_engine::{Changed, Line, Present, Stored};
use code_commit_logging::{RunFolder, sha256_hex};
use code_commit_parser::proposal::{self, Edit, Limits, normalized_path};
use code_commit_parser::{FileAction, edit};
use code_commit_perform::{Past, UNDO, after_build, undo_folders};
use code_commit_repo::WorkTree;
use code_commit_report::Output;
use jiff::Timestamp;

use super::lines::Change;
use crate::exit::Failure;
use crate::records;
use crate::registry::{Known, Registry};

/// A run that has changed the file.
#[derive(Debug)]
pub(super) struct Run {
    pub known: Known,
    pub folder: RunFolder,
    pub past: Past,
    /// When it began, in seconds since 1970; 0 if that is not known.
    pub began: i64,
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

/// The steps of all runs that changed one of these files and that count here, the newest first.
pub(super) fn all(
    tree: &WorkTree,
    paths: &BTreeSet<String>,
    output: &Output,
) -> Result<(Vec<Run>, Vec<Step>), Failure> {
    let (mut runs, mut steps) = (Vec::new(), Vec::new());
    for known in Registry::of(tree).with_imported()?.into_iter().filter(Known::is_believed) {
        let path = known.path(tree.root());
        // `apply` asks no model and keeps no journal.
        if records::is_applied(&path) || !changes_any(&path, paths) {
            continue;
        }
        let folder = records::open(&path);
        let Ok(past) = records::intact(&folder) else {
            output.warn(&format!(
                "the record of {} was changed, so it says nothing here",
                records::name(&path)
            ));
            continue;
        };
        let began = past.at.first().and_then(|first| first.parse::<Timestamp>().ok());
        let run = Run { known, folder, past, began: began.map_or(0, Timestamp::as_second) };
        let mut own = run.steps(runs.len(), paths);
        own.reverse();
        steps.extend(own);
        runs.push(run);
    }
    Ok((runs, steps))
}

/// From the manifests of its pre-images, which are small.
fn changes_any(run: &Path, paths: &BTreeSet<String>) -> bool {
    let folders = undo_folders(run).unwrap_or_default();
    let changed = code_commit_apply::hashes_after(&folders).unwrap_or_default();
    changed.keys().any(|path| paths.contains(path))
}

/// What one round, or its build, did to the tree.
struct Round {
    number: u32,
    by_build: bool,
    changes: Vec<Changed>,
    /// The new content of the files that the reply edits.
    edited: Vec<Present>,
    reply: Option<Stored>,
}

impl Run {
    /// Oldest first.
    fn steps(&self, run: usize, paths: &BTreeSet<String>) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for round in self.rounds() {
            let images = self.pre_images(&round);
            for change in round.changes.iter().filter(|change| paths.contains(&change.path)) {
                let Some(after_sha256) = change.after_sha256.clone() else { continue };
                let image = images.iter().find(|image| image.path == change.path);
                let before =
                    image.and_then(|image| image.content(u64::MAX).ok().flatten()).unwrap_or_default();
                let first = steps.iter().find(|step| step.path == change.path);
                let first = first.map_or_else(|| before.clone(), |step| step.first.clone());
                let after = self.results(&round, &change.path, &before);
                let after = after.into_iter().find(|content| sha256_hex(content) == after_sha256);
                let (number, by_build, path) = (round.number, round.by_build, change.path.clone());
                let change = after.map(|after| Change::new(&first, &before, after));
                steps.push(Step { run, round: number, by_build, path, after_sha256, change, first, before });
            }
        }
        let kept: Vec<Vec<u8>> = steps.iter().map(|step| step.before.clone()).collect();
        for step in steps.iter_mut().filter(|step| step.change.is_none()) {
            step.change = kept.iter().find_map(|content| step.change_to(content));
        }
        steps
    }

    /// What changed the tree and was not put back.
    fn rounds(&self) -> Vec<Round> {
        let (mut rounds, mut reply) = (Vec::new(), None);
        for line in self.past.holding() {
            let (number, by_build, changes, edited) = if let Line::Answered(answered) = line {
                reply = Some(answered.reply.stored);
                continue;
            } else if let Line::Restored(_) | Line::RolledBack(_) = line {
                rounds.clear();
                continue;
            } else if let Line::Applied(applied) = line {
                (applied.round, false, applied.changes, applied.edited)
            } else if let Line::Built(built) = line {
                (built.round, true, built.changes, Vec::new())
            } else if let Line::Written(written) = line {
                (written.attempt, false, written.changes, Vec::new())
            } else {
                continue;
            };
            rounds.push(Round { number, by_build, changes, edited, reply: reply.clone() });
        }
        rounds
    }

    fn pre_images(&self, round: &Round) -> Vec<PreImage> {
        let name = if round.by_build { after_build(round.number) } else { round.number.to_string() };
        let folder = self.folder.path().join(UNDO).join(name);
        // A round that changed nothing has none.
        code_commit_apply::pre_images(&[folder]).unwrap_or_default()
    }

    /// What the reply of a round may have made of a file; which of them it was, its hash says.
    fn results(&self, round: &Round, path: &str, before: &[u8]) -> Vec<Vec<u8>> {
        let edited = round.edited.iter().filter(|present| present.path == path);
        let edited = edited.filter_map(|present| self.recall(&present.text.stored));
        let reply = round.reply.as_ref().filter(|_| !round.by_build).and_then(|reply| self.recall(reply));
        let reply = reply.unwrap_or_default();
        edited
            .map(String::into_bytes)
            .chain(fenced(&reply, path))
            .chain(proposed(&reply, path, before))
            .collect()
    }

    fn recall(&self, stored: &Stored) -> Option<String> {
        let Stored { file, bytes, sha256 } = stored.clone();
        self.folder.recall(&code_commit_logging::Stored { file, bytes, sha256 }).ok()
    }
}

/// The content that a reply in fences gives a file.
fn fenced(reply: &str, path: &str) -> Option<Vec<u8>> {
    let parsed = code_commit_parser::parse(reply).ok()?;
    let block = parsed.files().find(|file| file.path == path)?;
    if let FileAction::Write(content) = block.action { Some(content.as_bytes().to_vec()) } else { None }
}

/// The content that a proposal in JSON gives a file.
fn proposed(reply: &str, path: &str, before: &[u8]) -> Option<Vec<u8>> {
    let proposal = proposal::parse(reply.as_bytes(), &Limits::default()).ok()?;
    let write = proposal.writes.iter().find(|write| normalized_path(&write.path) == path)?;
    match &write.change {
        proposal::Change::Content(content) => Some(content.as_bytes().to_vec()),
        proposal::Change::Edits(edits) => {
            let before = std::str::from_utf8(before).ok()?;
            Some(edit::apply(before, edits.iter().map(Edit::hunk)).ok()?.into_bytes())
        }
    }
}
