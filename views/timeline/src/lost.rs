//! Calls that may have been paid for and have no reply on record.

use serde::Serialize;

use crate::step::{Call, RunView};

/// Their number, and the most that they can have cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lost {
    /// Requests that were sent.
    pub calls: u64,
    /// US dollars; `None` if a price is unknown.
    pub at_most_usd: Option<f64>,
}

impl RunView {
    /// Calls of models that may have been paid for. A run that is killed while a model answers loses one call; so does
    /// an attempt that broke off.
    pub fn lost(&self) -> Lost {
        let mut lost = Lost {
            calls: 0,
            at_most_usd: Some(0.0),
        };
        for call in self.calls().filter(|call| call.role.is_none()) {
            call.attempts
                .iter()
                .for_each(|attempt| lost.add(u64::from(attempt.is_lost()), call));
            // The usage of an answer is that of all of the client's answers.
            if call.answer.is_none() {
                let answers = call.attempts.iter().filter(|one| one.is_answer());
                let open = u64::from(call.is_in_flight());
                lost.add(answers.count() as u64 + open, call);
            }
        }
        lost
    }
}

impl Lost {
    fn add(&mut self, calls: u64, of: &Call) {
        if calls == 0 {
            return;
        }
        let each = of.at_most.and_then(|most| most.cost_usd);
        #[expect(clippy::cast_precision_loss, reason = "nobody makes so many calls")]
        let more = each.map(|each| each * calls as f64);
        self.calls += calls;
        self.at_most_usd = self.at_most_usd.zip(more).map(|(sum, more)| sum + more);
    }
}

#[cfg(test)]
mod tests {
    use code_commit_engine::{Asked, AtMost, Attempt, Attempted, Cause, Event, Stored, Unanswered};
    use serde_json::{Value, json};

    use super::*;

    fn asked(cost_usd: Option<f64>) -> Event {
        let prompt = Stored {
            file: "p".to_owned(),
            bytes: 1,
            sha256: String::new(),
        };
        Event::Asked(Asked {
            round: 1,
            model: None,
            prompt,
            at_most: AtMost {
                tokens: 9,
                cost_usd,
            },
        })
    }

    fn attempted(attempt: Value) -> Event {
        Event::Attempted(Attempted {
            round: 1,
            attempt: Attempt::recorded(attempt).unwrap(),
        })
    }

    fn unanswered() -> Event {
        let cause = Cause {
            code: "c".to_owned(),
            message: String::new(),
            remedy: None,
        };
        Event::Unanswered(Unanswered { round: 1, cause })
    }

    #[track_caller]
    fn check(lines: &[Event], calls: u64, at_most_usd: Option<f64>) {
        assert_eq!(RunView::untimed(lines).lost(), Lost { calls, at_most_usd });
    }

    /// Its word for what was spent is missing, or is none that is known here.
    #[test]
    fn an_attempt_whose_record_cannot_be_read_is_lost() {
        for attempt in [
            json!({"error": "idle"}),
            json!({"error": "idle", "spend": 7}),
            json!("damaged"),
        ] {
            check(
                &[asked(Some(0.5)), attempted(attempt), unanswered()],
                1,
                Some(0.5),
            );
        }
    }

    #[test]
    fn a_call_that_was_killed_is_lost_and_one_that_the_service_refused_is_not() {
        let refused = || attempted(json!({"error": "billing", "spend": "nothing"}));
        let retried = || attempted(json!({"error": "server", "spend": "nothing", "wait_ms": 5}));
        check(&[], 0, Some(0.0));
        check(&[asked(Some(0.5))], 1, Some(0.5));
        check(&[asked(None)], 1, None);
        check(&[asked(Some(0.5)), refused()], 0, Some(0.0));
        check(&[asked(Some(0.5)), refused(), unanswered()], 0, Some(0.0));
        check(&[asked(Some(0.5)), unanswered()], 0, Some(0.0));
        // The next request may have been sent.
        check(&[asked(Some(0.5)), retried()], 1, Some(0.5));
        check(
            &[asked(Some(0.5)), retried(), retried(), asked(Some(0.25))],
            2,
            Some(0.75),
        );
    }

    #[test]
    fn attempts_that_broke_off_or_brought_nothing_useful_are_lost_until_there_is_an_answer() {
        let broken = || attempted(json!({"error": "stream-cut", "spend": "unknown", "wait_ms": 5}));
        let empty = || attempted(json!({"status": "unusable", "spend": "usage", "wait_ms": 5}));
        let whole = || attempted(json!({"status": "ok", "spend": "usage"}));
        check(&[asked(Some(0.5)), broken(), whole()], 2, Some(1.0));
        check(&[asked(Some(0.5)), empty(), whole()], 2, Some(1.0));
        let failed = attempted(json!({"error": "server", "spend": "nothing"}));
        check(
            &[asked(Some(0.5)), empty(), failed, unanswered()],
            1,
            Some(0.5),
        );
    }
}
