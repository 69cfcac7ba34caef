use serde::{Deserialize, Serialize};

/// A file of the run folder, as the journal names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stored {
    /// Its name in the run folder.
    pub file: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256 of its content, in lower-case hex.
    pub sha256: String,
}
