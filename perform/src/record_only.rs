//! The world of a loop that is called only to learn what it would ask for next.

use code_commit_engine::{Digest, Live, Outcome, Recorded, Request, Text, World};
use code_commit_logging::{FolderError, RunFolder};
use serde_json::Value;

use crate::record::{Past, Texts};

/// Why a loop stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordOnlyFault {
    /// The record ends here.
    #[error("the record ends here")]
    RecordEnds,
    /// A file of the run folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// A world that performs nothing: it stops at the first request that the record does not answer.
#[derive(Debug)]
pub struct RecordOnly {
    texts: Texts,
    /// The request that the record did not answer: its kind, and the request.
    pub pending: Option<(&'static str, Value)>,
}

impl RecordOnly {
    /// For the run in this folder, whose journal holds `past`.
    pub fn new(folder: RunFolder, past: &Past) -> Self {
        Self {
            texts: past.texts(folder),
            pending: None,
        }
    }
}

impl World for RecordOnly {
    type Fault = RecordOnlyFault;

    fn record(&mut self, _: &Recorded, _is_synced: bool) -> Result<(), RecordOnlyFault> {
        Err(RecordOnlyFault::RecordEnds)
    }

    fn fetch(&mut self, text: &mut Text) -> Result<(), RecordOnlyFault> {
        Ok(self.texts.fetch(text)?)
    }

    fn fetch_output(&mut self, text: &mut Text) -> Result<(), RecordOnlyFault> {
        Ok(self.texts.fetch_output(text)?)
    }

    fn recall(&mut self, digest: &Digest) -> Option<String> {
        self.texts.recall(digest)
    }

    fn end(&mut self, _: &Outcome) -> Result<(), RecordOnlyFault> {
        Err(RecordOnlyFault::RecordEnds)
    }
}

impl<R: Request> Live<R> for RecordOnly {
    fn perform(&mut self, request: &R) -> Result<R::Answer, RecordOnlyFault> {
        self.pending = Some((R::KIND, serde_json::to_value(request).unwrap_or_default()));
        Err(RecordOnlyFault::RecordEnds)
    }
}
