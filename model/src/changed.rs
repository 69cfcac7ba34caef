//! What a set of changes did to a file.

use serde::{Deserialize, Serialize};

/// What happened to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

impl Changed {
    /// `A` added, `M` modified, `D` deleted, as in git; `None` if it is as it was.
    pub fn letter(&self) -> Option<char> {
        match self.action {
            Action::Write if self.created => Some('A'),
            Action::Write => Some('M'),
            Action::Delete => Some('D'),
            Action::None => None,
        }
    }
}
