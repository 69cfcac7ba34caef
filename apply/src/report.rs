//! What a transaction did, for people and programs.

use code_commit_model::Changed;
use serde::{Deserialize, Serialize};

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
    #[error("{path}: these attributes could not be kept: {}", names.join(", "))]
    AttributesNotKept { path: String, names: Vec<String> },
    #[error("{path}: it was replaced, so the hard links to it keep the old content")]
    LinkBroken { path: String },
    #[error("the changes are in place, but cleaning up failed: {reason}")]
    CleanUp { reason: String },
}
