//! What stands before the lines of a run.

/// What a run counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Rounds of a commit loop, this many at most.
    Rounds(u32),
    /// Attempts of a work order, this many at most.
    Attempts(u32),
}

impl Counts {
    /// `round 1/4`; an order's preflight has no attempt yet.
    pub(super) fn head(self, now: u32) -> String {
        match (self, now) {
            (Self::Attempts(_), 0) => "preflight".to_owned(),
            (Self::Attempts(most), now) => format!("attempt {now}/{most}"),
            (Self::Rounds(most), now) => format!("round {now}/{most}"),
        }
    }

    /// The indentation of the lines below a line, aligned with its text.
    pub(super) fn indent(self) -> usize {
        match self {
            Self::Attempts(_) => 13,
            Self::Rounds(_) => 11,
        }
    }
}
