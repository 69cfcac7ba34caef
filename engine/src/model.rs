//! Requests to a model.

use std::ops::AddAssign;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Answer, Cause, Request, Stored, Text, digest};

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
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is the answered one")]
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
    fn is_synced(&self) -> bool {
        matches!(self, Self::Answered(_))
    }
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The round.
    pub round: u32,
    /// The text, keys redacted.
    pub reply: Text,
    /// The whole answer as the service sent it.
    pub raw: Stored,
    /// How the answer ended.
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
        Reply { text: self.reply.share(), finish: self.finish.clone(), held_key: self.held_key }
    }
}

/// No answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unanswered {
    /// The round.
    pub round: u32,
    /// Why.
    pub cause: Cause,
}

/// How a service says that its answer ended. Loops only pass it on to whoever judges the reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Finish(pub Value);

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

/// A prompt is about to be sent to a model. Recorded first, so that a call without an answer is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The round.
    pub round: u32,
    /// The model, if it is not the first of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The prompt's file.
    pub prompt: Stored,
    /// The most that one attempt can use; `None` if nothing is sent, because the answer is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<AtMost>,
}

/// The most that one attempt can use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct AtMost {
    /// Input and output together.
    pub tokens: u64,
    /// US dollars; `None` without a price, or if nothing limits the output.
    pub cost_usd: Option<f64>,
}

/// One HTTP attempt of a call is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempted {
    /// The round.
    pub round: u32,
    /// Its result, in the words of the client.
    pub attempt: Value,
}

impl Attempted {
    /// Whether it failed after it was sent: nobody will ever know what it cost.
    pub fn is_lost(&self) -> bool {
        !self.is_spent("nothing") && !self.is_spent("usage") && !self.is_null("error")
    }

    /// Whether the client has an answer, which was paid for, but may still ask for a better one.
    pub fn is_answer(&self) -> bool {
        self.is_null("error") && !self.is_spent("nothing")
    }

    /// Whether another attempt follows.
    pub fn is_retried(&self) -> bool {
        !self.is_null("wait_ms")
    }

    fn is_spent(&self, word: &str) -> bool {
        self.attempt.get("spend").is_some_and(|spend| spend == word)
    }

    fn is_null(&self, name: &str) -> bool {
        self.attempt.get(name).is_none_or(Value::is_null)
    }
}

/// Tokens of one or more calls. `None` means that the service did not say, which is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// All input, including cached tokens.
    pub input_tokens: Option<u64>,
    /// The part of the input that came from a cache.
    pub cache_read_tokens: Option<u64>,
    /// The part of the input that was written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// All output, including reasoning.
    pub output_tokens: Option<u64>,
    /// The part of the output that was reasoning.
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Input and output together; `None` unless both are known.
    pub fn total(&self) -> Option<u64> {
        Some(self.input_tokens?.saturating_add(self.output_tokens?))
    }
}

impl AddAssign for Usage {
    /// Unknown plus known is the known part: a sum never loses what was reported.
    fn add_assign(&mut self, other: Self) {
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            *sum = sum.zip(more).map(|(a, b)| a.saturating_add(b)).or(*sum).or(more);
        };
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.cache_read_tokens, other.cache_read_tokens);
        add(&mut self.cache_write_tokens, other.cache_write_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.reasoning_tokens, other.reasoning_tokens);
    }
}

/// What one model used in one turn of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUsage {
    /// The model's name.
    pub model: String,
    /// Its tokens.
    #[serde(flatten)]
    pub usage: Usage,
    /// The cost as reported by the agent, in US dollars.
    pub cost_usd: Option<f64>,
}
