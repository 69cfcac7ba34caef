//! A run as data, whatever its loop: pages and traces are made from it.

pub(crate) mod contents;

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use code_commit_dir::Folder;
use code_commit_engine::Outcome;
use code_commit_logging::{Journal, Redactor, RunFolder};
use code_commit_loop_order::Verdict;
use code_commit_perform::{JOURNAL, Past};
use code_commit_timeline::{FileEdit, Run};
use serde_json::Value;

use crate::exit::Failure;
use crate::host::Host;
use crate::records::account::query_of;
use crate::records::{self, name};
use crate::registry::{Known, RUN_JSON};
use crate::site::Site;
use crate::{order, place};

/// Bytes of a query to read.
const LONGEST_QUERY: u64 = 64 << 10;

/// A run that was found.
#[derive(Debug)]
pub struct Found {
    /// Its folder.
    pub path: PathBuf,
    known: Option<Known>,
}

impl Found {
    /// The run in this folder.
    pub fn at(path: PathBuf) -> Self {
        Self { path, known: None }
    }

    /// What its record says, without the content of files. Nothing is judged but the journal's chain: a run whose
    /// journal is damaged has no steps.
    pub fn facts(&self) -> Run {
        let folder = records::open(&self.path);
        let plan: Value =
            folder.read(RUN_JSON).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let has_journal = self.path.join(JOURNAL).exists();
        let past = if has_journal { Past::read(&self.path).ok() } else { Some(Past::default()) };
        let mut run = Run::planned(&name(&self.path), &plan);
        run.query = query(&run.kind, &folder, &plan).unwrap_or_default();
        run.undone = self.known.as_ref().is_some_and(|known| known.undone);
        run.belief = self.known.as_ref().map_or_else(|| "made here".to_owned(), Known::belief);
        run.steps = past.as_ref().map(Past::steps).unwrap_or_default();
        end(&mut run, &folder, past.as_ref(), has_journal);
        run
    }

    /// The same with the content of the files that it changed and the hash of its journal, keys redacted. Refuses a
    /// record that was changed.
    pub fn whole(&self, root: &Path, redactor: &Redactor) -> Result<Run, Failure> {
        records::past(&self.path)?;
        let mut run = self.facts();
        run.journal_sha256 = Journal::last_hash(&self.path.join(JOURNAL)).unwrap_or_default();
        contents::add(&mut run, &self.path, root, redactor)?;
        Ok(run)
    }

    /// The beginning and the end of a file of the record, each up to `most` bytes, and the length of the whole.
    /// The end is empty if the beginning is everything. `None` if there is no such file: names come from the record,
    /// which may have been made elsewhere, so no symlink is followed and nothing outside of the folder is read.
    pub fn ends(&self, file: &str, most: u64) -> Option<(String, String, u64)> {
        let folder = Folder::open(&self.path).ok()?;
        let mut file = folder.open_file_below(Path::new(file)).ok()??;
        ends(&mut file, most).ok()
    }

    /// The commit that holds the files as the run left them: what is checked out, if it does.
    pub fn revision(&self, run: &Run, root: &Path) -> Option<String> {
        let tree = place::work_tree(root).ok()?;
        let head = tree.head().ok()??;
        let below = tree.root().strip_prefix(tree.top()).ok()?;
        let is_held = |edit: &FileEdit<'_>| {
            let content = tree.blob(&head, below.join(edit.path).to_str()?).ok()?;
            Some(content.map(|content| code_commit_logging::sha256_hex(&content)).as_deref() == edit.after)
        };
        run.edits().iter().all(|edit| is_held(edit) == Some(true)).then_some(head)
    }
}

/// The named run, or the newest, of any loop.
pub fn find(named: Option<&str>, host: Host<'_>) -> Result<Found, Failure> {
    let site = Site::here(host)?;
    let known = site.registry().find(named)?;
    Ok(Found { path: known.path(&site.root), known: Some(known) })
}

/// Every run of the project, of all loops.
pub fn all(host: Host<'_>) -> Result<Vec<Found>, Failure> {
    let site = Site::here(host)?;
    let found = |known: Known| Found { path: known.path(&site.root), known: Some(known) };
    Ok(site.registry().with_imported()?.into_iter().map(found).collect())
}

fn ends(file: &mut File, most: u64) -> io::Result<(String, String, u64)> {
    let bytes = file.metadata()?.len();
    let mut piece = |from: u64, most: u64| {
        let mut piece = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.take(most).read_to_end(&mut piece)?;
        io::Result::Ok(String::from_utf8_lossy(&piece).into_owned())
    };
    if bytes <= most.saturating_mul(2) {
        return Ok((piece(0, bytes)?, String::new(), bytes));
    }
    Ok((piece(0, most)?, piece(bytes - most, most)?, bytes))
}

fn query(kind: &str, folder: &RunFolder, plan: &Value) -> Option<String> {
    match kind {
        "order" => {
            let order: Value = serde_json::from_str(&folder.read("work_order.json").ok()?).ok()?;
            let text = |key: &str| order.get(key).and_then(Value::as_str).unwrap_or_default();
            Some(format!("{}\n\n{}", text("title"), text("intent")))
        }
        "phase" => Some(format!("Phase {}", plan.get("phase")?)),
        "spec" => plan.pointer("/inputs/focus")?.as_str().map(str::to_owned),
        _ => query_of(folder, LONGEST_QUERY),
    }
}

/// How it ended, in words.
fn end(run: &mut Run, folder: &RunFolder, past: Option<&Past>, has_journal: bool) {
    let outcome = run.steps.outcome.clone();
    // A resumed run still has the summary of its earlier end.
    let ended = past.filter(|_| run.kind == "order" && outcome.is_some());
    let summary = ended.and_then(|past| order::summary(folder, past));
    run.is_good = outcome.as_ref().map(|outcome| matches!(outcome, Outcome::Done { .. }));
    run.verdict = match &outcome {
        _ if past.is_none() => "damaged".to_owned(),
        _ if !has_journal && run.kind == "apply" => "applied".to_owned(),
        None => "not finished".to_owned(),
        Some(outcome) => outcome.code().replace('-', " "),
    };
    run.remark = outcome.and_then(|outcome| match outcome {
        Outcome::NeedsPerson { cause, .. }
        | Outcome::Unfit { cause, .. }
        | Outcome::ModelUnavailable { cause, .. } => Some(cause.message),
        Outcome::Done { .. } | Outcome::AttemptsUsedUp { .. } | Outcome::Stuck { .. } => None,
    });
    if let Some(summary) = summary {
        run.is_good = Some(summary.verdict == Verdict::Pass);
        summary.verdict.as_str().clone_into(&mut run.verdict);
        run.remark = Some(summary.ended_stage);
    }
}
