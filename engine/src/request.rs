//! Requests, their answers, and who performs them.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Text;

/// A request of a loop to the world.
///
/// Its JSON identifies it: a resumed run compares it with the record. Long texts appear as their
/// [digest](crate::Digest).
pub trait Request: Serialize {
    /// Its name in the journal and in errors: `ask`, `build`.
    const KIND: &'static str;

    /// What to call it in the message that another request is recorded in its place.
    const SUBJECT: &'static str = "the request";

    /// The type of its answer, so that no loop has to sort out answers to other requests.
    type Answer: Answer;

    /// The round or attempt that it belongs to, if any.
    fn round(&self) -> Option<u32> {
        None
    }

    /// Its long text, to show where it differs from the recorded one.
    fn text(&self) -> Option<&str> {
        None
    }
}

/// The answer to a request. Its JSON is one line of the journal.
pub trait Answer: Serialize + DeserializeOwned + Debug + 'static {
    /// Its texts, which the journal names but does not contain.
    fn texts_mut(&mut self) -> Vec<&mut Text> {
        Vec::new()
    }

    /// Those with the output of a command. Of long output, memory holds both ends.
    fn outputs_mut(&mut self) -> Vec<&mut Text> {
        Vec::new()
    }

    /// When it must be on disk: money or the tree may depend on it.
    fn durability(&self) -> Durability {
        Durability::Later
    }
}

/// When an answer must survive a power cut, with all that precedes it in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Together with the next one that must: until then it can be done again.
    Later,
    /// Before the next line of the journal, or the end of the run: the transaction that it leads to waits for the disk anyway.
    BeforeNext,
    /// Before anybody sees it.
    Now,
}

/// What can stop a run from outside its loop: an interruption, a full disk, a record that does not
/// fit.
pub trait Stops {
    /// Why a request has no answer.
    type Stop;
}

/// Performs requests of this kind.
pub trait Harness<R: Request>: Stops {
    /// The answer. It is on disk before the loop sees it.
    fn perform(&mut self, request: R) -> Result<R::Answer, Self::Stop>;
}
