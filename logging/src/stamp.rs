//! The date: the only place where the record reads the clock.

use std::time::Duration;

use jiff::Timestamp;

/// A moment in UTC, to the millisecond in the journal and to the second in folder names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(Timestamp);

impl Stamp {
    /// The current time.
    #[must_use]
    pub fn now() -> Self {
        Self(Timestamp::now())
    }

    /// The time after this much longer; `None` past the end of all dates.
    #[must_use]
    pub fn after(self, wait: Duration) -> Option<Self> {
        self.0.checked_add(wait).ok().map(Self)
    }

    /// `2026-11-21 09:30:00 UTC`, for people.
    #[must_use]
    pub fn words(self) -> String {
        self.0.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
    }

    /// `2026-11-21-09-30-00`, the format of run folder names (S1 §Running the Build; S0 §Logging).
    #[must_use]
    pub fn folder_name(self) -> String {
        self.0.strftime("%Y-%m-%d-%H-%M-%S").to_string()
    }

    /// `2026-11-21T09:30:00.123Z`.
    #[must_use]
    pub fn rfc3339(self) -> String {
        self.0.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
    }
}

/// A duration in whole milliseconds, as records have it.
#[must_use]
pub fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_names_folders_and_lines() {
        let stamp = Stamp("2026-11-21T09:30:05.0421Z".parse().unwrap());
        assert_eq!(stamp.folder_name(), "2026-11-21-09-30-05");
        assert_eq!(stamp.rfc3339(), "2026-11-21T09:30:05.042Z");
        assert_eq!(
            stamp.after(Duration::from_hours(15)).unwrap().words(),
            "2026-11-22 00:30:05 UTC"
        );
        assert!(stamp.after(Duration::MAX).is_none());
    }
}
