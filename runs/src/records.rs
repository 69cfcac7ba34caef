//! Where runs are stored, and which one is meant.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::anyhow;
use code_commit_engine::{Event, Outcome, Stored};
use code_commit_llm::{ErrorCode, Model};
use code_commit_logging::{Redactor, RunFolder};
use code_commit_names::ours::{AGENT_CONFIG, LOGS};
use code_commit_perform::{Observer, Past, RECORD_FORMAT, Record, RecordError, same_format};
use serde::Serialize;

use crate::exit::Failure;
use crate::registry::RUN_JSON;
use crate::staging::Staging;
use crate::trusted::Base;

/// Candidate runs named in a message.
pub(crate) const NAMED_RUNS: usize = 5;

/// Folder for runs in the harness's own state, for projects without `agent-config/`.
pub const RUNS: &str = "runs";

/// The folder with the runs of the default loop (S1 §Running the Build).
pub fn logs(root: &Path) -> PathBuf {
    root.join(AGENT_CONFIG).join(LOGS)
}

/// The folder with the runs of the first loop (S0 §Logging).
pub(crate) fn implement_logs(root: &Path) -> PathBuf {
    root.join(LOGS)
}

/// A new run folder. It is gone again unless its run begins: nothing was changed, and no record is left.
#[derive(Debug)]
pub struct NewRun {
    folder: RunFolder,
    /// Where it is made, so that a kill leaves nothing that looks like a run.
    aside: Staging,
    /// The name of its loop, and what it trusts.
    of: Option<(&'static str, Base)>,
    /// Locks the folder above it until its journal is there.
    _claim: Option<File>,
}

impl NewRun {
    /// Makes the folder beside its place, where the beginning of the record puts it; `help` is the hint if that fails.
    pub fn create(
        base: &Path,
        name: &str,
        redactor: Redactor,
        help: &str,
    ) -> Result<Self, Failure> {
        let make = || {
            let aside = Staging::beside(base)?;
            std::fs::create_dir(aside.path())?;
            anyhow::Ok((aside, RunFolder::choose(base, name, redactor)?))
        };
        let (aside, folder) = make().map_err(|error| Failure::refused(error, help))?;
        Ok(Self {
            folder,
            aside,
            of: None,
            _claim: None,
        })
    }

    /// Holds this lock until the journal is there.
    pub(crate) fn claiming(self, claim: File) -> Self {
        Self {
            _claim: Some(claim),
            ..self
        }
    }

    /// Records the loop and what the run trusts beside its plan.
    pub(crate) fn of(self, name: &'static str, base: Base) -> Self {
        Self {
            of: Some((name, base)),
            ..self
        }
    }

    /// Its place. Nothing may be there yet.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Stores its plan as `run.json`.
    pub fn store(&self, plan: &impl Serialize) -> Result<Stored, Failure> {
        #[derive(Serialize)]
        struct Named<'p, P> {
            #[serde(rename = "loop", skip_serializing_if = "Option::is_none")]
            name: Option<&'p str>,
            version: &'p str,
            record_format: u32,
            #[serde(skip_serializing_if = "Option::is_none")]
            trusted: Option<&'p Base>,
            #[serde(flatten)]
            plan: &'p P,
        }
        let plan = Named {
            name: self.of.as_ref().map(|(name, _)| *name),
            version: env!("CARGO_PKG_VERSION"),
            record_format: RECORD_FORMAT,
            trusted: self.of.as_ref().map(|(_, base)| base),
            plan,
        };
        self.made()
            .store_json(RUN_JSON, &plan)
            .map_err(cannot_begin)
    }

    /// Stores the first prompt, which the plan refers to, so that the run can go on even if it is stopped before it
    /// asks. A prompt with a key is never stored, and not sent either.
    pub(crate) fn store_first(&self, file: &str, prompt: &str) -> Result<(), Failure> {
        if self.folder.redactor().finds_key(prompt) {
            return Ok(());
        }
        self.made()
            .store(file, prompt)
            .map(drop)
            .map_err(cannot_begin)
    }

    /// Where its files are written until it begins.
    pub(crate) fn made(&self) -> RunFolder {
        RunFolder::open(self.aside.path().to_owned(), self.folder.redactor().clone())
    }

    /// Puts the folder in its place, and begins its journal.
    pub(crate) fn record(self, observer: impl Observer + 'static) -> Result<Record, RecordError> {
        self.aside
            .put(self.folder.path())
            .map_err(|error| self.folder.error("create", "", error))?;
        Record::begin(self.folder.clone(), observer).inspect_err(|_| discard(&self.folder))
    }
}

pub(crate) fn cannot_begin(error: impl Into<anyhow::Error>) -> Failure {
    Failure::no_record(error.into().context("cannot begin the record"))
}

/// Removes the record of a run that did not begin.
pub fn discard(folder: &RunFolder) {
    let _ = code_commit_dir::remove(folder.path());
}

/// A run cannot go on, for this reason.
pub(crate) fn closed(name: &str, why: &str) -> Failure {
    let help = format!("start a new run; to see what this one did: code-commit show {name}");
    Failure::nothing_to_do(anyhow!("{name} {why}"), help)
}

/// A run folder to read from.
pub fn open(run: &Path) -> RunFolder {
    RunFolder::open(run.to_owned(), Redactor::default())
}

pub(crate) fn intact(folder: &RunFolder) -> Result<Past, RecordError> {
    let past = Past::read(folder.path())?;
    past.intact(folder)?;
    Ok(past)
}

/// Whether the run took its first step: one that was refused before is not meant if no run is named.
pub(crate) fn has_begun(run: &Path) -> bool {
    let journal = std::fs::metadata(run.join(code_commit_perform::JOURNAL));
    journal.map_or_else(|_| has_applied(run), |journal| journal.len() > 0)
}

/// Whether it applied any change set.
pub(crate) fn has_applied(run: &Path) -> bool {
    code_commit_apply::read_applied(&run.join(code_commit_changes::BACKUP).join("1"))
        .is_ok_and(|applied| applied.is_some())
}

/// Refuses to do the work of a key again whose run cannot be read: it was paid for, unless nothing was asked.
pub(crate) fn refuse_unread(run: &RunFolder, error: anyhow::Error) -> Result<(), Failure> {
    let is_sent = |line: &Event| matches!(line, Event::Asked(_));
    if Past::read_if_begun(run.path()).is_ok_and(|past| !past.lines.iter().any(is_sent)) {
        return Ok(());
    }
    let error = error.context(format!(
        "the key was used for {}, which cannot be read here",
        name(run.path())
    ));
    let help = "the version that made it may continue it; --new asks and pays again";
    Err(Failure::refused(error, help))
}

/// What every plan says about its run, whatever its loop.
#[derive(Debug, Default, serde::Deserialize)]
pub(crate) struct Head {
    /// `commit`, `implement`, `order`, `phase` or `spec`.
    #[serde(rename = "loop")]
    pub(crate) kind: String,
    /// The supervisor's name for the work.
    pub(crate) key: Option<String>,
    /// The phase that it is about.
    pub(crate) phase: Option<u32>,
    /// What was trusted when it began.
    pub(crate) trusted: Option<Base>,
}

impl Head {
    /// Of the plan in this folder; `None` if there is none that can be understood.
    pub(crate) fn of(run: &RunFolder) -> Option<Self> {
        serde_json::from_str(&run.read(RUN_JSON).ok()?).ok()
    }
}

/// Refuses to continue a run whose record has another format.
pub(crate) fn can_be_continued(run: &Path) -> Result<(), Failure> {
    let help =
        "the version that made it can continue it; the same command with --new starts a new run";
    same_format(run).map_err(|error| Failure::refused(error, help))
}

/// Whether this run is meant: by its name, by the path of its folder, or by the path of a file in it, as the
/// last line of a run shows them.
pub(crate) fn is_named(run: &Path, wanted: &str) -> bool {
    let is_path = || {
        let path = Path::new(wanted).canonicalize().ok()?;
        let folder = if path.is_dir() {
            &*path
        } else {
            path.parent()?
        };
        Some(folder == run.canonicalize().ok()?)
    };
    name(run) == wanted || (wanted.contains('/') && is_path() == Some(true))
}

/// When the last line of its journal was written; without a journal, when its folder was made.
pub fn last_written(run: &Path) -> SystemTime {
    let looked_at = std::fs::metadata(run.join(code_commit_perform::JOURNAL))
        .or_else(|_| std::fs::metadata(run));
    looked_at
        .and_then(|found| found.modified())
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// By the clock that dates files.
#[expect(
    clippy::disallowed_methods,
    reason = "what is old, is old by the clock that dates files"
)]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// A run's name: that of its folder.
pub fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// How a run ended; `None` if it has not, or if it was killed before its first line. An unreadable run does not
/// count as over: its turns were paid for, and it may hold copies of files that an agent may not change.
pub(crate) fn outcome_of(folder: &RunFolder) -> Result<Option<Outcome>, Failure> {
    let past = Past::read_if_begun(folder.path()).map_err(|error| {
        let help = format!(
            "move {} away, then start a new run",
            folder.path().display()
        );
        Failure::refused(error, help)
    })?;
    Ok(past.outcome().cloned())
}

/// The record of a run; empty for `apply`, which calls no model.
pub fn past(run: &Path) -> Result<Past, Failure> {
    if is_applied(run) {
        return Ok(Past::default());
    }
    intact(&open(run))
        .map_err(|error| Failure::refused(error, "its files still exist: look in the folder"))
}

/// Whether this is the record of a finished `apply`: pre-images, but no journal.
fn is_applied(run: &Path) -> bool {
    !run.join(code_commit_perform::JOURNAL).exists() && has_applied(run)
}

/// Tells each model which of its answers a resumed run has used: a file of answers continues after these. An attempt
/// that found the end of the file used none.
pub fn pass_over(lines: &[Event], model: &dyn Model) {
    let models = code_commit_llm::all_of(model);
    for line in lines {
        let Event::Attempted(attempted) = line else {
            continue;
        };
        let attempt = &attempted.attempt;
        if attempt.error.as_deref() == Some(ErrorCode::NothingLeft.as_str()) {
            continue;
        }
        let is_its = |model: &&&dyn Model| Some(model.id().to_string()) == attempt.model;
        let asked = models.iter().find(is_its).or(models.first());
        asked.into_iter().for_each(|model| model.pass_over(1));
    }
}
