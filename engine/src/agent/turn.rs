//! A turn of an agent: from its prompt to its last event.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Project;
use crate::text::{digest, digest_json};
use crate::{Answer, Cause, ModelUsage, Request, Stored, Text};

/// Let an agent work until it is done.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Turn<P: Project> {
    /// Who works.
    pub role: P::Role,
    /// What is asked.
    #[serde(serialize_with = "digest")]
    pub prompt: Arc<str>,
    /// Who the agent is to be, beside its CLI's own system prompt.
    #[serde(serialize_with = "digest_json")]
    pub system: Option<String>,
    /// Which conversation it belongs to.
    pub session: Session,
}

impl<P: Project> Request for Turn<P> {
    const KIND: &'static str = "turn";
    const SUBJECT: &'static str = "the prompt";
    type Answer = TurnAnswer;

    fn text(&self) -> Option<&str> {
        Some(&self.prompt)
    }
}

/// Which conversation a turn belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Session {
    /// A new one; the CLI names it.
    #[default]
    None,
    /// A new one that the harness names by a UUID, where the CLI lets it.
    New,
    /// Continue this one.
    Resume(String),
}

/// What comes of a [`Turn`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum TurnAnswer {
    /// The turn is over.
    Turned(Box<Turned>),
    /// The run has used what it may: no turn was begun.
    LimitReached(LimitReached),
}

impl Answer for TurnAnswer {
    fn texts_mut(&mut self) -> Vec<&mut Text> {
        match self {
            Self::Turned(turned) => vec![&mut turned.answer],
            Self::LimitReached(_) => Vec::new(),
        }
    }

    /// A turn costs money and minutes.
    fn is_synced(&self) -> bool {
        matches!(self, Self::Turned(_))
    }
}

/// No turn may begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitReached {
    /// Which limit.
    pub cause: Cause,
}

/// A turn is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turned {
    /// Counts the turns of the run, from 1; those that were cut off too. Names its files.
    pub number: u32,
    /// Who worked.
    pub role: String,
    /// How it ended.
    pub end: TurnEnd,
    /// What the agent said, without the markers.
    pub answer: Text,
    /// The markers that were read out of its text, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<Marked>,
    /// The session, where the CLI named it.
    pub session: Option<String>,
    /// Tokens by model; empty where the CLI did not say.
    pub usage: Vec<ModelUsage>,
    /// What the CLI says that it cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// Tools that the agent was not allowed to use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
    /// Files that the turn created, changed or removed and that the role may touch.
    pub changed: Vec<String>,
    /// Those of `changed` that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// Files that the role may not touch; they were restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_back: Vec<String>,
    /// How long it took.
    pub elapsed_ms: u64,
    /// When it was over, RFC 3339.
    pub at: String,
}

/// How a turn ended, and what may be done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// A stable kebab-case code.
    #[serde(rename = "end")]
    pub how: String,
    /// Reads on from "the agent …".
    pub said: String,
    /// What to do.
    pub then: TurnAdvice,
}

/// What may be done about the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnAdvice {
    /// It ended well.
    Use,
    /// The same turn may well succeed when it is tried again at once.
    Retry,
    /// A fresh session is needed.
    Renew,
    /// Nothing can be asked before this moment, in seconds since 1970 (UTC).
    WaitUntil(u64),
    /// A person stopped it, or the harness was killed in it. It is made again, and does not count
    /// as a try.
    Repeat,
    /// The run has used what it may.
    Limit(Cause),
    /// Trying again is of no use.
    Stop,
}

impl TurnEnd {
    /// Whether it ended well.
    pub fn is_ok(&self) -> bool {
        self.then == TurnAdvice::Use
    }
}

/// Reads on from "the agent …".
impl fmt::Display for TurnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

/// A marker in an agent's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marked {
    /// Its name.
    pub name: String,
    /// What it holds, trimmed.
    pub content: String,
}

/// A tool that an agent was not allowed to use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool.
    pub tool: String,
    /// What for, in one short line.
    pub argument: Option<String>,
}

/// A turn is about to begin. Noted first, so that one whose end never came is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnBegins {
    /// Which turn.
    pub number: u32,
    /// Who works.
    pub role: String,
    /// What is asked.
    pub prompt: Stored,
    /// When, RFC 3339.
    pub at: String,
    /// The request, which a harness that was killed has not answered.
    pub request: Value,
}
