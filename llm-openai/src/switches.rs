//! How the servers of this dialect differ.

use code_commit_llm::http::BaseUrl;
use code_commit_llm::provider::{OutputLimit, SystemRole};
use serde::{Deserialize, Serialize};

/// The two switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Switches {
    /// The name of the output limit.
    pub max_tokens: OutputLimit,
    /// The role of the system instruction.
    pub system_role: SystemRole,
}

impl Switches {
    /// What OpenAI's own service accepts.
    pub const OPENAI: Self = Self {
        max_tokens: OutputLimit::MaxCompletionTokens,
        system_role: SystemRole::Developer,
    };

    /// What ollama, llama.cpp, vLLM, LM Studio and Gemini's compatible endpoint accept.
    pub const COMPATIBLE: Self = Self {
        max_tokens: OutputLimit::MaxTokens,
        system_role: SystemRole::System,
    };

    /// What the server at `base` most likely accepts.
    pub fn of(base: &BaseUrl) -> Self {
        if base.host() == "api.openai.com" {
            Self::OPENAI
        } else {
            Self::COMPATIBLE
        }
    }
}
