//! What a transaction did, for people and programs.

use serde::{Deserialize, Serialize};

/// What happened to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It was created, or its content replaced.
    Write,
    /// It was removed.
    Delete,
    /// Nothing: it already was as requested.
    None,
}

/// One file of a set, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Relative to the root, with `/`.
    pub path: String,
    /// What happened.
    pub action: Action,
    /// SHA-256 of the old content in hex; `None` if there was no file.
    pub before_sha256: Option<String>,
    /// SHA-256 of the new content in hex; `None` if there is no file now.
    pub after_sha256: Option<String>,
    /// Whether the file is new.
    pub created: bool,
    /// Permission bits of the old file.
    pub before_mode: Option<u32>,
    /// Permission bits of the new file: those of the old file or, for an undo, those of the
    /// restored file, without the set-user-ID, set-group-ID and sticky bits.
    pub after_mode: Option<u32>,
}

/// Everything that one set did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// One entry per path of the set, in order.
    pub changes: Vec<Changed>,
    /// What the user should know even though the set was applied.
    pub warnings: Vec<Warning>,
}

/// A problem that did not stop the transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum Warning {
    #[error("{path}: the set-user-ID, set-group-ID or sticky bit was dropped")]
    SpecialBitsDropped { path: String },
    /// The file now belongs to the user of this process.
    #[error("{path}: its owner or group could not be kept")]
    OwnerNotKept { path: String },
    #[error("the changes are in place, but cleaning up failed: {reason}")]
    CleanUp { reason: String },
}

impl Applied {
    /// The changes that had an effect.
    pub fn effective(&self) -> impl Iterator<Item = &Changed> {
        self.changes.iter().filter(|change| change.action != Action::None)
    }
}
