//! A turn of an agent, from its prompt to its final event.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::files::AgentLoop;
use crate::text::{digest, digest_json};
use crate::{Answer, Cause, Durability, ModelUsage, Request, Stored, Text};

/// Let an agent work until it is done.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Turn<P: AgentLoop> {
    /// Who works.
    pub role: P::Role,
    /// The prompt.
    #[serde(serialize_with = "digest")]
    pub prompt: Arc<str>,
    /// The agent's role, in addition to its CLI's own system prompt.
    #[serde(serialize_with = "digest_json")]
    pub system: Option<String>,
    /// Which of the role's agents works, from 0.
    #[serde(skip_serializing_if = "is_first")]
    pub choice: u32,
    /// The session of this turn that was cut off. It goes on there if the tree is as that session knew it; if not, the turn is
    /// done anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goes_on: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde has it")]
fn is_first(choice: &u32) -> bool {
    *choice == 0
}

impl<P: AgentLoop> Turn<P> {
    /// The first attempt of the role's first agent.
    pub fn new(role: P::Role, prompt: Arc<str>, system: Option<String>) -> Self {
        Self {
            role,
            prompt,
            system,
            choice: 0,
            goes_on: None,
        }
    }
}

impl<P: AgentLoop> Request for Turn<P> {
    const KIND: &'static str = "turn";
    const SUBJECT: &'static str = "the prompt";
    type Answer = TurnAnswer;

    fn text(&self) -> Option<&str> {
        Some(&self.prompt)
    }
}

/// The answer to a [`Turn`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum TurnAnswer {
    /// The turn is over.
    Turned(Box<Turned>),
    /// A limit of the run is used up: no turn was begun.
    LimitReached(LimitReached),
}

impl Answer for TurnAnswer {
    fn texts_mut(&mut self) -> Vec<&mut Text> {
        match self {
            Self::Turned(turned) => vec![&mut turned.answer],
            Self::LimitReached(_) => Vec::new(),
        }
    }

    /// Turns cost money and minutes.
    fn durability(&self) -> Durability {
        match self {
            Self::Turned(_) => Durability::Now,
            Self::LimitReached(_) => Durability::Later,
        }
    }
}

/// No turn may begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LimitReached {
    /// Which limit.
    pub cause: Cause,
}

/// A turn has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Turned {
    /// The number of the turn in the run, from 1, including those that were cut off; part of its
    /// files' names.
    pub number: u32,
    /// Who worked.
    pub role: String,
    /// How it ended.
    pub end: TurnEnd,
    /// What the agent said, without the markers.
    pub answer: Text,
    /// The markers in its text, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<Marked>,
    /// The session, if the CLI named it.
    pub session: Option<String>,
    /// Tokens by model; empty if the CLI did not report any.
    pub usage: Vec<ModelUsage>,
    /// The cost as reported by the CLI, in US dollars.
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
    /// Whether it went on in the session of the turn that was cut off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub went_on: bool,
    /// How long it took.
    pub elapsed_ms: u64,
    /// When it ended, RFC 3339.
    pub at: String,
}

/// How a turn ended, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TurnEnd {
    /// A stable kebab-case code.
    #[serde(rename = "end")]
    pub how: String,
    /// Continues a sentence that begins with "the agent".
    pub said: String,
    /// What to do.
    pub then: TurnAdvice,
    /// Whether another agent may do better.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_for_another: bool,
}

/// What to do about the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TurnAdvice {
    /// It ended well.
    Use,
    /// A fresh session is needed.
    Renew,
    /// Nothing can be asked before this moment, in seconds since 1970 (UTC).
    WaitUntil(u64),
    /// A person stopped it, or the harness was killed during it. It is repeated, and does not count
    /// as a try.
    Repeat,
    /// A limit of the run is used up.
    Limit(Cause),
    /// A retry is pointless.
    Stop,
}

impl TurnEnd {
    /// Whether it ended well.
    pub fn is_ok(&self) -> bool {
        self.then == TurnAdvice::Use
    }
}

/// Continues a sentence that begins with "the agent".
impl fmt::Display for TurnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

/// A marker in an agent's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Marked {
    /// Its name.
    pub name: String,
    /// Its content, trimmed.
    pub content: String,
}

/// A tool that an agent was not allowed to use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Denial {
    /// The tool.
    pub tool: String,
    /// Its main argument, in one short line.
    pub argument: Option<String>,
}

/// A turn is about to begin. Recorded first, so that a turn without an end is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TurnBegins {
    /// Which turn.
    pub number: u32,
    /// Who works.
    pub role: String,
    /// The prompt.
    pub prompt: Stored,
    /// When, RFC 3339.
    pub at: String,
    /// The request. A harness that was killed has not answered it.
    pub request: Value,
    /// What is left of the run's limits; `None` if it has none.
    #[serde(default, skip_serializing_if = "Amount::is_empty")]
    pub remaining: Amount,
}

/// Money and tokens, as far as they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Amount {
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Input and output tokens.
    pub tokens: Option<u64>,
}

impl Amount {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
