//! The record of one run: its folder, its journal, and whoever watches.

use std::path::Path;

use logging::{Durability, FolderError, Journal, JournalError, RunFolder};

use crate::{Event, Fact, Observer};

/// Name of the journal in a run folder.
pub const JOURNAL: &str = "events.jsonl";

/// Where facts go. A fact is on disk before anybody hears of it.
pub struct Record<'o> {
    folder: RunFolder,
    journal: Journal,
    observer: &'o mut dyn Observer,
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

impl std::fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl<'o> Record<'o> {
    /// Begins the journal of a new run.
    pub fn begin(folder: RunFolder, observer: &'o mut dyn Observer) -> Result<Self, RecordError> {
        let journal = Journal::create(&folder.path().join(JOURNAL), folder.redactor().clone())?;
        Ok(Self { folder, journal, observer })
    }

    /// Goes on with the journal of an unfinished run, and gives the facts it holds, their texts fetched.
    pub fn resume(folder: RunFolder, observer: &'o mut dyn Observer) -> Result<(Self, Vec<Fact>), RecordError> {
        let (journal, entries) = Journal::reopen(&folder.path().join(JOURNAL), folder.redactor().clone())?;
        let facts = fetch(entries.into_iter().map(|entry| entry.fact), &folder)?;
        Ok((Self { folder, journal, observer }, facts))
    }

    /// The run's folder.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Writes a fact to the journal, then tells the observer.
    pub fn note(&mut self, fact: &Fact) -> Result<(), RecordError> {
        self.journal.append(fact, durability(fact))?;
        self.observer.see(&Event::Fact(fact));
        Ok(())
    }

    /// Tells the observer something that is no fact.
    pub fn tell(&mut self, event: &Event<'_>) {
        self.observer.see(event);
    }
}

/// The facts of the run in `folder`, their texts fetched.
pub fn facts_of(folder: &RunFolder) -> Result<Vec<Fact>, RecordError> {
    let entries = Journal::entries(&folder.path().join(JOURNAL))?;
    fetch(entries.into_iter().map(|entry| entry.fact), folder)
}

fn fetch(facts: impl Iterator<Item = Fact>, folder: &RunFolder) -> Result<Vec<Fact>, RecordError> {
    facts
        .map(|mut fact| {
            for text in fact.texts_mut() {
                text.fetch(folder)?;
            }
            Ok(fact)
        })
        .collect()
}

/// Money and the tree depend on answers and on what was applied; the rest can be done again.
fn durability(fact: &Fact) -> Durability {
    match fact {
        Fact::Answered { .. } | Fact::Applied { .. } | Fact::Restored { .. } => Durability::Synced,
        Fact::Asked { .. }
        | Fact::Attempted { .. }
        | Fact::Unanswered { .. }
        | Fact::Rejected { .. }
        | Fact::Built { .. }
        | Fact::Ended { .. } => Durability::Written,
    }
}

impl AsRef<Path> for Record<'_> {
    fn as_ref(&self) -> &Path {
        self.folder.path()
    }
}
