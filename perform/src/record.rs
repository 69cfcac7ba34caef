//! The record of one run: its folder, its journal, and its observer.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use engine::{Digest, Line, Note, Outcome, Problem, Recorded, Stored, Text};
use logging::{Durability, Entry, FolderError, Journal, JournalError, RunFolder};
use runner::Captured;
use serde_json::Value;

use crate::fault::with_sources;
use crate::places::Places;
use crate::reserve::Reserve;
use crate::{Event, Observer};

/// Name of the journal in a run folder.
pub const JOURNAL: &str = "events.jsonl";

/// Bytes kept in memory from each end of a command's output, which may be larger than memory. A prompt has
/// room for less.
const HELD_BYTES: usize = 2 << 20;

/// Stores answers and notes. They are on disk before anything else uses them.
pub struct Record<'o> {
    texts: Texts,
    journal: Journal,
    places: Places,
    observer: &'o mut dyn Observer,
}

/// Why a record cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A file of the run folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A line that this version does not write.
    #[error("line {line} of the journal {} was written by another version", path.display())]
    OtherVersion {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What it lacks.
        source: serde_json::Error,
    },
}

impl std::fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("folder", self.folder()).finish_non_exhaustive()
    }
}

impl<'o> Record<'o> {
    /// Begins the journal of a new run. Fails if the disk has no room for an answer: nothing has been paid
    /// for yet.
    pub fn begin(folder: RunFolder, observer: &'o mut dyn Observer) -> Result<Self, RecordError> {
        drop(Reserve::hold(folder.path())?);
        let journal = Journal::create(&folder.path().join(JOURNAL), folder.redactor().clone())?;
        Ok(Self { places: Places::around(folder.path()), texts: Texts::of(folder), journal, observer })
    }

    /// Continues the journal of an unfinished run; gives its content.
    pub fn resume(folder: RunFolder, observer: &'o mut dyn Observer) -> Result<(Self, Past), RecordError> {
        let path = folder.path().join(JOURNAL);
        let (journal, entries) = Journal::reopen(&path, folder.redactor().clone())?;
        let past = Past::of(entries, &path)?;
        past.intact(&folder)?;
        let places = Places::around(folder.path());
        Ok((Self { texts: past.texts(folder), journal, places, observer }, past))
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

    /// Writes an intermediate event to the journal, then tells the observer.
    pub fn note(&mut self, note: &Note) -> Result<(), RecordError> {
        let path = self.folder().path().join(JOURNAL);
        let json = serde_json::to_value(note).map_err(|source| other_version(&path, 0, source))?;
        self.append(&json, None, Durability::Written)
    }

    /// Writes an answer and its request.
    pub fn answer(&mut self, entry: &Recorded, is_synced: bool) -> Result<(), RecordError> {
        visit_stored(&entry.answer, &mut |Stored { file, sha256, .. }| {
            self.texts.files.insert(sha256, file);
        });
        let durability = if is_synced { Durability::Synced } else { Durability::Written };
        let request = [(entry.kind.clone(), entry.request.clone())];
        let request = Value::Object(request.into_iter().collect());
        self.append(&entry.answer, Some(request), durability)
    }

    fn append(
        &mut self,
        json: &Value,
        request: Option<Value>,
        durability: Durability,
    ) -> Result<(), RecordError> {
        self.journal.append_answer(json, request, durability)?;
        let path = self.folder().path().join(JOURNAL);
        let line = serde_json::from_value(json.clone()).map_err(|source| other_version(&path, 0, source))?;
        self.observer.see(&Event::Line { line: &line, json });
        Ok(())
    }

    /// Writes a warning to the journal and tells the observer, even if it could not be written. Keys are
    /// redacted.
    pub fn warn(&mut self, warning: Problem) -> Result<(), RecordError> {
        let warning = self.redacted(warning);
        let noted = self.note(&Note::Warned { warning: warning.clone() });
        self.tell(&Event::Warning(&warning));
        noted
    }

    /// The same for what programs written by a model must not read: the record may be in their tree.
    pub fn hint(&mut self, warning: Problem) {
        let warning = self.redacted(warning);
        self.tell(&Event::Warning(&warning));
    }

    fn redacted(&self, warning: Problem) -> Problem {
        let redact = |text: String| self.folder().redactor().redact(&text).into_owned();
        let warning = self.portable(warning);
        Problem { path: warning.path.map(redact), message: redact(warning.message), ..warning }
    }

    /// A message without a path of this machine.
    pub(crate) fn short(&self, message: &str) -> String {
        self.places.shorten(message)
    }

    /// The problem without a path of this machine.
    pub(crate) fn portable(&self, problem: Problem) -> Problem {
        Problem { message: self.places.shorten(&problem.message), ..problem }
    }

    /// Tells the observer something without recording it.
    pub fn tell(&mut self, event: &Event<'_>) {
        self.observer.see(event);
    }

    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }
}

/// The texts of a run: in files of its folder, named by their hashes in its journal.
#[derive(Debug)]
pub(crate) struct Texts {
    folder: RunFolder,
    files: BTreeMap<String, String>,
}

impl Texts {
    fn of(folder: RunFolder) -> Self {
        Self { folder, files: BTreeMap::new() }
    }

    /// The run's folder.
    pub(crate) fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Reads a text back.
    pub(crate) fn fetch(&self, text: &mut Text) -> Result<(), FolderError> {
        let content = self.folder.recall(&to_logging(&text.stored))?;
        text.fill(content.into());
        Ok(())
    }

    /// The same for what a command printed.
    pub(crate) fn fetch_output(&self, text: &mut Text) -> Result<(), FolderError> {
        let now = output_text(&self.folder, &text.stored.file)?;
        if now.stored != text.stored {
            return Err(FolderError::Changed { path: self.folder.path().join(&text.stored.file) });
        }
        *text = now;
        Ok(())
    }

    /// The content of a file that the journal names with this digest.
    pub(crate) fn recall(&self, digest: &Digest) -> Option<String> {
        self.folder.read(self.files.get(&digest.sha256)?).ok()
    }
}

/// Visits the files that a line names.
fn visit_stored(line: &Value, visit: &mut impl FnMut(Stored)) {
    if let Ok(stored) = serde_json::from_value(line.clone()) {
        visit(stored);
    }
    let members = line.as_object().into_iter().flat_map(|members| members.values());
    let items = line.as_array().into_iter().flatten();
    let inner = members.chain(items).filter(|value| value.is_object() || value.is_array());
    inner.for_each(|value| visit_stored(value, visit));
}

/// The content of a run's journal.
#[derive(Debug, Default)]
pub struct Past {
    /// Every line, in order.
    pub lines: Vec<Line>,
    /// The lines as JSON.
    pub json: Vec<Value>,
    /// The answers that are still valid: those that a resumed run repeated are left out.
    pub answers: Vec<Recorded>,
    /// When the first and the last line were written, UTC, RFC 3339.
    pub span: Option<(String, String)>,
    files: BTreeMap<String, String>,
}

impl Past {
    /// The journal of the run in this folder.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(JOURNAL);
        Self::of(Journal::entries(&path)?, &path)
    }

    fn of(entries: Vec<Entry<Value>>, path: &Path) -> Result<Self, RecordError> {
        let mut past = Self::default();
        if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
            past.span = Some((first.at.clone(), last.at.clone()));
        }
        for Entry { index, fact, request, .. } in entries {
            past.learn(fact, request).map_err(|source| other_version(path, index + 1, source))?;
        }
        Ok(past)
    }

    fn learn(&mut self, json: Value, request: Option<Value>) -> serde_json::Result<()> {
        visit_stored(&json, &mut |Stored { file, sha256, .. }| drop(self.files.insert(sha256, file)));
        let line: Line = serde_json::from_value(json.clone())?;
        if let Line::Resumed { kept } = &line {
            self.answers.truncate(*kept);
        }
        // Otherwise a resumed run would ignore the answer and pay for it again.
        if request.is_none() && line.is_answer() {
            return Err(serde::de::Error::custom("an answer without its request"));
        }
        if let Some(Value::Object(request)) = request {
            let of = |(kind, request)| Recorded { kind, request, answer: json.clone() };
            self.answers.extend(request.into_iter().map(of));
        }
        self.lines.push(line);
        self.json.push(json);
        Ok(())
    }

    /// Checks that every prompt and every file of a valid answer is unchanged.
    ///
    /// # Errors
    ///
    /// Names the first one that is not.
    pub fn intact(&self, folder: &RunFolder) -> Result<(), RecordError> {
        let mut named = BTreeMap::new();
        for entry in &self.answers {
            visit_stored(&entry.answer, &mut |stored| drop(named.insert(stored.file.clone(), stored)));
        }
        for line in &self.lines {
            if let Line::Asked(asked) = line {
                named.insert(asked.prompt.file.clone(), asked.prompt.clone());
            }
        }
        let withheld = withheld(folder);
        for (file, stored) in named {
            let is_elsewhere = withheld.get(&file) == Some(&stored.sha256);
            if is_elsewhere && !folder.path().join(&file).exists() {
                continue;
            }
            if to_engine(folder.adopt(&file)?.0) != stored {
                return Err(FolderError::Changed { path: folder.path().join(file) }.into());
            }
        }
        Ok(())
    }

    /// The files with the prompts that were sent, to models and to agents.
    pub fn prompts(&self) -> impl Iterator<Item = Stored> + '_ {
        self.lines.iter().filter_map(|line| {
            if let Line::Asked(asked) = line {
                Some(asked.prompt.clone())
            } else if let Line::TurnBegins(begins) = line {
                Some(begins.prompt.clone())
            } else {
                None
            }
        })
    }

    /// The texts that it names, in the run's folder.
    pub(crate) fn texts(&self, folder: RunFolder) -> Texts {
        Texts { folder, files: self.files.clone() }
    }

    /// The valid answers, as lines.
    pub fn holding(&self) -> impl Iterator<Item = Line> + '_ {
        self.answers.iter().filter_map(|entry| serde_json::from_value(entry.answer.clone()).ok())
    }

    /// How the run ended; `None` if it was stopped, or resumed since.
    pub fn outcome(&self) -> Option<&Outcome> {
        if let Some(Line::Ended { outcome }) = self.lines.last() { Some(outcome) } else { None }
    }

    /// The number of answers before the build that found the machine unfit, if the run ended with that. A
    /// build that has changed files is not run again: its pre-images are those of the first time.
    pub fn before_unfit(&self) -> Option<usize> {
        let [.., built, baseline] = self.answers.as_slice() else { return None };
        let built: Option<Line> = serde_json::from_value(built.answer.clone()).ok();
        let is_same_again = matches!(built, Some(Line::Built(built)) if built.changes.is_empty());
        (is_same_again
            && baseline.answers("baseline-built")
            && matches!(self.outcome(), Some(Outcome::Unfit { .. })))
        .then(|| self.answers.len() - 2)
    }

    /// Whether the last valid entry is that the model gave no answer.
    pub fn ends_unanswered(&self) -> bool {
        self.answers.last().is_some_and(|entry| entry.answers("unanswered"))
    }
}

/// The file that says which files of an imported record stayed where it was made.
const WITHHELD: &str = "withheld.json";

/// Notes in the folder of an imported record which files stayed behind, with their hashes.
///
/// # Errors
///
/// Fails if the note cannot be written.
pub fn note_withheld<'w>(
    folder: &Path,
    files: impl IntoIterator<Item = (&'w str, &'w str)>,
) -> io::Result<()> {
    let files: BTreeMap<&str, &str> = files.into_iter().collect();
    dir::replace(&folder.join(WITHHELD), &serde_json::to_vec_pretty(&files)?)
}

fn withheld(folder: &RunFolder) -> BTreeMap<String, String> {
    let note = folder.read(WITHHELD).ok();
    note.and_then(|note| serde_json::from_str(&note).ok()).unwrap_or_default()
}

fn other_version(path: &Path, line: u64, source: serde_json::Error) -> RecordError {
    RecordError::OtherVersion { path: path.to_owned(), line, source }
}

pub(crate) fn to_engine(stored: logging::Stored) -> Stored {
    let logging::Stored { file, bytes, sha256 } = stored;
    Stored { file, bytes, sha256 }
}

pub(crate) fn to_logging(stored: &Stored) -> logging::Stored {
    let Stored { file, bytes, sha256 } = stored.clone();
    logging::Stored { file, bytes, sha256 }
}

/// Stores a text, with keys redacted, and keeps it in memory in that form.
pub(crate) fn store(
    record: &Record<'_>,
    file: &str,
    text: &str,
    durability: Durability,
) -> Result<Text, FolderError> {
    let (stored, text) = record.folder().store_and_tell(file, text, durability)?;
    Ok(Text::new(to_engine(stored), text.into()))
}

/// What a command printed into `file`: all of it, or both ends if it is too long for memory.
pub fn output_text(folder: &RunFolder, file: &str) -> Result<Text, FolderError> {
    let (stored, whole) = folder.adopt(file)?;
    let ends = both_ends(&whole, HELD_BYTES, HELD_BYTES);
    let ends = ends.map_err(|source| folder.error("read", file, source))?;
    Ok(Text::new(to_engine(stored), ends.text().into()))
}

/// Read from the file, where keys are redacted: an end cut from the raw output could hold half a key.
pub(crate) fn both_ends(whole: &File, head_bytes: usize, tail_bytes: usize) -> io::Result<Captured> {
    let total_bytes = whole.metadata()?.len();
    let total = usize::try_from(total_bytes).map_err(io::Error::other)?;
    let mut head = vec![0; total.min(head_bytes)];
    whole.read_exact_at(&mut head, 0)?;
    let mut tail = vec![0; (total - head.len()).min(tail_bytes)];
    let start = (total - tail.len()) as u64;
    whole.read_exact_at(&mut tail, start)?;
    Ok(Captured { head, tail, total_bytes })
}

#[cfg(test)]
mod tests {
    use engine::{Restore, Restored};
    use logging::Redactor;

    use super::*;
    use crate::Silent;

    fn run() -> (tempfile::TempDir, RunFolder) {
        let base = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(base.path(), "run", Redactor::default()).unwrap();
        (base, folder)
    }

    fn restored(path: &str) -> Recorded {
        Recorded::of(&Restore, &Restored { paths: vec![path.to_owned()] }).unwrap()
    }

    #[test]
    fn what_was_done_again_since_does_not_hold_and_is_still_on_record() {
        let (_base, folder) = run();
        let mut silent = Silent;
        let mut record = Record::begin(folder.clone(), &mut silent).unwrap();
        for path in ["a", "b", "c"] {
            record.answer(&restored(path), false).unwrap();
        }
        record.note(&Note::Resumed { kept: 1 }).unwrap();
        record.answer(&restored("d"), false).unwrap();
        let past = Past::read(folder.path()).unwrap();
        assert_eq!(past.answers, [restored("a"), restored("d")]);
        assert_eq!(past.lines.len(), 5);
    }

    #[test]
    fn an_answer_without_its_request_is_of_another_version() {
        let (_base, folder) = run();
        let path = folder.path().join(JOURNAL);
        let mut journal = Journal::create(&path, Redactor::default()).unwrap();
        journal.append(&restored("a").answer, Durability::Written).unwrap();
        let error = Past::read(folder.path()).unwrap_err();
        assert!(matches!(error, RecordError::OtherVersion { line: 1, .. }), "{error:?}");
        assert!(error.to_string().ends_with("was written by another version"), "{error}");
    }

    #[test]
    fn a_record_is_whole_as_long_as_the_files_are_what_its_answers_say() {
        let (_base, folder) = run();
        let mut silent = Silent;
        let mut record = Record::begin(folder.clone(), &mut silent).unwrap();
        let text = store(&record, "kept.txt", "kept", Durability::Written).unwrap();
        let kept = engine::Kept { stored: text.stored };
        let request = engine::Keep { file: "kept.txt".to_owned(), text: "kept".into() };
        record.answer(&Recorded::of(&request, &kept).unwrap(), false).unwrap();
        let past = Past::read(folder.path()).unwrap();
        past.intact(&folder).unwrap();
        dir::replace(&folder.path().join("kept.txt"), b"other").unwrap();
        assert!(matches!(past.intact(&folder), Err(RecordError::Folder(_))));
    }
}
