//! What observers see of a run while it is in progress.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

use crate::{Event, Problem};

/// Plain data; renderers find the words.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    missing_docs,
    reason = "`round` is that of the event, and each event says what the rest is"
)]
pub enum Progress<'a> {
    /// A model call begins.
    AskBegins {
        round: u32,
        /// The prompt's length in bytes.
        prompt_bytes: u64,
        model: String,
    },
    /// A model call is in progress. There are many of these.
    Receiving {
        round: u32,
        /// Since the call began.
        elapsed: Duration,
        /// Bytes of the answer so far.
        bytes: u64,
        /// It is streamed, and no text has arrived yet: these are thoughts, or comments that keep
        /// the connection open.
        is_thinking: bool,
        /// Bytes of its text so far, without what the protocol adds.
        text_bytes: u64,
        /// The files whose blocks have begun, in their order. The whole answer may still be refused.
        files: &'a [String],
    },
    /// The cost of the run so far changed, in US dollars. A call without an answer counts as the most
    /// that it can have cost. Only told while all prices are known.
    Spent { usd: f64 },
    /// A failed attempt is retried after a wait.
    Waiting {
        round: u32,
        wait: Duration,
        reason: String,
    },
    /// The services are out of quota; told every second until they are asked again.
    CountingDown { round: u32, left: Duration },
    /// The model's message for the user (`&&&`); one event for each, in order.
    Said { round: u32, text: &'a str },
    /// The build begins.
    BuildBegins { round: u32 },
    /// The build prints. The bytes are redacted.
    BuildPrints { bytes: &'a [u8] },
    /// Something that a person should know. The run continues.
    Warning(&'a Problem),
    /// A line was written to the journal.
    Recorded {
        line: &'a Event,
        /// The line as JSON.
        json: &'a Value,
    },
}

/// An observer of a run: a terminal, a stream of JSON, a test.
pub trait Observer {
    /// Takes one.
    fn see(&mut self, progress: &Progress<'_>);
}

/// Shared by those who look at it afterwards.
impl<O: Observer> Observer for Rc<RefCell<O>> {
    fn see(&mut self, progress: &Progress<'_>) {
        self.borrow_mut().see(progress);
    }
}

impl Observer for Box<dyn Observer> {
    fn see(&mut self, progress: &Progress<'_>) {
        (**self).see(progress);
    }
}

/// Sees nothing.
#[derive(Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn see(&mut self, _progress: &Progress<'_>) {}
}
