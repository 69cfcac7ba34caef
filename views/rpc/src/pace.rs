//! Updates that a client redraws for are kept apart by time.

use std::time::{Duration, Instant};

const APART: Duration = Duration::from_millis(200);

/// Says when the next update is due.
#[derive(Debug, Default)]
pub struct Pace(Option<Instant>);

impl Pace {
    /// Whether the last one was long enough ago; this one then counts as sent.
    #[expect(
        clippy::disallowed_methods,
        reason = "a client sees updates, a record does not"
    )]
    pub fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.0.is_none_or(|last| now.duration_since(last) >= APART);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}
