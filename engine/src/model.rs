//! Requests to a model.

use std::sync::Arc;

use code_commit_model::{Attempt, Finish, Usage};
use serde::{Deserialize, Serialize};

use crate::{Answer, Cause, Durability, Request, Stored, Text, digest};

/// Send a prompt to the model.
#[derive(Debug, Clone, Serialize)]
pub struct Ask {
    /// The round or attempt, from 1.
    pub round: u32,
    /// The whole prompt.
    #[serde(serialize_with = "digest")]
    pub prompt: Arc<str>,
    /// The number of bytes at its beginning that later prompts of the run repeat: services cache them. It changes nothing
    /// that a model could see, so it is not part of the record.
    #[serde(skip)]
    pub stable: usize,
    /// The number of bytes at its beginning that are sent as the system instruction. The record has the prompt whole.
    #[serde(skip)]
    pub system: usize,
}

impl Request for Ask {
    const KIND: &'static str = "ask";
    const SUBJECT: &'static str = "the prompt";
    type Answer = AskAnswer;

    fn round(&self) -> Option<u32> {
        Some(self.round)
    }

    fn text(&self) -> Option<&str> {
        Some(&self.prompt)
    }
}

/// The answer to an [`Ask`].
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it is the answered one"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum AskAnswer {
    /// The model answered.
    Answered(Answered),
    /// The model did not reply.
    Unanswered(Unanswered),
}

impl Answer for AskAnswer {
    fn texts_mut(&mut self) -> Vec<&mut Text> {
        match self {
            Self::Answered(answered) => vec![&mut answered.reply],
            Self::Unanswered(_) => Vec::new(),
        }
    }

    /// A reply was paid for.
    fn durability(&self) -> Durability {
        match self {
            Self::Answered(_) => Durability::BeforeNext,
            Self::Unanswered(_) => Durability::Later,
        }
    }
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Answered {
    /// The round.
    pub round: u32,
    /// The text, keys redacted.
    pub reply: Text,
    /// The whole answer as the service sent it.
    pub raw: Stored,
    /// How the answer ended.
    #[serde(deserialize_with = "Finish::recorded")]
    pub finish: Finish,
    /// Set if only a person can do something about how it ended, for example about a filter: what
    /// to tell them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_person: Option<Cause>,
    /// Whether a key was redacted in the text. Such a reply is rejected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_key: bool,
    /// Tokens, as the service reports them.
    pub usage: Usage,
    /// The model that really answered.
    pub served_model: Option<String>,
    /// The cost in US dollars, if the price is known.
    pub cost_usd: Option<f64>,
    /// From the request to the end of the answer.
    pub elapsed_ms: u64,
}

impl Answered {
    /// The reply, to be judged.
    pub fn reply(&self) -> Reply {
        Reply {
            text: self.reply.share(),
            finish: self.finish.clone(),
            held_key: self.held_key,
        }
    }
}

/// No answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unanswered {
    /// The round.
    pub round: u32,
    /// Why.
    pub cause: Cause,
}

/// A model's answer, to be judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reply {
    /// Its text, keys redacted.
    #[serde(serialize_with = "digest")]
    pub text: Arc<str>,
    /// Anything but a complete answer is rejected.
    pub finish: Finish,
    /// Whether a key was redacted in it; such a reply is rejected.
    pub held_key: bool,
}

impl Reply {
    /// A reply without a model call: given as text.
    pub fn of_text(text: &str) -> Self {
        Self {
            text: text.into(),
            finish: Finish::Complete,
            held_key: false,
        }
    }
}

/// A prompt is about to be sent to a model. Recorded first, so that a call without an answer is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Asked {
    /// The round.
    pub round: u32,
    /// The model, if it is not the first of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The prompt's file.
    pub prompt: Stored,
    /// The most that one attempt can use.
    pub at_most: AtMost,
}

/// The most that one attempt can use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AtMost {
    /// Input and output together.
    pub tokens: u64,
    /// US dollars; `None` without a price, or if nothing limits the output.
    pub cost_usd: Option<f64>,
}

/// One HTTP attempt of a call is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Attempted {
    /// The round.
    pub round: u32,
    /// Its result.
    #[serde(deserialize_with = "Attempt::recorded")]
    pub attempt: Attempt,
}
