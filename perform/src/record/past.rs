//! The content of a journal, for runs that go on, replays and summaries.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use engine::{Line, Outcome, Recorded, Stored};
use logging::{Entry, FolderError, Journal, RunFolder};
use serde_json::Value;

use super::texts::{Texts, to_engine, visit_stored};
use super::{JOURNAL, RecordError, other_version};

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

    pub(super) fn of(entries: Vec<Entry<Value>>, path: &Path) -> Result<Self, RecordError> {
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
            if withheld.contains(&stored) && !folder.path().join(&file).exists() {
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
        if let Some(Line::Ended { outcome, .. }) = self.lines.last() { Some(outcome) } else { None }
    }

    /// The identity of the tree that it left, if it has ended and somebody wanted to know.
    pub fn left(&self) -> Option<&str> {
        if let Some(Line::Ended { tree_sha256, .. }) = self.lines.last() {
            tree_sha256.as_deref()
        } else {
            None
        }
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
pub const WITHHELD: &str = "withheld.json";

/// Notes in the folder of an imported record which files stayed behind, if any did.
///
/// # Errors
///
/// Fails if the note cannot be written.
pub fn note_withheld(folder: &Path, files: &[Stored]) -> io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    dir::replace(&folder.join(WITHHELD), &serde_json::to_vec_pretty(files)?)
}

/// What that note says; nothing where there is none.
pub fn withheld(folder: &RunFolder) -> Vec<Stored> {
    let note = folder.read(WITHHELD).ok();
    note.and_then(|note| serde_json::from_str(&note).ok()).unwrap_or_default()
}
