//! Texts of any length: in memory for the loop, in a file of the run folder, and in the journal by
//! name and hash.

use std::sync::Arc;

use code_commit_model::Stored;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A text that is stored in a file of the run folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

    /// A text in a file with this name, for tests of loops.
    pub fn in_file(file: &str, text: &str) -> Self {
        let Digest { bytes, sha256 } = Digest::of(text);
        Self::new(
            Stored {
                file: file.to_owned(),
                bytes,
                sha256,
            },
            text.into(),
        )
    }

    /// The length of the whole text in bytes. [`as_str`](Self::as_str) is shorter if memory holds
    /// only both ends of a command's output.
    pub fn whole_bytes(&self) -> usize {
        self.text
            .len()
            .max(usize::try_from(self.stored.bytes).unwrap_or(usize::MAX))
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text itself, shared.
    pub fn share(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// Sets the content that was read back from the file.
    pub fn fill(&mut self, text: Arc<str>) {
        self.text = text;
    }
}

/// Replaces a long text in a request: enough to compare it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// The text's length.
    pub bytes: u64,
    /// SHA-256 of the text, in hex.
    pub sha256: String,
}

impl Digest {
    /// The digest of this text.
    pub fn of(text: &str) -> Self {
        let sha256 = Sha256::digest(text.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            bytes: text.len() as u64,
            sha256,
        }
    }
}

/// Serializes a long text as its [`Digest`].
///
/// # Errors
///
/// Only the serializer's own.
pub fn digest<S: Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
    Digest::of(text).serialize(to)
}

/// Serializes any other long value as the [`Digest`] of its JSON.
pub(crate) fn digest_json<T: Serialize, S: Serializer>(
    value: &T,
    to: S,
) -> Result<S::Ok, S::Error> {
    let json = serde_json::to_string(value).map_err(serde::ser::Error::custom)?;
    Digest::of(&json).serialize(to)
}
