//! The watch over a backlog (S4 watch): takes a listing and the time, returns what to do.

use serde::{Deserialize, Serialize};

/// A change is acted on after this time without another one.
pub const SETTLE_MS: u64 = 30_000;

/// What the two folders hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Names in the folder of spec issues, sorted.
    pub issues: Vec<String>,
    /// The backlog, sorted by name.
    pub backlog: Vec<Item>,
}

impl Listing {
    /// Whether something has arrived that an audit has to give way to.
    pub fn is_work(&self) -> bool {
        !self.issues.is_empty() || !self.backlog.is_empty()
    }
}

/// A file of the backlog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Its name.
    pub name: String,
    /// The hash of its content.
    pub sha256: String,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Wait for a change, or until this time, in milliseconds since the watch began.
    Wait {
        /// If `None`, only a change counts.
        until_ms: Option<u64>,
    },
    /// Run the loop on this file.
    Work(Item),
    /// There is nothing to do: compare specs and code.
    Audit,
}

/// How a run for a file of the backlog ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Approved.
    Approved,
    /// All iterations were used up.
    UsedUp,
    /// A person has to settle something.
    SpecIssue,
    /// The tree is another one than the verdict is about.
    OtherTree {
        /// How often that, or a failure, has happened to this version of the file, including this time.
        times: u32,
    },
    /// No run was begun: the file was no longer as it was listed.
    Stale,
    /// The agent could not be used, whatever the task; a later try may succeed.
    Unusable,
    /// The agent did not finish this task.
    Failed {
        /// How often that has happened to this version of the file, including this time.
        times: u32,
    },
}

/// A file that has failed this often is parked until it is edited, because it would block the
/// others forever.
const MOST_FAILURES: u32 = 3;

/// Whether a file of the backlog is skipped.
pub fn is_parked(failures: u32) -> bool {
    failures >= MOST_FAILURES
}

/// What happens to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is deleted.
    Delete,
    /// It stays.
    Keep,
}

/// The events of a watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the seed names the fields")]
pub enum WatchEvent {
    /// There is nothing to do.
    BacklogEmpty,
    /// A folder has changed; the change is acted on after a quiet period.
    ChangeDetected,
    /// The quiet period is over.
    DebounceComplete,
    /// A run on a file begins.
    ProcessingItem { filename: String },
    /// It is done, and the file is gone.
    ItemCompleted { filename: String },
    /// The file is kept.
    ItemRetained {
        filename: String,
        reason: &'static str,
    },
    /// The file is passed over until it is edited.
    ItemParked {
        filename: String,
        reason: &'static str,
    },
    /// Nothing happens until the folder of spec issues is empty.
    SpecIssueWaiting { filenames: Vec<String> },
    /// An agent compares specs and code.
    AuditStarted,
    /// It has ended.
    AuditEnded,
    /// Work has arrived.
    AuditInterrupted,
    /// It found something.
    TbdItemFound { filename: String, content: String },
}

/// Whether idle time is used for audits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auditing {
    /// Once after each change.
    On,
    /// Never.
    Off,
}

/// The last event reported for a lasting state.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Nothing,
    Empty,
    Issues(Vec<String>),
}

/// The pause before the next try, of everything after a run without a usable agent, of one file after it has failed: one minute, then four times as long each time, at
/// most an hour.
const FIRST_PAUSE_MS: u64 = 60_000;
const LONGEST_PAUSE_MS: u64 = 3_600_000;

fn pause_ms(failures: u32) -> u64 {
    FIRST_PAUSE_MS
        .saturating_mul(4_u64.saturating_pow(failures))
        .min(LONGEST_PAUSE_MS)
}

/// The state of the watch.
#[derive(Debug)]
pub struct Watch {
    settle_ms: u64,
    auditing: Auditing,
    seen: Option<Listing>,
    changed_ms: Option<u64>,
    said: Said,
    failures: u32,
    not_before_ms: u64,
    /// Files that have failed, each with the time of its next try.
    aside: Vec<(Item, u64)>,
    audited: bool,
}

impl Watch {
    /// Changes are acted on after `settle_ms` without another one.
    #[must_use]
    pub fn new(settle_ms: u64, auditing: Auditing) -> Self {
        Self {
            settle_ms,
            auditing,
            seen: None,
            changed_ms: None,
            said: Said::Nothing,
            failures: 0,
            not_before_ms: 0,
            aside: Vec::new(),
            audited: false,
        }
    }

    /// Processes the current content of the folders. What is there when the watch begins is acted
    /// on at once.
    pub fn look(&mut self, now_ms: u64, listing: &Listing) -> (Vec<WatchEvent>, Act) {
        let mut events = Vec::new();
        if self.seen.as_ref() != Some(listing) {
            if self.seen.is_some() {
                if self.changed_ms.is_none() {
                    events.push(WatchEvent::ChangeDetected);
                }
                self.changed_ms = Some(now_ms);
                (self.failures, self.not_before_ms, self.audited) = (0, 0, false);
            }
            self.seen = Some(listing.clone());
        }
        if !listing.issues.is_empty() {
            let filenames = listing.issues.clone();
            self.say(
                Said::Issues(filenames.clone()),
                WatchEvent::SpecIssueWaiting { filenames },
                &mut events,
            );
            return (events, Act::Wait { until_ms: None });
        }
        if let Some(changed) = self.changed_ms {
            let quiet_at = changed.saturating_add(self.settle_ms);
            if now_ms < quiet_at {
                return (
                    events,
                    Act::Wait {
                        until_ms: Some(quiet_at),
                    },
                );
            }
            self.changed_ms = None;
            events.push(WatchEvent::DebounceComplete);
        }
        let act = self.act(now_ms, listing, &mut events);
        (events, act)
    }

    fn act(&mut self, now_ms: u64, listing: &Listing, events: &mut Vec<WatchEvent>) -> Act {
        if listing.backlog.is_empty() {
            self.say(Said::Empty, WatchEvent::BacklogEmpty, events);
            if self.auditing == Auditing::Off || self.audited {
                return Act::Wait { until_ms: None };
            }
            self.audited = true;
            events.push(WatchEvent::AuditStarted);
            return Act::Audit;
        }
        if now_ms < self.not_before_ms {
            return Act::Wait {
                until_ms: Some(self.not_before_ms),
            };
        }
        self.aside.retain(|(_, until_ms)| now_ms < *until_ms);
        let mut ready = listing
            .backlog
            .iter()
            .filter(|item| self.aside.iter().all(|(one, _)| one != *item));
        let Some(item) = ready.next() else {
            return Act::Wait {
                until_ms: self.aside.iter().map(|(_, until_ms)| *until_ms).min(),
            };
        };
        self.said = Said::Nothing;
        events.push(WatchEvent::ProcessingItem {
            filename: item.name.clone(),
        });
        Act::Work(item.clone())
    }

    /// A state is reported when it begins, not each time it is seen.
    fn say(&mut self, state: Said, event: WatchEvent, events: &mut Vec<WatchEvent>) {
        if self.said != state {
            self.said = state;
            events.push(event);
        }
    }

    /// A run for `item` has ended; `now_sha256` is its file's current hash, `None` if the file is
    /// gone.
    pub fn worked(
        &mut self,
        now_ms: u64,
        item: &Item,
        end: End,
        now_sha256: Option<&str>,
    ) -> (WatchEvent, Fate) {
        let filename = item.name.clone();
        let retained = |reason| {
            (
                WatchEvent::ItemRetained {
                    filename: filename.clone(),
                    reason,
                },
                Fate::Keep,
            )
        };
        self.audited = false;
        if end == End::Unusable {
            self.not_before_ms = now_ms.saturating_add(pause_ms(self.failures));
            self.failures = self.failures.saturating_add(1);
            return retained("the agent could not be used");
        }
        self.failures = 0;
        if let End::Failed { times } | End::OtherTree { times } = end {
            if is_parked(times) {
                self.forget(item);
            }
            self.aside.push((
                item.clone(),
                now_ms.saturating_add(pause_ms(times.saturating_sub(1))),
            ));
        }
        match (end, now_sha256) {
            (End::Failed { .. }, _) => retained("the agent did not finish it"),
            (End::OtherTree { .. }, _) => {
                retained("the files of the project changed before the verdict on it was acted on")
            }
            (End::SpecIssue, _) => retained("a spec issue must be resolved"),
            (End::Stale, _) => retained("it changed before the work on it began"),
            (_, Some(now)) if now != item.sha256 => (edited(item), Fate::Keep),
            (_, Some(_)) => {
                self.forget(item);
                (WatchEvent::ItemCompleted { filename }, Fate::Delete)
            }
            (_, None) => (WatchEvent::ItemCompleted { filename }, Fate::Keep),
        }
    }

    /// A file that we delete or park ourselves is not a change to wait for.
    fn forget(&mut self, item: &Item) {
        if let Some(seen) = &mut self.seen {
            seen.backlog.retain(|one| one != item);
        }
    }
}

/// The file has another content than the one that the run was about, so nothing was decided about it.
pub fn edited(item: &Item) -> WatchEvent {
    let reason = "it was edited while it was worked on";
    WatchEvent::ItemRetained {
        filename: item.name.clone(),
        reason,
    }
}

#[cfg(test)]
mod tests;
