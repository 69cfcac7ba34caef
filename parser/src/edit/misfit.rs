//! Why a hunk does not fit, and what may differ where it does.

/// A hunk that does not fit the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// Which one, counted from 1.
    pub hunk: usize,
    /// Why.
    pub why: Why,
}

/// Why a hunk does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its old lines do not occur.
    Absent,
    /// Its old lines occur more than once: in these lines first, counted from 1.
    Ambiguous(usize, usize),
    /// Its old lines overlap those of this earlier hunk, counted from 1.
    Overlaps(usize),
}

/// A difference between a hunk and the text that proves nothing, so that the hunk matches all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Blanks at the ends of lines, or the ends themselves.
    TrailingBlanks,
    /// Typographic quotes, dashes or blanks in place of those of ASCII, or the other way around.
    Signs,
    /// All lines are indented by as much more or less, or by tabs in place of blanks; the first may have lost all of it.
    Indentation,
    /// It matches only what the hunks before it have made of the text.
    InOrder,
}

impl Rule {
    /// For messages: what was not compared.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TrailingBlanks => "blanks at the ends of lines",
            Self::Signs => "typographic signs",
            Self::Indentation => "a uniform indentation",
            Self::InOrder => "an earlier hunk",
        }
    }
}
