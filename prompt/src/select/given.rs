//! What there is to choose from, and how its size is counted.

use super::words::Words;
use crate::rollup::dashes_of;

/// Bytes that are counted as one token. Services get three to four bytes of code into one.
const BYTES_A_TOKEN: u64 = 3;

/// How often each word of a query that a text has is in it: the word's place and the number, sorted.
pub(crate) type Counts = Vec<(u16, u32)>;

/// A file that could be shown.
#[derive(Debug, Clone, Default)]
pub struct File {
    /// Relative to the root, without line breaks.
    pub path: String,
    /// What is known of its text.
    pub content: Counted,
}

/// What a choice has to know of every text. Only those of the best files are read for more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// Its length.
    pub bytes: usize,
    /// The dashes that headers need beside it, as [`dashes_of`](crate::rollup::dashes_of) counts them.
    pub dashes: usize,
    pub(crate) words: Counts,
}

impl Counted {
    /// Counts the words of a query in a text.
    #[must_use]
    pub fn of(text: &str, words: &Words) -> Self {
        Self {
            bytes: text.len(),
            dashes: dashes_of([text]),
            words: words.count(text),
        }
    }
}

/// The files to choose from.
#[derive(Clone, Copy)]
pub struct Candidates<'c> {
    /// In any order.
    pub files: &'c [File],
    /// Those that were counted.
    pub words: &'c Words,
    /// Reads the text of a file by its place; empty if it cannot be read.
    pub text: &'c dyn Fn(usize) -> String,
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
