//! The record of one run: its folder, its journal, and its observer.

mod format;
mod past;
mod texts;
mod unsynced;

use std::collections::BTreeMap;
use std::path::Path;

use code_commit_changes::BACKUP;
use code_commit_dir::is_one_file_system;
use code_commit_engine::{
    Apply, Build, Durability, Event, Measure, Problem, Recorded, Request as _, Stored, Text, Write,
};
use code_commit_logging::{FolderError, Journal, RunFolder};
use serde_json::{Value, json};

use crate::fault::with_sources;
use crate::places::Places;
use crate::reserve::Reserve;
use crate::{Observer, Progress};

pub use format::{JOURNAL, OtherFormat, RECORD_FORMAT, RUN_JSON, RecordError, same_format};
use format::{SETS, other_version};
pub use past::Past;
use past::manifests;
pub use texts::output_text;
use texts::visit_stored;
pub(crate) use texts::{Texts, both_ends};
use unsynced::Unsynced;

/// Stores answers and notes. What was paid for is on disk before anything else uses it.
pub struct Record {
    texts: Texts,
    journal: Journal,
    unsynced: Unsynced,
    /// The sets of pre-images that the journal names.
    sets: BTreeMap<String, String>,
    places: Places,
    /// The warnings of this process: a build that fails again for the same reason says so once.
    warned: Vec<Problem>,
    observer: Box<dyn Observer>,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record")
            .field("folder", self.folder())
            .finish_non_exhaustive()
    }
}

/// A run that is interrupted leaves the last paid answer on disk, too.
impl Drop for Record {
    fn drop(&mut self) {
        if self.unsynced.is_awaited {
            let _ = self.sync();
        }
    }
}

impl Record {
    /// Begins the journal of a new run. Fails if the disk has no room for an answer: nothing has been paid
    /// for yet.
    pub fn begin(
        folder: RunFolder,
        observer: impl Observer + 'static,
    ) -> Result<Self, RecordError> {
        drop(Reserve::hold(folder.path())?);
        let journal = Journal::create(&folder.path().join(JOURNAL), folder.redactor().clone())?;
        let (places, unsynced, sets) = (
            Places::around(folder.path()),
            Unsynced::default(),
            BTreeMap::new(),
        );
        Ok(Self {
            places,
            texts: Texts::of(folder),
            journal,
            unsynced,
            sets,
            warned: Vec::new(),
            observer: Box::new(observer),
        })
    }

    /// Continues the journal of an unfinished run, or begins it; gives its content.
    pub fn resume(
        folder: RunFolder,
        observer: impl Observer + 'static,
    ) -> Result<(Self, Past), RecordError> {
        if !past::has_journal(folder.path()) {
            return Ok((Self::begin(folder, observer)?, Past::default()));
        }
        same_format(folder.path())?;
        let path = folder.path().join(JOURNAL);
        let (journal, entries) = Journal::reopen(&path, folder.redactor().clone())?;
        let past = Past::of(entries, &path)?;
        past.intact(&folder)?;
        let (places, unsynced) = (Places::around(folder.path()), Unsynced::default());
        let (texts, sets) = (past.texts(folder), past.sets());
        let observer = Box::new(observer);
        let mut record = Self {
            texts,
            journal,
            unsynced,
            sets,
            places,
            warned: Vec::new(),
            observer,
        };
        // Lines after these say that they are on disk.
        record.sync()?;
        if past.is_torn {
            record.note(&Event::Resumed {
                kept: past.answers.len(),
            })?;
        }
        Ok((record, past))
    }

    /// Names files of this tree relative to it.
    #[must_use]
    pub fn about(mut self, root: &Path) -> Self {
        self.places.add(root);
        self
    }

    /// An error with its causes as the record may hold it: no path of this machine.
    pub(crate) fn words(&self, error: &dyn std::error::Error) -> String {
        self.places.shorten(&with_sources(error))
    }

    /// The run's folder.
    pub fn folder(&self) -> &RunFolder {
        &self.texts.folder
    }

    /// Writes an intermediate event to the journal, then tells the observer. When the end is in the journal, what
    /// led to it is on disk.
    pub fn note(&mut self, note: &Event) -> Result<(), RecordError> {
        if matches!(note, Event::Ended { .. }) {
            self.sync()?;
        }
        if matches!(note, Event::Resumed { .. }) {
            // Those of answers that do not hold any more are made again.
            self.sets.clear();
        }
        let path = self.folder().path().join(JOURNAL);
        let json = serde_json::to_value(note).map_err(|source| other_version(&path, 0, source))?;
        self.append(&json, None)
    }

    /// Puts the journal and every file that it names on disk.
    pub fn sync(&mut self) -> Result<(), RecordError> {
        self.unsynced.sync(&self.texts.folder, &self.journal)
    }

    /// Runs what may change the tree by a transaction whose state and pre-images are in these folders. When the tree
    /// changes, and when this returns, the record is on disk: the transaction waits for all of its file system, so a
    /// record that is on it need not be waited for on its own.
    pub fn synced_by<T>(
        &mut self,
        state: &Path,
        undo: &Path,
        change: impl FnOnce() -> T,
    ) -> Result<T, RecordError> {
        if undo.exists() || !is_one_file_system(self.folder().path(), state) {
            self.sync()?;
        }
        let changed = change();
        if undo.exists() {
            self.unsynced = Unsynced::nothing();
        }
        self.sync()?;
        Ok(changed)
    }

    /// Writes an answer, its request, and the manifests of the pre-images since the last one. It is on disk
    /// as soon as its durability says, with everything before it.
    pub fn answer(&mut self, entry: &Recorded, durability: Durability) -> Result<(), RecordError> {
        visit_stored(&entry.answer, &mut |Stored { file, sha256, .. }| {
            self.texts.files.insert(sha256, file);
        });
        let request = [(entry.kind.clone(), entry.request.clone())];
        let request = Value::Object(request.into_iter().collect());
        let answer = self.with_sets(entry)?;
        self.append(&answer, Some(request))?;
        match durability {
            Durability::Now => self.sync(),
            Durability::BeforeNext => {
                self.unsynced.is_awaited = true;
                Ok(())
            }
            Durability::Later => Ok(()),
        }
    }

    /// The answer with the manifests of the sets that were made for it.
    fn with_sets(&mut self, entry: &Recorded) -> Result<Value, RecordError> {
        let mut answer = entry.answer.clone();
        if let Value::Object(members) = &mut answer
            && [Apply::KIND, Build::KIND, Write::KIND, Measure::KIND].contains(&&*entry.kind)
        {
            let mut sets = manifests(self.folder().path())
                .map_err(|source| self.folder().error("read", BACKUP, source))?;
            sets.retain(|name, _| !self.sets.contains_key(name));
            if !sets.is_empty() {
                members.insert(SETS.to_owned(), json!(sets));
            }
            self.sets.extend(sets);
        }
        Ok(answer)
    }

    fn append(&mut self, json: &Value, request: Option<Value>) -> Result<(), RecordError> {
        if self.unsynced.is_awaited {
            self.sync()?;
        }
        self.journal.append_answer(json, request)?;
        self.unsynced.add(json);
        let path = self.folder().path().join(JOURNAL);
        let line = serde_json::from_value(json.clone())
            .map_err(|source| other_version(&path, 0, source))?;
        self.observer.see(&Progress::Recorded { line: &line, json });
        Ok(())
    }

    /// Writes a warning to the journal and tells the observer, even if it could not be written; the same one only once.
    /// Keys are redacted.
    pub fn warn(&mut self, warning: Problem) -> Result<(), RecordError> {
        let warning = self.redacted(warning);
        if self.warned.contains(&warning) {
            return Ok(());
        }
        self.warned.push(warning.clone());
        let noted = self.note(&Event::Warned {
            warning: warning.clone(),
        });
        self.tell(&Progress::Warning(&warning));
        noted
    }

    fn redacted(&self, warning: Problem) -> Problem {
        let redact = |text: String| self.folder().redactor().redact(&text).into_owned();
        let warning = self.portable(warning);
        Problem {
            path: warning.path.map(redact),
            message: redact(warning.message),
            ..warning
        }
    }

    /// A message without a path of this machine.
    pub(crate) fn short(&self, message: &str) -> String {
        self.places.shorten(message)
    }

    /// The problem without a path of this machine.
    pub(crate) fn portable(&self, problem: Problem) -> Problem {
        Problem {
            message: self.places.shorten(&problem.message),
            ..problem
        }
    }

    /// Tells the observer something without recording it.
    pub fn tell(&mut self, progress: &Progress<'_>) {
        self.observer.see(progress);
    }

    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }
}

/// Stores a text, with keys redacted, and keeps it in memory in that form.
pub(crate) fn store(record: &Record, file: &str, text: &str) -> Result<Text, FolderError> {
    let (stored, text) = record.folder().store_and_tell(file, text)?;
    Ok(Text::new(stored, text.into()))
}

#[cfg(test)]
mod tests {
    use code_commit_engine::{Keep, Kept, Restore, Restored};
    use code_commit_logging::Redactor;

    use super::*;
    use crate::Silent;

    fn run() -> (tempfile::TempDir, RunFolder) {
        let base = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(base.path(), "run", Redactor::default()).unwrap();
        (base, folder)
    }

    fn restored(path: &str) -> Recorded {
        let paths = vec![path.to_owned()];
        Recorded::of(&Restore, &Restored { paths }).unwrap()
    }

    #[test]
    fn what_was_done_again_since_does_not_hold_and_is_still_on_record() {
        let (_base, folder) = run();
        let mut record = Record::begin(folder.clone(), Silent).unwrap();
        for path in ["a", "b", "c"] {
            record.answer(&restored(path), Durability::Later).unwrap();
        }
        record.note(&Event::Resumed { kept: 1 }).unwrap();
        record.answer(&restored("d"), Durability::Later).unwrap();
        let past = Past::read(folder.path()).unwrap();
        assert_eq!(past.answers, [restored("a"), restored("d")]);
        assert_eq!(past.lines.len(), 5);
    }

    #[test]
    fn an_answer_without_its_request_is_of_another_version() {
        let (_base, folder) = run();
        let path = folder.path().join(JOURNAL);
        let mut journal = Journal::create(&path, Redactor::default()).unwrap();
        journal.append(&restored("a").answer).unwrap();
        let error = Past::read(folder.path()).unwrap_err();
        assert!(
            matches!(error, RecordError::OtherVersion { line: 1, .. }),
            "{error:?}"
        );
        assert!(
            error
                .to_string()
                .ends_with("was written by another version"),
            "{error}"
        );
    }

    #[test]
    fn a_paid_answer_whose_file_is_gone_is_valid_only_if_a_later_line_says_that_it_was_synced() {
        let (_base, folder) = run();
        let mut record = Record::begin(folder.clone(), Silent).unwrap();
        let stored = store(&record, "reply.txt", "kept").unwrap().stored;
        let mut paid = restored("");
        paid.answer = json!({ "what": "answered", "round": 1, "reply": stored, "raw": stored,
            "finish": "complete", "usage": {}, "elapsed_ms": 1 });
        record.answer(&paid, Durability::Now).unwrap();
        let valid = || Past::read(folder.path()).unwrap().answers.len();
        std::fs::remove_file(folder.path().join("reply.txt")).unwrap();
        assert_eq!(valid(), 0);
        record.answer(&restored("a"), Durability::Later).unwrap();
        assert_eq!(valid(), 2);
    }

    #[test]
    fn a_record_is_whole_as_long_as_the_files_are_what_its_answers_say() {
        let (_base, folder) = run();
        let begun = Past::read_if_begun(folder.path()).unwrap();
        assert!(begun.lines.is_empty() && manifests(folder.path()).unwrap().is_empty());
        let mut record = Record::begin(folder.clone(), Silent).unwrap();
        let text = store(&record, "kept.txt", "kept").unwrap();
        let stored = text.stored;
        let request = Keep {
            file: "kept.txt".to_owned(),
            text: "kept".into(),
        };
        let entry = Recorded::of(&request, &Kept { stored }).unwrap();
        record.answer(&entry, Durability::Later).unwrap();
        let past = Past::read(folder.path()).unwrap();
        past.intact(&folder).unwrap();
        code_commit_dir::replace(&folder.path().join("kept.txt"), b"other").unwrap();
        assert!(matches!(past.intact(&folder), Err(RecordError::Folder(_))));
    }
}
