//! The record of one run: its folder, its journal, and whoever watches.

use logging::{Durability, Journal, RunFolder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use engine::Outcome;

use crate::agents::Text;
use crate::record::{JOURNAL, RecordError};
use crate::reserve::Reserve;

/// A vocabulary of facts, as the record needs to know it.
pub trait Facts: Serialize + DeserializeOwned {
    /// The last fact of every run.
    fn ended(outcome: Outcome) -> Self;

    /// The texts that the journal names but does not hold, but for those of [`outputs_mut`](Self::outputs_mut).
    fn texts_mut(&mut self) -> Vec<&mut Text>;

    /// Whether it must outlive a power cut: money and the tree depend on answers and on what was applied; the rest can be
    /// done again.
    fn durability(&self) -> Durability;
}

/// Whoever watches agents' facts.
pub trait Observer<F> {
    /// A fact was written to the journal.
    fn see(&mut self, fact: &F);
}

/// Sees nothing.
#[derive(Debug, Default)]
pub struct Silent;

impl<F> Observer<F> for Silent {
    fn see(&mut self, _fact: &F) {}
}

/// Where facts go. A fact is on disk before anybody hears of it.
pub struct Record<'o, F> {
    folder: RunFolder,
    journal: Journal,
    observer: &'o mut dyn Observer<F>,
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
        self.observer.see(fact);
        Ok(())
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
            Ok(fact)
        })
        .collect()
}
