//! The harness with a memory: it answers from the record while that lasts, then performs and
//! records.
//!
//! A resumed run calls its loop from the beginning: recorded requests are compared and answered
//! from the record; the first one that is not recorded is performed.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Answer, Digest, Durability, Event, Harness, Outcome, Request, Stops, Text};

/// A request and its answer, as the journal has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it all")]
pub struct Recorded {
    pub kind: String,
    pub request: Value,
    pub answer: Value,
}

impl Recorded {
    /// What the journal holds of a request and its answer.
    ///
    /// # Errors
    ///
    /// Only for a type that has no JSON form, which is a fault of ours.
    pub fn of<R: Request>(request: &R, answer: &R::Answer) -> serde_json::Result<Self> {
        let (request, answer) = (
            serde_json::to_value(request)?,
            serde_json::to_value(answer)?,
        );
        Ok(Self {
            kind: R::KIND.to_owned(),
            request,
            answer,
        })
    }

    /// The answer as a line of the journal; `None` if another version wrote it.
    pub fn line(&self) -> Option<Event> {
        serde_json::from_value(self.answer.clone()).ok()
    }

    /// Whether the answer is of this kind: `answered`, `rolled-back`.
    pub fn answers(&self, what: &str) -> bool {
        self.answer.get("what").and_then(Value::as_str) == Some(what)
    }
}

/// What the harness relies on: it keeps the record, and performs.
pub trait World {
    /// What stops a run.
    type Fault;

    /// Writes an answer to the journal, before anybody sees it.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written, or is not on disk as soon as its durability says.
    fn record(&mut self, entry: &Recorded, durability: Durability) -> Result<(), Self::Fault>;

    /// Reads back a text that the journal names.
    ///
    /// # Errors
    ///
    /// Fails if the file has changed.
    fn fetch(&mut self, text: &mut Text) -> Result<(), Self::Fault>;

    /// Like [`fetch`](Self::fetch), for the output of a command: both ends if it is long.
    ///
    /// # Errors
    ///
    /// As [`fetch`](Self::fetch).
    fn fetch_output(&mut self, text: &mut Text) -> Result<(), Self::Fault>;

    /// The content that a recorded request named by its digest, if it is still on disk.
    fn recall(&mut self, digest: &Digest) -> Option<String>;

    /// The loop has ended: records the outcome.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be recorded.
    fn end(&mut self, outcome: &Outcome) -> Result<(), Self::Fault>;
}

/// A world that can perform requests of this kind.
pub trait Live<R: Request>: World {
    /// Performs it.
    ///
    /// # Errors
    ///
    /// Fails if the run cannot continue. The journal stays as it is, so the run can be resumed.
    fn perform(&mut self, request: &R) -> Result<R::Answer, Self::Fault>;
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Stop<F> {
    /// The record does not fit this run.
    #[error(transparent)]
    Differs(Difference),
    /// A recorded answer cannot be read.
    #[error("the record's answer to `{kind}` cannot be read")]
    Unreadable {
        /// The request's kind.
        kind: &'static str,
        /// Why.
        source: serde_json::Error,
    },
    /// Something outside the loop stopped the run.
    #[error(transparent)]
    Fault(F),
}

impl<F> From<F> for Stop<F> {
    fn from(fault: F) -> Self {
        Self::Fault(fault)
    }
}

/// The first request that differs from the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The round or attempt; 0 before the first.
    pub round: u32,
    /// What differs: `the prompt`, `the command`, `the next request`.
    pub what: &'static str,
    /// The first line that differs, as recorded; of a long line, the part around the difference.
    pub recorded: String,
    /// The first line that differs, as it is now.
    pub now: String,
}

impl std::error::Error for Difference {}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            round,
            what,
            recorded,
            now,
        } = self;
        write!(
            f,
            "{what} of round {round} differs: recorded `{recorded}`, now `{now}`"
        )
    }
}

/// A line is shown from its start if the difference begins within this many bytes of it.
const LINE_START: usize = 120;
/// This many characters are shown: a path and two hashes.
const SHOWN: usize = 240;

impl Difference {
    /// The first line that differs between two texts.
    pub fn between(round: u32, what: &'static str, recorded: &str, now: &str) -> Self {
        let same = recorded
            .bytes()
            .zip(now.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        let cut = |text: &str| -> String {
            let (near, at) = (same.saturating_sub(20), text.floor_char_boundary(same));
            let line = text
                .get(..at)
                .and_then(|before| before.rfind('\n'))
                .map_or(0, |end| end + 1);
            let start = if same - line <= LINE_START {
                line
            } else {
                text.floor_char_boundary(near)
            };
            let line = text.get(start..).and_then(|from| from.lines().next());
            line.unwrap_or_default().chars().take(SHOWN).collect()
        };
        Self {
            round,
            what,
            recorded: cut(recorded),
            now: cut(now),
        }
    }
}

/// Answers from the record, then performs and records.
#[derive(Debug)]
pub struct Journaled<W> {
    world: W,
    recorded: VecDeque<Recorded>,
    round: u32,
}

impl<W: World> Journaled<W> {
    /// A run with these recorded answers; none for a new run.
    pub fn new(world: W, recorded: impl Into<VecDeque<Recorded>>) -> Self {
        Self {
            world,
            recorded: recorded.into(),
            round: 0,
        }
    }

    /// Runs a loop to its end, and records the outcome.
    ///
    /// # Errors
    ///
    /// Fails if the loop was stopped, or if the record has more answers than it asked for: then it is of another run.
    pub fn run<T: AsRef<Outcome>>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T, Stop<W::Fault>>,
    ) -> Result<T, Stop<W::Fault>> {
        let ended = run(self)?;
        self.ends(ended.as_ref())?;
        Ok(ended)
    }

    fn ends(&mut self, outcome: &Outcome) -> Result<(), Stop<W::Fault>> {
        let Some(more) = self.recorded.pop_front() else {
            return Ok(self.world.end(outcome)?);
        };
        let now = serde_json::to_value(outcome).unwrap_or_default();
        Err(self.differs(
            "the end",
            &shown(&more.kind, &more.request),
            &shown("end", &now),
        ))
    }

    /// The world, which performs and records.
    pub fn world(&mut self) -> &mut W {
        &mut self.world
    }

    /// Returns the world.
    pub fn into_world(self) -> W {
        self.world
    }

    fn differs(&self, what: &'static str, recorded: &str, now: &str) -> Stop<W::Fault> {
        Stop::Differs(Difference::between(self.round, what, recorded, now))
    }

    /// Stops if the recorded request is another one.
    fn compare<R: Request>(
        &mut self,
        recorded: &Recorded,
        request: &R,
    ) -> Result<(), Stop<W::Fault>> {
        let now = serde_json::to_value(request).map_err(unreadable::<R, _>)?;
        if recorded.kind != R::KIND {
            let recorded = shown(&recorded.kind, &recorded.request);
            return Err(self.differs("the next request", &recorded, &shown(R::KIND, &now)));
        }
        if recorded.request == now {
            return Ok(());
        }
        let then = find_digest(&recorded.request).and_then(|digest| self.world.recall(&digest));
        match then.zip(request.text()) {
            Some((then, text)) if then != text => Err(self.differs(R::SUBJECT, &then, text)),
            _ => Err(self.differs(
                R::SUBJECT,
                &shown(R::KIND, &recorded.request),
                &shown(R::KIND, &now),
            )),
        }
    }
}

impl<W: World> Stops for Journaled<W> {
    type Stop = Stop<W::Fault>;
}

impl<R: Request, W: Live<R>> Harness<R> for Journaled<W> {
    fn perform(&mut self, request: R) -> Result<R::Answer, Self::Stop> {
        self.round = request.round().unwrap_or(self.round);
        let Some(recorded) = self.recorded.pop_front() else {
            let answer = self.world.perform(&request)?;
            let entry = Recorded::of(&request, &answer).map_err(unreadable::<R, _>)?;
            self.world.record(&entry, answer.durability())?;
            return Ok(answer);
        };
        self.compare(&recorded, &request)?;
        let mut answer: R::Answer =
            serde_json::from_value(recorded.answer).map_err(unreadable::<R, _>)?;
        for text in answer.texts_mut() {
            self.world.fetch(text)?;
        }
        for output in answer.outputs_mut() {
            self.world.fetch_output(output)?;
        }
        Ok(answer)
    }
}

fn unreadable<R: Request, F>(source: serde_json::Error) -> Stop<F> {
    Stop::Unreadable {
        kind: R::KIND,
        source,
    }
}

fn shown(kind: &str, request: &Value) -> String {
    if request.is_null() {
        kind.to_owned()
    } else {
        format!("{kind} {request}")
    }
}

/// The digest of a request's long text. A request has at most one.
fn find_digest(value: &Value) -> Option<Digest> {
    let members = value.as_object()?;
    serde_json::from_value(value.clone())
        .ok()
        .or_else(|| members.values().find_map(find_digest))
}

#[cfg(test)]
mod tests;
