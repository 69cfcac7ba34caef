//! Requests, their answers, and who performs them.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Text;

/// Something that a loop may ask of the world.
///
/// Its JSON identifies it: a run that goes on compares it with what the record holds. Long texts
/// appear in it as their [digest](crate::Digest).
pub trait Request: Serialize {
    /// Its name in the journal and in errors: `ask`, `build`.
    const KIND: &'static str;

    /// What a person is told that differs when the record holds another request in its place.
    const SUBJECT: &'static str = "the request";

    /// What comes of it. The compiler knows: no loop has to sort out what it was not waiting for.
    type Answer: Answer;

    /// The round or attempt that it belongs to, where it belongs to one.
    fn round(&self) -> Option<u32> {
        None
    }

    /// Its long text, for showing where it differs from the recorded one.
    fn text(&self) -> Option<&str> {
        None
    }
}

/// What comes of a request. Its JSON is one line of the journal.
pub trait Answer: Serialize + DeserializeOwned + Debug + 'static {
    /// The texts that the journal names but does not hold.
    fn texts_mut(&mut self) -> Vec<&mut Text> {
        Vec::new()
    }

    /// Those that hold what a command printed. Memory holds both ends of a long one.
    fn outputs_mut(&mut self) -> Vec<&mut Text> {
        Vec::new()
    }

    /// Whether it must survive a power cut: money or the tree depends on it. Everything else can be
    /// done again.
    fn is_synced(&self) -> bool {
        false
    }
}

/// What can stop a run from outside its loop: an interruption, a full disk, a record that does not
/// fit.
pub trait Stops {
    /// Why a request has no answer.
    type Stop;
}

/// Whoever performs requests of this kind.
pub trait Harness<R: Request>: Stops {
    /// The answer. It is on disk before the loop sees it.
    fn perform(&mut self, request: R) -> Result<R::Answer, Self::Stop>;
}
