//! What observers see of a run while it is in progress.

use std::time::Duration;

use serde_json::Value;

use crate::{Line, Problem};

/// Plain data; renderers find the words.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// A model call begins.
    AskBegins {
        /// The round.
        round: u32,
        /// The prompt's length in bytes.
        prompt_bytes: u64,
        /// Who is asked.
        model: String,
    },
    /// A model call is in progress. There are many of these.
    Receiving {
        /// The round.
        round: u32,
        /// Since the call began.
        elapsed: Duration,
        /// Bytes of the answer so far.
        bytes: u64,
        /// It is streamed, and no text has arrived yet: these are thoughts, or comments that keep
        /// the connection open.
        is_thinking: bool,
    },
    /// A failed attempt is retried after a wait.
    Waiting {
        /// The round.
        round: u32,
        /// For how long.
        wait: Duration,
        /// Why.
        reason: String,
    },
    /// The services are out of quota; told every second until they are asked again.
    CountingDown {
        /// The round.
        round: u32,
        /// The time left.
        left: Duration,
    },
    /// The model's message for the user (`&&&`); one event for each, in order.
    Said {
        /// The round.
        round: u32,
        /// The text.
        text: &'a str,
    },
    /// The build begins.
    BuildBegins {
        /// The round.
        round: u32,
    },
    /// The build prints. The bytes are redacted.
    BuildPrints {
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Something that a person should know. The run continues.
    Warning(&'a Problem),
    /// A line was written to the journal.
    Line {
        /// The line.
        line: &'a Line,
        /// The same as JSON.
        json: &'a Value,
    },
}

/// An observer of a run: a terminal, a stream of JSON, a test.
pub trait Observer {
    /// Takes one event.
    fn see(&mut self, event: &Event<'_>);
}

/// Sees nothing.
#[derive(Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn see(&mut self, _event: &Event<'_>) {}
}
