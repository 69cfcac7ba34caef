//! What a caller sees of a running call, and how it controls it.

use std::time::Duration;

use code_commit_model::Attempt;

/// The caller's side of a call. By default, all methods but [`Watch::wait`] see and stop nothing.
pub trait Watch {
    /// Something arrived.
    fn progress(&mut self, _progress: Progress<'_>) {}

    /// Bytes of the body, as they arrive and before anything reads them.
    fn bytes(&mut self, _bytes: &[u8]) {}

    /// An HTTP attempt has ended, successfully or not: one line of the journal. `attempt.wait_ms`
    /// is the wait before the next one.
    fn attempt(&mut self, _attempt: &Attempt) {}

    /// Whether the user has cancelled. Called at least every 50 ms.
    fn cancelled(&self) -> bool {
        false
    }

    /// Waits for `duration` before the next attempt; returns early if the caller is cancelled.
    fn wait(&mut self, duration: Duration) -> Waited;

    /// Whether another attempt may follow this one, which had no reply or an incomplete one. A
    /// caller whose budget is used up returns false, and the call ends with what it has. Called
    /// before [`Watch::attempt`].
    fn may_retry(&mut self, _attempt: &Attempt) -> bool {
        true
    }
}

/// What arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// The service accepted the request and began to answer.
    Connected,
    /// The total number of bytes of the reply so far.
    Bytes(u64),
    /// The next piece of the answer's text (streamed calls).
    Text(&'a str),
    /// The next bytes of an answer in one piece, or an event that cannot be read: as the service sent it.
    Body(&'a [u8]),
    /// Discard what was shown so far: the reply starts again, or its beginning is repeated.
    Restarted,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The time has passed.
    Through,
    /// The caller was cancelled.
    Cancelled,
}

/// A watch that sees nothing and really sleeps, for tools and tests without a terminal.
#[derive(Debug, Default)]
pub struct Blind;

impl Watch for Blind {
    fn wait(&mut self, duration: Duration) -> Waited {
        std::thread::sleep(duration);
        Waited::Through
    }
}
