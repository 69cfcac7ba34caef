//! What there is to choose from, and how its size is counted.

/// Bytes that are counted as one token. Services get three to four bytes of code into one.
const BYTES_A_TOKEN: u64 = 3;

/// A file that could be shown.
#[derive(Debug, Clone, Copy)]
pub struct File<'f> {
    /// Relative to the root.
    pub path: &'f str,
    /// Its content.
    pub text: &'f str,
}

/// A commit of the past.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Past {
    /// Its message; empty for changes that are not committed yet.
    pub message: String,
    /// The files that it changed, relative to the root.
    pub files: Vec<String>,
}

/// The tokens of a text, rather too many than too few.
#[must_use]
pub fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_A_TOKEN)
}

/// The most bytes that are certain to fit into this many tokens.
#[must_use]
pub fn bytes(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(BYTES_A_TOKEN)).unwrap_or(usize::MAX)
}
