//! One call while it runs: what it reports to the record, and when it has to end.

use std::time::{Duration, Instant};

use code_commit_engine::{Attempted, Event};
use code_commit_llm::{self as llm, Attempt, ModelId, Waited, Watch};
use code_commit_runner::Cancel;

use super::arriving::Arriving;
use super::partial::Partial;
use crate::Progress;
use crate::record::{Record, RecordError};
use crate::reserve::Reserve;
use crate::spending::CallSpending;

/// What a call reports while it runs.
pub(super) struct Call<'c> {
    pub(super) round: u32,
    pub(super) first: &'c ModelId,
    pub(super) record: &'c mut Record,
    pub(super) cancel: &'c Cancel,
    pub(super) began: Instant,
    pub(super) is_streamed: bool,
    pub(super) arriving: Arriving,
    /// The record could not be kept; this stops the run, not the call.
    pub(super) failed: Option<RecordError>,
    pub(super) bill: CallSpending<'c>,
    /// Until the answer is written.
    pub(super) reserve: Reserve,
    /// The streamed answer so far, on disk.
    pub(super) partial: Partial,
}

impl Call<'_> {
    fn tell_progress(&mut self) {
        let text_bytes = self.arriving.text_bytes();
        self.record.tell(&Progress::Receiving {
            round: self.round,
            elapsed: self.began.elapsed(),
            bytes: self.arriving.bytes,
            is_thinking: self.is_streamed && text_bytes == 0,
            text_bytes,
            files: self.arriving.files(),
        });
    }

    fn tell_cost(&mut self) {
        if let Some(usd) = self.bill.spending.known_cost_usd() {
            self.record.tell(&Progress::Spent { usd });
        }
    }
}

impl Watch for Call<'_> {
    fn progress(&mut self, progress: llm::Progress<'_>) {
        match progress {
            llm::Progress::Bytes(bytes) => {
                self.arriving.bytes = bytes;
                self.tell_progress();
            }
            llm::Progress::Text(text) => {
                self.arriving.add(text, self.record.folder().redactor());
                self.partial.add(text.as_bytes(), self.record.folder());
                self.tell_progress();
            }
            llm::Progress::Body(bytes) => self.partial.add(bytes, self.record.folder()),
            llm::Progress::Restarted => {
                self.partial.end();
                self.arriving = Arriving::default();
            }
            // Earlier parts of a resumed run have cost something, too.
            llm::Progress::Connected => self.tell_cost(),
            _ => {}
        }
    }

    fn may_retry(&mut self, attempt: &Attempt) -> bool {
        self.bill.allows_another(attempt)
    }

    fn attempt(&mut self, attempt: &Attempt) {
        let model = Some(self.bill.model).filter(|model| *model != self.first);
        let attempt = &Attempt {
            model: model.map(ToString::to_string),
            ..attempt.clone()
        };
        self.bill.add(attempt);
        self.tell_cost();
        if let Some(wait) = attempt.wait_ms {
            let reason = attempt.message.clone().unwrap_or_default();
            let reason = self.record.folder().redactor().redact(&reason).into_owned();
            self.record.tell(&Progress::Waiting {
                round: self.round,
                wait: Duration::from_millis(wait),
                reason,
            });
        }
        // After a failure nothing more is noted, so that a resumed run counts only what the record holds.
        if self.failed.is_none() {
            self.reserve.give_a_line();
            let note = Event::Attempted(Attempted {
                round: self.round,
                attempt: attempt.clone(),
            });
            self.failed = self.record.note(&note).err();
        }
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_set()
    }

    fn wait(&mut self, duration: Duration) -> Waited {
        if self.cancel.wait(duration) {
            Waited::Cancelled
        } else {
            Waited::Through
        }
    }
}
