//! The content of a journal, for runs that go on and summaries.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use code_commit_changes::BACKUP;
use code_commit_engine::{Asked, Event, HoldsFor, Outcome, Recorded, Stored};
use code_commit_logging::{Entry, FolderError, Journal, RunFolder};
use code_commit_timeline::RunView;
use serde_json::Value;

use super::format::{JOURNAL, RecordError, SETS, other_version, same_format};
use super::texts::{Texts, visit_stored};

/// The content of a run's journal.
#[derive(Debug, Default)]
pub struct Past {
    /// Every line, in order.
    pub lines: Vec<Event>,
    /// The lines as JSON.
    pub json: Vec<Value>,
    /// The answers that are still valid: those that a resumed run repeated are left out.
    pub answers: Vec<Recorded>,
    /// When each line was written, UTC, RFC 3339.
    pub at: Vec<String>,
    /// Whether a power cut took files that the last lines name: the answers from there on do not hold.
    pub(super) is_torn: bool,
    /// How many lines each valid answer ends.
    ends: Vec<usize>,
    files: BTreeMap<String, String>,
}

impl Past {
    /// The journal of the run in this folder.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(JOURNAL);
        Self::of(Journal::entries(&path)?, &path)
    }

    /// The journal of the run in this folder; empty for a run that was stopped before it made one.
    pub fn read_if_begun(folder: &Path) -> Result<Self, RecordError> {
        if has_journal(folder) {
            Self::read(folder)
        } else {
            Ok(Self::default())
        }
    }

    pub(super) fn of(entries: Vec<Entry<Value>>, path: &Path) -> Result<Self, RecordError> {
        let mut past = Self::default();
        for Entry {
            index,
            at,
            fact,
            request,
            ..
        } in entries
        {
            past.learn(fact, request)
                .map_err(|source| other_version(path, index + 1, source))?;
            past.at.push(at);
        }
        past.leave_out_torn(path.parent().unwrap_or(path));
        Ok(past)
    }

    /// How many lines are certain to be on disk with their files, because a line follows that was written after
    /// a sync.
    fn synced_lines(&self) -> usize {
        let is_followed = |(number, line): (usize, &Event)| {
            if matches!(line, Event::Ended { .. }) {
                return Some(number);
            }
            (line.is_paid() && number + 1 < self.lines.len()).then_some(number + 1)
        };
        self.lines
            .iter()
            .enumerate()
            .rev()
            .find_map(is_followed)
            .unwrap_or(0)
    }

    fn leave_out_torn(&mut self, folder: &Path) {
        let synced = self.synced_lines();
        let is_torn = |(_, entry): &(&usize, &Recorded)| {
            let mut found = false;
            visit_stored(&entry.answer, &mut |stored| {
                found |= is_torn(folder, &stored);
            });
            found
        };
        let mut unsynced = self
            .ends
            .iter()
            .zip(&self.answers)
            .filter(|(end, _)| **end > synced);
        if let Some((end, _)) = unsynced.find(is_torn) {
            let whole = self.ends.partition_point(|other| other < end);
            self.answers.truncate(whole);
            self.is_torn = true;
        }
    }

    fn learn(&mut self, json: Value, request: Option<Value>) -> serde_json::Result<()> {
        visit_stored(&json, &mut |Stored { file, sha256, .. }| {
            drop(self.files.insert(sha256, file));
        });
        let line: Event = serde_json::from_value(json.clone())?;
        if let Event::Resumed { kept } = &line {
            self.answers.truncate(*kept);
            self.ends.truncate(*kept);
        }
        // Otherwise a resumed run would ignore the answer and pay for it again.
        if request.is_none() && line.is_answer() {
            return Err(serde::de::Error::custom("an answer without its request"));
        }
        if let Some(Value::Object(request)) = request {
            let of = |(kind, request)| Recorded {
                kind,
                request,
                answer: json.clone(),
            };
            self.answers.extend(request.into_iter().map(of));
            self.ends.resize(self.answers.len(), self.lines.len() + 1);
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
            visit_stored(&entry.answer, &mut |stored| {
                drop(named.insert(stored.file.clone(), stored));
            });
        }
        let synced = self.synced_lines();
        for (number, line) in self.lines.iter().enumerate() {
            if let Event::Asked(Asked { prompt, .. }) = line
                && (number < synced || !is_torn(folder.path(), prompt))
            {
                named.insert(prompt.file.clone(), prompt.clone());
            }
        }
        for (file, stored) in named {
            if folder.adopt(&file)?.0 != stored {
                return Err(FolderError::Changed {
                    path: folder.path().join(file),
                }
                .into());
            }
        }
        // Other formats may name no sets: their runs are only shown.
        same_format(folder.path()).map_or(Ok(()), |()| self.sets_are_its_own(folder.path()))
    }

    /// The sets of pre-images that valid answers name, with the hashes of their manifests.
    pub(super) fn sets(&self) -> BTreeMap<String, String> {
        let named = self
            .answers
            .iter()
            .filter_map(|entry| entry.answer.get(SETS)?.as_object());
        let hash =
            |(name, hash): (&String, &Value)| Some((name.clone(), hash.as_str()?.to_owned()));
        named.flatten().filter_map(hash).collect()
    }

    /// Checks that no manifest says anything else than the run wrote. One that was killed may not have named its last.
    pub(crate) fn sets_are_its_own(&self, run: &Path) -> Result<(), RecordError> {
        let failed = |source| FolderError::Io {
            doing: "read",
            path: run.join(BACKUP),
            source,
        };
        let named = self.sets();
        for (name, hash) in manifests(run).map_err(failed)? {
            let is_own = named
                .get(&name)
                .map_or(self.outcome().is_none(), |named| *named == hash);
            if !is_own {
                let path = run
                    .join(BACKUP)
                    .join(name)
                    .join(code_commit_apply::MANIFEST);
                return Err(FolderError::Changed { path }.into());
            }
        }
        Ok(())
    }

    /// The journal as steps.
    pub fn steps(&self) -> RunView {
        RunView::of(self.at.iter().map(String::as_str).zip(&self.lines))
    }

    /// The steps that hold: those that a resumed run repeated are left out. Notes are no answers, so nothing is known of
    /// prompts and warnings.
    pub fn steps_held(&self) -> RunView {
        RunView::untimed(&self.holding().collect::<Vec<Event>>())
    }

    pub(crate) fn texts(&self, folder: RunFolder) -> Texts {
        Texts {
            folder,
            files: self.files.clone(),
        }
    }

    /// The valid answers, as lines.
    pub fn holding(&self) -> impl Iterator<Item = Event> + '_ {
        self.answers.iter().filter_map(Recorded::line)
    }

    /// How the run ended; `None` if it was stopped, or resumed since.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.end().map(|(outcome, _)| outcome)
    }

    /// How the run ended, with what its outcome holds for.
    pub fn end(&self) -> Option<(&Outcome, &HoldsFor)> {
        let last = self.lines.last();
        last.and_then(|line| {
            if let Event::Ended { outcome, holds_for } = line {
                Some((outcome, holds_for))
            } else {
                None
            }
        })
    }
}

/// False only if there certainly is none.
pub(super) fn has_journal(folder: &Path) -> bool {
    let found = folder.join(JOURNAL).symlink_metadata();
    !found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Whether a power cut took the file or its end: missing bytes read as zeros.
fn is_torn(folder: &Path, stored: &Stored) -> bool {
    let Ok(Some(mut file)) = code_commit_dir::open_regular(&folder.join(&stored.file)) else {
        return true;
    };
    let Ok(length) = file.metadata().map(|data| data.len()) else {
        return true;
    };
    let ends_in_zero = |file: &File| {
        let mut last = [1];
        length > 0 && file.read_exact_at(&mut last, length - 1).is_ok() && last == [0]
    };
    length < stored.bytes
        || (ends_in_zero(&file)
            && code_commit_logging::sha256_of(&mut file).is_ok_and(|hash| hash != stored.sha256))
}

/// The names of the sets in a run folder, each with the SHA-256 of its manifest.
pub(super) fn manifests(run: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let entries = match code_commit_dir::list(run.join(BACKUP)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let opened =
            match code_commit_dir::open_regular(&entry.path().join(code_commit_apply::MANIFEST)) {
                // The harness was killed before the set was finished.
                Err(error) if code_commit_dir::reach::is_gone(&error) => continue,
                opened => opened?,
            };
        if let Some(mut manifest) = opened {
            let name = entry.file_name().to_string_lossy().into_owned();
            found.insert(name, code_commit_logging::sha256_of(&mut manifest)?);
        }
    }
    Ok(found)
}
