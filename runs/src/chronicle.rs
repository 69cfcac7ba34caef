//! A run as data, whatever its loop: pages are made from it.

mod contents;

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use code_commit_dir::Folder;
use code_commit_engine::Outcome;
use code_commit_logging::{Redactor, RunFolder};
use code_commit_loop_order::Verdict;
use code_commit_perform::{JOURNAL, Past};
use code_commit_prompt::again;
use code_commit_repo::Git;
use code_commit_timeline::Run;
use serde::Deserialize as _;
use serde_json::Value;

use crate::commit::plan::Task;
use crate::exit::Failure;
use crate::host::Host;
use crate::order;
use crate::project::Project;
use crate::records::{self, name};
use crate::registry::{Known, RUN_JSON};

/// Bytes of a query to read.
const LONGEST_QUERY: u64 = 64 << 10;

/// A run that was found.
#[derive(Debug)]
pub struct Found {
    /// Its folder.
    pub path: PathBuf,
    /// Its place on the list of runs.
    pub known: Known,
    /// Who is asked for the commits that it made.
    git: Option<Git>,
}

impl Found {
    /// The run on the list, without the commits that it made.
    pub fn of(known: Known, root: &Path) -> Self {
        Self {
            path: known.path(root),
            known,
            git: None,
        }
    }

    /// The run on the list of a project.
    pub(crate) fn on(known: Known, project: &Project<'_>) -> Self {
        Self {
            git: project.trusted.git(&project.root).ok(),
            ..Self::of(known, &project.root)
        }
    }

    /// What its record says, without the content of files. Nothing is judged but the journal's chain: a run whose
    /// journal is damaged has no steps.
    pub fn facts(&self) -> Run {
        let folder = records::open(&self.path);
        let plan: Value = folder
            .read(RUN_JSON)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let has_journal = self.path.join(JOURNAL).exists();
        let past = if has_journal {
            Past::read(&self.path).ok()
        } else {
            Some(Past::default())
        };
        let mut run = Run::planned(&name(&self.path), &plan);
        run.query = query(&run.kind, &folder, &plan).unwrap_or_default();
        run.words = again::words(&run.query)
            .filter(|_| run.parent.is_some())
            .map(str::to_owned);
        run.undone = self.known.undone;
        run.steps = past.as_ref().map(Past::steps).unwrap_or_default();
        end(&mut run, &folder, past.as_ref(), has_journal);
        run
    }

    /// The run with the content of the files that it changed, keys redacted. Refuses a
    /// record that was changed.
    pub fn whole(&self, root: &Path, redactor: &Redactor) -> Result<Run, Failure> {
        records::past(&self.path)?;
        let mut run = self.facts();
        contents::add(&mut run, &self.path, root, redactor, self.git.as_ref())?;
        Ok(run)
    }

    /// The beginning and the end of a file of the record, each up to `most` bytes, and the length of the whole.
    /// The end is empty if the beginning is everything. `None` if there is no such file. No symlink is followed and nothing outside of the folder is read.
    pub fn ends(&self, file: &str, most: u64) -> Option<(String, String, u64)> {
        let folder = Folder::open(&self.path).ok()?;
        let mut file = folder.open_file_below(Path::new(file)).ok()??;
        ends(&mut file, most).ok()
    }
}

/// The named run, or the newest, of any loop.
pub fn find(named: Option<&str>, host: Host<'_>) -> Result<Found, Failure> {
    let project = Project::here(host)?;
    Ok(Found::on(project.registry().find(named)?, &project))
}

/// Every run of the project, of all loops.
pub fn all(host: Host<'_>) -> Result<Vec<Found>, Failure> {
    let project = Project::here(host)?;
    Ok(project
        .registry()
        .all()?
        .into_iter()
        .map(|known| Found::on(known, &project))
        .collect())
}

fn ends(file: &mut File, most: u64) -> io::Result<(String, String, u64)> {
    let bytes = file.metadata()?.len();
    let mut piece = |from: u64, most: u64| piece(file, from..from + most);
    if bytes <= most.saturating_mul(2) {
        return Ok((piece(0, bytes)?, String::new(), bytes));
    }
    Ok((piece(0, most)?, piece(bytes - most, most)?, bytes))
}

fn piece(file: &mut File, place: Range<u64>) -> io::Result<String> {
    let mut piece = Vec::new();
    file.seek(SeekFrom::Start(place.start))?;
    file.take(place.end - place.start).read_to_end(&mut piece)?;
    Ok(String::from_utf8_lossy(&piece).into_owned())
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
        // The beginning of the query in the first prompt, which may be large and is not read in full.
        _ => {
            let task = Task::deserialize(plan).ok()?;
            let Range { start, end } = task.query.range();
            let (start, end) = (start as u64, end as u64);
            let mut prompt = File::open(folder.path().join(task.which.layout().query(1))).ok()?;
            // The words of a person that goes on from a run stand at the end.
            let is_again = plan.get("parent").is_some_and(|parent| !parent.is_null());
            let range = if is_again {
                start.max(end.saturating_sub(LONGEST_QUERY))..end
            } else {
                start..end.min(start + LONGEST_QUERY)
            };
            piece(&mut prompt, range).ok()
        }
    }
}

/// How it ended, in words.
fn end(run: &mut Run, folder: &RunFolder, past: Option<&Past>, has_journal: bool) {
    let outcome = run.steps.outcome.clone();
    // A resumed run still has the summary of its earlier end.
    let ended = past.filter(|_| run.kind == "order" && outcome.is_some());
    let summary = ended.and_then(|past| order::summary(folder, past));
    let has_applied = !has_journal && records::has_applied(folder.path());
    run.is_good = match &outcome {
        None => has_applied.then_some(true),
        Some(outcome) => Some(matches!(outcome, Outcome::Done { .. })),
    };
    run.verdict = match &outcome {
        _ if past.is_none() => "damaged".to_owned(),
        _ if has_applied => "applied".to_owned(),
        _ if !has_journal && run.kind == "apply" => "nothing was done".to_owned(),
        None => "not finished".to_owned(),
        Some(outcome) => outcome.code().replace('-', " "),
    };
    run.remark = outcome.and_then(|outcome| match outcome {
        Outcome::NeedsPerson { cause, .. }
        | Outcome::Unfit { cause, .. }
        | Outcome::ModelUnavailable { cause, .. } => Some(cause.message),
        Outcome::Done { .. } | Outcome::AttemptsUsedUp { .. } => None,
    });
    if let Some(summary) = summary {
        run.is_good = Some(summary.verdict == Verdict::Pass);
        summary.verdict.as_str().clone_into(&mut run.verdict);
        run.remark = Some(summary.ended_stage);
    }
}
