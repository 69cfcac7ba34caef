//! In what the servers of this dialect differ.

use llm::http::BaseUrl;
use serde::{Deserialize, Serialize};

/// The three switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Switches {
    /// What the output limit is called.
    pub max_tokens: OutputLimit,
    /// Who says the system instruction.
    pub system_role: SystemRole,
    /// How an answer that follows a JSON schema is asked for.
    pub schema: Schema,
}

/// What the output limit is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputLimit {
    /// `max_completion_tokens`: OpenAI's own models refuse the other.
    MaxCompletionTokens,
    /// `max_tokens`: all that many local servers know.
    MaxTokens,
}

/// Who says the system instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemRole {
    /// OpenAI's own.
    Developer,
    /// Everybody else's.
    System,
}

/// How an answer that follows a JSON schema is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schema {
    /// With the schema itself, strictly.
    JsonSchema,
    /// As any JSON object; the prompt has to say which.
    JsonObject,
    /// Not at all; the prompt has to say everything.
    None,
}

impl Switches {
    /// What OpenAI's own service takes.
    pub const OPENAI: Self = Self {
        max_tokens: OutputLimit::MaxCompletionTokens,
        system_role: SystemRole::Developer,
        schema: Schema::JsonSchema,
    };

    /// What ollama, llama.cpp, vLLM, LM Studio and Gemini's own endpoint of this dialect take.
    pub const COMPATIBLE: Self = Self {
        max_tokens: OutputLimit::MaxTokens,
        system_role: SystemRole::System,
        schema: Schema::JsonSchema,
    };

    /// What the server at `base` most likely takes.
    pub fn of(base: &BaseUrl) -> Self {
        if base.host() == "api.openai.com" { Self::OPENAI } else { Self::COMPATIBLE }
    }
}
