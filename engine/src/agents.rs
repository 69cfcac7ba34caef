//! The vocabulary of loops that drive coding-agent CLIs: whole turns of an agent instead of single model calls.

mod shell;
mod shop;
mod snapshot;
mod turn;

use std::sync::Arc;

use agent::{Denial, End, ModelUsage, Session};
use logging::Durability;
use runner::Ended;
use serde::{Deserialize, Serialize};

use crate::record::Facts;
use crate::{Outcome, Text};

pub use shop::{AgentFault, AgentShop, AgentWatch, Guarded, Repository, Role, Watched};

/// A file that belongs to the harness or that it reads: a name in one of the places that the shop knows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The place, a key of [`AgentShop::places`].
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
    /// Let an agent work until it is done. Ends in [`AgentFact::Turned`].
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
        /// A key of [`AgentShop::repositories`].
        repository: String,
        /// The message.
        message: String,
    },
    /// Read a file. Ends in [`AgentFact::WasRead`].
    Read(Place),
    /// Write a file, whole. Ends in [`AgentFact::Wrote`].
    Write {
        /// Which.
        place: Place,
        /// Its new content.
        text: Arc<str>,
    },
    /// Add lines to the end of a file, unless they are its end already. Ends in [`AgentFact::Wrote`].
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

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum AgentFact {
    /// A role's files, one a line.
    Listed {
        /// Who.
        role: String,
        /// The list.
        list: Text,
        /// When, RFC 3339.
        at: String,
    },
    /// A turn is about to begin. Written first, so that one whose end never came is known.
    TurnBegins {
        /// Which turn.
        number: u32,
        /// Who.
        role: String,
        /// What is asked.
        prompt: Text,
    },
    /// A turn is over.
    Turned(Box<Turned>),
    /// A command line of the user is over.
    Ran {
        /// Which.
        number: u32,
        /// What it was for.
        name: String,
        /// How it ended.
        ended: Ended,
        /// What it printed.
        output: Text,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// A commit was made.
    Committed {
        /// Where.
        repository: String,
        /// Its message.
        message: String,
        /// Its hash.
        commit: String,
    },
    /// A file's content, or that it is not there.
    WasRead {
        /// Which.
        place: Place,
        /// The content.
        text: Option<Text>,
    },
    /// A file is as the step wants it.
    Wrote {
        /// Which.
        place: Place,
    },
    /// The run is over.
    Ended {
        /// How.
        #[serde(flatten)]
        outcome: Outcome,
    },
}

/// What came of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turned {
    /// Which turn.
    pub number: u32,
    /// Who.
    pub role: String,
    /// How it ended.
    pub end: End,
    /// The answer.
    pub answer: Text,
    /// The session, to go on with.
    pub session: Option<String>,
    /// Tokens by model; empty when the CLI did not say.
    pub usage: Vec<ModelUsage>,
    /// What the CLI reckons that it cost.
    pub cost_usd: Option<f64>,
    /// Tools that were denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
    /// Files that are new, changed or gone since the turn began and may be, sorted.
    pub changed: Vec<String>,
    /// Files that the role may not touch and did; they are as they were before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_back: Vec<String>,
    /// How long it took.
    pub elapsed_ms: u64,
    /// When it was over, RFC 3339.
    pub at: String,
}

impl Facts for AgentFact {
    fn ended(outcome: Outcome) -> Self {
        Self::Ended { outcome }
    }

    fn texts_mut(&mut self) -> Vec<&mut Text> {
        match self {
            Self::Listed { list: text, .. }
            | Self::TurnBegins { prompt: text, .. }
            | Self::Ran { output: text, .. }
            | Self::WasRead { text: Some(text), .. } => vec![text],
            Self::Turned(turned) => vec![&mut turned.answer],
            Self::Committed { .. }
            | Self::WasRead { text: None, .. }
            | Self::Wrote { .. }
            | Self::Ended { .. } => Vec::new(),
        }
    }

    fn durability(&self) -> Durability {
        match self {
            // A turn costs money and minutes.
            Self::Turned(_) => Durability::Synced,
            Self::Listed { .. }
            | Self::TurnBegins { .. }
            | Self::Ran { .. }
            | Self::Committed { .. }
            | Self::WasRead { .. }
            | Self::Wrote { .. }
            | Self::Ended { .. } => Durability::Written,
        }
    }
}
