//! Calls that may have been paid for and have no answer on record.

use serde::Serialize;

use crate::{Asked, Line};

/// Their number, and the most that they can have cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lost {
    /// Requests that were sent.
    pub calls: u64,
    /// US dollars; `None` if a price is unknown.
    pub at_most_usd: Option<f64>,
}

/// What of the journal's last prompt has no answer yet.
#[derive(Debug, Default)]
struct Open<'l> {
    asked: Option<&'l Asked>,
    /// Nothing is known of a request since it was sent.
    is_in_flight: bool,
    /// Answers that the client has and the record has not.
    answers: u64,
}

impl Lost {
    /// Those in the journal of a run. A run that is killed while a model answers loses one call; so does an attempt that
    /// broke off.
    pub fn of(lines: &[Line]) -> Self {
        let (mut lost, mut open) = (Self { calls: 0, at_most_usd: Some(0.0) }, Open::default());
        for line in lines {
            if let Line::Asked(asked) = line {
                lost.close(&open);
                open = Open { asked: Some(asked), is_in_flight: asked.at_most.is_some(), answers: 0 };
            } else if let Line::Attempted(attempted) = line {
                open.is_in_flight = attempted.attempt.wait_ms.is_some();
                open.answers += u64::from(attempted.attempt.is_answer());
                lost.add(u64::from(attempted.attempt.is_lost()), open.asked);
            } else if let Line::Answered(_) = line {
                // Its usage is that of all of the client's answers.
                open = Open::default();
            } else if let Line::Unanswered(_) = line {
                // A call that could not be made is not in flight either.
                lost.close(&Open { is_in_flight: false, ..std::mem::take(&mut open) });
            }
        }
        lost.close(&open);
        lost
    }

    fn close(&mut self, open: &Open<'_>) {
        self.add(open.answers + u64::from(open.is_in_flight), open.asked);
    }

    fn add(&mut self, calls: u64, asked: Option<&Asked>) {
        if calls == 0 {
            return;
        }
        let each = asked.and_then(|asked| asked.at_most?.cost_usd);
        #[expect(clippy::cast_precision_loss, reason = "nobody makes so many calls")]
        let more = each.map(|each| each * calls as f64);
        self.calls += calls;
        self.at_most_usd = self.at_most_usd.zip(more).map(|(sum, more)| sum + more);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{AtMost, Attempt, Attempted, Cause, Stored, Unanswered};

    fn asked(cost_usd: Option<f64>) -> Line {
        let prompt = Stored { file: "p".to_owned(), bytes: 1, sha256: String::new() };
        Line::Asked(Asked { round: 1, model: None, prompt, at_most: Some(AtMost { tokens: 9, cost_usd }) })
    }

    fn attempted(attempt: Value) -> Line {
        Line::Attempted(Attempted { round: 1, attempt: Attempt::recorded(attempt).unwrap() })
    }

    fn unanswered() -> Line {
        let cause = Cause { code: "c".to_owned(), message: String::new(), remedy: None };
        Line::Unanswered(Unanswered { round: 1, cause })
    }

    #[track_caller]
    fn check(lines: &[Line], calls: u64, at_most_usd: Option<f64>) {
        assert_eq!(Lost::of(lines), Lost { calls, at_most_usd });
    }

    /// Its word for what was spent is missing, or is none that is known here.
    #[test]
    fn an_attempt_whose_record_cannot_be_read_is_lost() {
        for attempt in [json!({"error": "idle"}), json!({"error": "idle", "spend": 7}), json!("damaged")] {
            check(&[asked(Some(0.5)), attempted(attempt), unanswered()], 1, Some(0.5));
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
        check(&[asked(Some(0.5)), retried(), retried(), asked(Some(0.25))], 2, Some(0.75));
    }

    #[test]
    fn attempts_that_broke_off_or_brought_nothing_useful_are_lost_until_there_is_an_answer() {
        let broken = || attempted(json!({"error": "stream-cut", "spend": "unknown", "wait_ms": 5}));
        let empty = || attempted(json!({"status": "unusable", "spend": "usage", "wait_ms": 5}));
        let whole = || attempted(json!({"status": "ok", "spend": "usage"}));
        check(&[asked(Some(0.5)), broken(), whole()], 2, Some(1.0));
        check(&[asked(Some(0.5)), empty(), whole()], 2, Some(1.0));
        let failed = attempted(json!({"error": "server", "spend": "nothing"}));
        check(&[asked(Some(0.5)), empty(), failed, unanswered()], 1, Some(0.5));
    }
}
