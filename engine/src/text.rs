//! Texts of any length: whole in memory for the loop, one file in the run folder, a name and a hash in the journal.

use std::sync::Arc;

use logging::{FolderError, RunFolder, Stored};
use serde::{Deserialize, Serialize};

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
