//! The record of one run: its folder, its journal, and whoever watches.

use logging::{Durability, FolderError, Journal, JournalError, RunFolder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::executor::reserve::Reserve;
use crate::{Event, Fact, Observer, OnTree, Outcome, Problem, Text};

/// Name of the journal in a run folder.
pub const JOURNAL: &str = "events.jsonl";

/// A vocabulary of facts, as the record needs to know it.
pub trait Facts: Serialize + DeserializeOwned {
    /// The last fact of every run.
    fn ended(outcome: Outcome) -> Self;

    /// The texts that the journal names but does not hold, but for those of [`outputs_mut`](Self::outputs_mut).
    fn texts_mut(&mut self) -> Vec<&mut Text>;

    /// Those that hold what a command has printed, of which no more than the two ends is fetched.
    fn outputs_mut(&mut self) -> Vec<&mut Text> {
        Vec::new()
    }

    /// What a person was warned of, besides what other facts hold. None where it must not stand in the record: programs of a model may be
    /// able to read that.
    fn warned(_warning: &Problem) -> Option<Self> {
        None
    }

    /// What it says of the tree.
    fn on_tree(&self) -> OnTree {
        OnTree::Untouched
    }

    /// Whether it must outlive a power cut: money and the tree depend on answers and on what was applied; the rest can be
    /// done again.
    fn durability(&self) -> Durability;
}

/// Where facts go. A fact is on disk before anybody hears of it.
pub struct Record<'o, F = Fact> {
    folder: RunFolder,
    journal: Journal,
    observer: &'o mut dyn Observer<F>,
}

/// Why the record cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A file of the run folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl<F> std::fmt::Debug for Record<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl<'o, F: Facts> Record<'o, F> {
    /// Begins the journal of a new run. Fails where the disk has no room for an answer: nothing was paid for yet.
    pub fn begin(folder: RunFolder, observer: &'o mut dyn Observer<F>) -> Result<Self, RecordError> {
        drop(Reserve::hold(folder.path())?);
        let journal = Journal::create(&folder.path().join(JOURNAL), folder.redactor().clone())?;
        Ok(Self { folder, journal, observer })
    }

    /// Goes on with the journal of an unfinished run, and gives the facts it holds, their texts fetched.
    pub fn resume(
        folder: RunFolder,
        observer: &'o mut dyn Observer<F>,
    ) -> Result<(Self, Vec<F>), RecordError> {
        let (journal, entries) = Journal::reopen(&folder.path().join(JOURNAL), folder.redactor().clone())?;
        let facts = fetch(entries.into_iter().map(|entry| entry.fact), &folder)?;
        Ok((Self { folder, journal, observer }, facts))
    }

    /// The run's folder.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Writes a fact to the journal, then tells the observer.
    pub fn note(&mut self, fact: &F) -> Result<(), RecordError> {
        self.journal.append(fact, fact.durability())?;
        self.observer.see(&Event::Fact(fact));
        Ok(())
    }

    /// Writes something that a person should know to the journal, where the vocabulary has a fact for it, and tells the observer, also
    /// where it could not be written. Keys are struck out.
    pub fn warn(&mut self, warning: Problem) -> Result<(), RecordError> {
        let redact = |text: String| self.folder.redactor().redact(&text).into_owned();
        let warning = Problem { path: warning.path.map(redact), message: redact(warning.message), ..warning };
        let noted = F::warned(&warning).map_or(Ok(()), |fact| self.note(&fact));
        self.tell(&Event::Warning(&warning));
        noted
    }

    /// Tells the observer something that is no fact.
    pub fn tell(&mut self, event: &Event<'_, F>) {
        self.observer.see(event);
    }
}

/// The facts of the run in `folder`, their texts fetched.
pub fn facts_of<F: Facts>(folder: &RunFolder) -> Result<Vec<F>, RecordError> {
    let entries = Journal::entries(&folder.path().join(JOURNAL))?;
    fetch(entries.into_iter().map(|entry| entry.fact), folder)
}

/// The same without their texts, which may be large and which a summary does not need.
pub fn outline_of<F: Facts>(folder: &RunFolder) -> Result<Vec<F>, RecordError> {
    let entries = Journal::entries(&folder.path().join(JOURNAL))?;
    Ok(entries.into_iter().map(|entry| entry.fact).collect())
}

fn fetch<F: Facts>(facts: impl Iterator<Item = F>, folder: &RunFolder) -> Result<Vec<F>, RecordError> {
    facts
        .map(|mut fact| {
            for text in fact.texts_mut() {
                text.fetch(folder)?;
            }
            for text in fact.outputs_mut() {
                text.fetch_output(folder)?;
            }
            Ok(fact)
        })
        .collect()
}
