//! Texts of any length: in memory for the loop, one file in the run folder, a name and a hash in the journal.

use std::sync::Arc;

use logging::{FolderError, RunFolder, Stored};
use serde::{Deserialize, Serialize};

use crate::record::both_ends;

/// Of a command's output so many bytes of its beginning and as many of its end are held, whatever it prints: it may print more than there
/// is memory. A prompt has room for less.
const HELD_BYTES: usize = 2 << 20;

/// A text that stands in a file of the run folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The file.
    #[serde(flatten)]
    pub stored: Stored,
    #[serde(skip)]
    text: Arc<str>,
}

impl Text {
    /// `text`, which was stored as `stored`.
    pub fn new(stored: Stored, text: Arc<str>) -> Self {
        Self { stored, text }
    }

    /// What a command has printed into `file`: whole, or where that is longer than memory should be, its two ends.
    pub(crate) fn of_output(folder: &RunFolder, file: &str) -> Result<Self, FolderError> {
        let (stored, whole) = folder.adopt(file)?;
        let ends = both_ends(&whole, HELD_BYTES, HELD_BYTES);
        let ends = ends.map_err(|source| folder.error("read", file, source))?;
        Ok(Self::new(stored, ends.text().into()))
    }

    /// How long it is, in bytes: more than the text here where that is its two ends.
    pub fn whole_bytes(&self) -> usize {
        self.text.len().max(usize::try_from(self.stored.bytes).unwrap_or(usize::MAX))
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text itself, shared.
    pub fn share(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// Fetches the text of a fact that was read from a journal. An error when the file is not what it was.
    pub(crate) fn fetch(&mut self, folder: &RunFolder) -> Result<(), FolderError> {
        self.text = folder.recall(&self.stored)?.into();
        Ok(())
    }
}
