//! What came of it.

use agent::{Denial, End, ModelUsage};
use logging::Durability;
use runner::Ended;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::Place;
use engine::Outcome;

use crate::agents::Text;
use crate::agents::record::Facts;

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
        /// When, RFC 3339; empty in journals of before.
        #[serde(default)]
        at: String,
    },
    /// A turn is over.
    Turned(Box<Turned>),
    /// A person ended a turn before its time. It is made again; what it has used is used all the same.
    CutOff {
        /// Which turn.
        number: u32,
        /// Who.
        role: String,
        /// The session, where the CLI had named it.
        session: Option<String>,
        /// Tokens by model; empty when the CLI had not said.
        usage: Vec<ModelUsage>,
        /// What the CLI reckons that it cost.
        cost_usd: Option<f64>,
        /// How long it took.
        elapsed_ms: u64,
        /// When it was ended, RFC 3339.
        at: String,
        /// Files that the role may not touch and that are as they were again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        put_back: Vec<String>,
    },
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
    /// What a repository holds that is not committed.
    Surveyed {
        /// Which.
        repository: String,
        /// The commit that is checked out; none in a repository without commits.
        head: Option<String>,
        /// What differs from it.
        uncommitted: Vec<Uncommitted>,
    },
    /// What came of a checkpoint.
    Checkpointed {
        /// Where.
        repository: String,
        /// Its message.
        message: String,
        /// Whether there is a commit.
        checkpoint: Checkpoint,
    },
    /// A moment has come.
    Waited {
        /// Which, in seconds since 1970 (UTC).
        until_unix: u64,
    },
    /// Something that only the loop knows.
    Announced {
        /// What.
        event: Value,
    },
    /// A file's content, or that it is not there.
    WasRead {
        /// Which.
        place: Place,
        /// The content.
        text: Option<Text>,
        /// Something is there, but no regular file of a length that is read: a link, a folder, a pipe.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        odd: bool,
    },
    /// A file is as the step wants it.
    Wrote {
        /// Which.
        place: Place,
    },
    /// A run that had ended without an answer goes on.
    Resumed,
    /// The run is over.
    Ended {
        /// How.
        #[serde(flatten)]
        outcome: Outcome,
    },
}

/// A file that is not committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncommitted {
    /// Relative to the folder of the repository.
    pub path: String,
    /// SHA-256 of its content, or of a link's target; none when it is not there.
    pub sha256: Option<String>,
}

/// What came of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "checkpoint", rename_all = "kebab-case")]
pub enum Checkpoint {
    /// A commit was made.
    Made {
        /// Its hash.
        commit: String,
    },
    /// Nothing had changed.
    Nothing,
    /// Git would not.
    Failed {
        /// What it said.
        error: String,
    },
}

/// A marker that an agent has emitted, such as `<NOTE>…</NOTE>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marked {
    /// Its name.
    pub name: String,
    /// What is between the tags, blank lines around it left away.
    pub content: String,
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
    /// The markers that were listened for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<Marked>,
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
    /// Those of `changed` that are not there any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// Files that the role may not touch and did; they are as they were before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_back: Vec<String>,
    /// How long it took.
    pub elapsed_ms: u64,
    /// When it was over, RFC 3339.
    pub at: String,
}

/// What was put back after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PutBack<'f> {
    /// Which turn.
    pub number: u32,
    /// Who.
    pub role: &'f str,
    /// Files that the role may not touch and that are as they were again; at least one.
    pub paths: &'f [String],
}

impl AgentFact {
    /// If this is the end of a turn behind which anything was put back.
    #[must_use]
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing is put back after anything but a turn")]
    pub fn put_back(&self) -> Option<PutBack<'_>> {
        let back = match self {
            Self::Turned(turned) => {
                PutBack { number: turned.number, role: &turned.role, paths: &turned.put_back }
            }
            Self::CutOff { number, role, put_back, .. } => PutBack { number: *number, role, paths: put_back },
            _ => return None,
        };
        Some(back).filter(|back| !back.paths.is_empty())
    }
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
            Self::CutOff { .. }
            | Self::Committed { .. }
            | Self::Surveyed { .. }
            | Self::Checkpointed { .. }
            | Self::Announced { .. }
            | Self::Waited { .. }
            | Self::WasRead { text: None, .. }
            | Self::Wrote { .. }
            | Self::Resumed
            | Self::Ended { .. } => Vec::new(),
        }
    }

    fn durability(&self) -> Durability {
        match self {
            // A turn costs money and minutes.
            Self::Turned(_) => Durability::Synced,
            Self::Listed { .. }
            | Self::TurnBegins { .. }
            | Self::CutOff { .. }
            | Self::Ran { .. }
            | Self::Committed { .. }
            | Self::Surveyed { .. }
            | Self::Checkpointed { .. }
            | Self::Announced { .. }
            | Self::Waited { .. }
            | Self::WasRead { .. }
            | Self::Wrote { .. }
            | Self::Resumed
            | Self::Ended { .. } => Durability::Written,
        }
    }
}
