//! What a model call leaves in a journal, for every vocabulary that has such calls.

use llm::{Attempt, Finish, Usage};
use logging::{Durability, Stored};
use serde::{Deserialize, Serialize};

use crate::{Cause, Text};

/// A fact about a model call. A vocabulary takes these in by `From`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum CallFact {
    /// A prompt is about to be sent. Written before the call, so that a call whose answer never came is known.
    Asked {
        /// Which round.
        round: u32,
        /// The prompt.
        prompt: Text,
    },
    /// One HTTP attempt is over.
    Attempted {
        /// Which round.
        round: u32,
        /// What came of it.
        attempt: Attempt,
    },
    /// The model answered.
    Answered {
        /// Which round.
        round: u32,
        /// The answer's text, keys struck out.
        reply: Text,
        /// The whole answer as the service sent it.
        raw: Stored,
        /// How the answer ended.
        finish: Finish,
        /// Whether a key was struck out of the text.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        held_key: bool,
        /// Tokens, as far as the service says.
        usage: Usage,
        /// The model that really answered.
        served_model: Option<String>,
        /// What it cost in US dollars, where the price is known.
        cost_usd: Option<f64>,
        /// From the request to the end of the answer.
        elapsed_ms: u64,
    },
    /// The model gave no answer.
    Unanswered {
        /// Which round.
        round: u32,
        /// Why.
        cause: Cause,
    },
}

impl CallFact {
    /// The texts that the journal names but does not hold.
    pub fn texts_mut(&mut self) -> Vec<&mut Text> {
        match self {
            Self::Asked { prompt, .. } => vec![prompt],
            Self::Answered { reply, .. } => vec![reply],
            Self::Attempted { .. } | Self::Unanswered { .. } => Vec::new(),
        }
    }

    /// An answer was paid for; the rest can be done again.
    pub fn durability(&self) -> Durability {
        match self {
            Self::Answered { .. } => Durability::Synced,
            Self::Asked { .. } | Self::Attempted { .. } | Self::Unanswered { .. } => Durability::Written,
        }
    }
}
