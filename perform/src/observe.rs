//! What the world sees of a run while it goes on.

use std::time::Duration;

use crate::{Fact, Problem};

/// Plain data; whoever renders it finds the words.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a, F = Fact> {
    /// A model call begins.
    AskBegins {
        /// Which round.
        round: u32,
        /// Length of the prompt in bytes.
        prompt_bytes: u64,
    },
    /// A model call goes on. Many of these.
    Receiving {
        /// Which round.
        round: u32,
        /// Since the call began.
        elapsed: Duration,
        /// Bytes of the answer so far.
        bytes: u64,
    },
    /// A failed attempt is followed by another one after a wait.
    Waiting {
        /// Which round.
        round: u32,
        /// For how long.
        wait: Duration,
        /// Why.
        reason: String,
    },
    /// Text of the model for the person (`&&&`), in order.
    Said {
        /// Which round.
        round: u32,
        /// The text.
        text: &'a str,
    },
    /// The build begins.
    BuildBegins {
        /// Which round.
        round: u32,
    },
    /// The build prints. Bytes as they come, redacted.
    BuildPrints {
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Something a person should know; the run goes on.
    Warning(&'a Problem),
    /// A fact was written to the journal.
    Fact(&'a F),
}

/// Whoever watches a run: a terminal, a stream of JSON, a test.
pub trait Observer<F = Fact> {
    /// Takes one event.
    fn see(&mut self, event: &Event<'_, F>);
}

/// Sees nothing.
#[derive(Debug, Default)]
pub struct Silent;

impl<F> Observer<F> for Silent {
    fn see(&mut self, _event: &Event<'_, F>) {}
}
