//! What a loop that drives agents asks for.

use std::sync::Arc;

use agent::Session;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::Uncommitted;
#[cfg(doc)]
use crate::agents::{AgentExecutor, AgentFact};

/// A file that belongs to the harness or that it reads: a name in one of the places that the executor knows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The place, a key of [`AgentExecutor::places`].
    pub place: String,
    /// The file, relative to it.
    pub file: String,
}

impl Place {
    /// `file` in `place`.
    pub fn new(place: &str, file: impl Into<String>) -> Self {
        Self { place: place.to_owned(), file: file.into() }
    }
}

/// One thing to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentStep {
    /// List what a role can see. Ends in [`AgentFact::Listed`].
    List {
        /// Who.
        role: String,
    },
    /// Let an agent work until it is done. Ends in [`AgentFact::Turned`], or in [`AgentFact::CutOff`] where a person has pressed Ctrl-C:
    /// then no further step is done but an [`Append`](Self::Append).
    Turn {
        /// Which turn of the run, from 1; names its files.
        number: u32,
        /// Who.
        role: String,
        /// What is asked.
        prompt: Arc<str>,
        /// Who the agent is to be, beside its CLI's own system prompt.
        system: Option<Arc<str>>,
        /// Which conversation.
        session: Session,
    },
    /// Run a command line of the user in a shell. Ends in [`AgentFact::Ran`].
    Shell {
        /// Which of the run, from 1; names its file.
        number: u32,
        /// What the line is for: `setup`, `check`.
        name: String,
        /// The line.
        line: Arc<str>,
    },
    /// Commit what is in a repository. Ends in [`AgentFact::Committed`].
    Commit {
        /// A key of [`AgentExecutor::repositories`].
        repository: String,
        /// The message.
        message: String,
    },
    /// Look at what is not committed in a repository before anything is changed. Ends in [`AgentFact::Surveyed`].
    Survey {
        /// A key of [`AgentExecutor::repositories`].
        repository: String,
    },
    /// Commit what has changed, if anything has. That git fails is an answer. Ends in [`AgentFact::Checkpointed`].
    Checkpoint {
        /// A key of [`AgentExecutor::repositories`].
        repository: String,
        /// The message.
        message: String,
        /// Left out as long as they are what they were.
        spare: Arc<[Uncommitted]>,
    },
    /// Let time pass. Ends in [`AgentFact::Waited`].
    Wait {
        /// Until this moment, in seconds since 1970 (UTC), but no longer than eight days.
        until_unix: u64,
        /// And no less than so many seconds, should it have passed already.
        at_least_secs: u32,
    },
    /// Write something that only the loop knows into the journal, for whoever watches. Ends in [`AgentFact::Announced`].
    Announce(Value),
    /// Read a file. Ends in [`AgentFact::WasRead`].
    Read(Place),
    /// Write a file, whole. Ends in [`AgentFact::Wrote`].
    Write {
        /// Which.
        place: Place,
        /// Its new content.
        text: Arc<str>,
    },
    /// Add lines to the end of a file, unless they are its end already: they tell of what has happened, so that Ctrl-C does not keep them
    /// out. Ends in [`AgentFact::Wrote`].
    Append {
        /// Which.
        place: Place,
        /// What it begins with if it is new.
        head: Arc<str>,
        /// The lines.
        text: Arc<str>,
    },
    /// Remove a file; that it is not there is no error. Ends in [`AgentFact::Wrote`].
    Delete(Place),
}
