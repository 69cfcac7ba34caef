//! What stands before the lines of a run.

/// What a run counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Its word for one of them: `round`, or the `attempt` of an order, which has a preflight before the first.
    pub step: &'static str,
    /// How many it may have.
    pub most: u32,
}

impl Counts {
    pub(super) fn has_preflight(self) -> bool {
        self.step == "attempt"
    }

    /// `round 1/4`.
    pub(super) fn head(self, now: u32) -> String {
        if now == 0 && self.has_preflight() {
            return "preflight".to_owned();
        }
        format!("{} {now}/{}", self.step, self.most)
    }

    /// The indentation of the lines below a line, aligned with its text.
    pub(super) fn indent(self) -> usize {
        self.step.len() + " 1/4  ".len()
    }
}
