//! How a reply ended, and what to do about it.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// How a reply ended. Only [`Finish::Complete`] may be acted on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "`reason` and `message` are the words of the service or its model"
)]
pub enum Finish {
    /// The model finished its reply.
    Complete,
    /// Cut off at the output limit, so the reply is incomplete.
    Truncated,
    /// It ended normally but has no text.
    Empty,
    /// The service refused to pass the prompt to the model.
    Blocked { filter: Filter },
    /// The service withheld the reply, or the rest of it.
    Filtered { filter: Filter },
    /// The model declined, in its own words.
    Refused { message: String },
    /// The model called a tool, although none was offered.
    ToolCall(ToolCall),
    /// The model wrote something that its own service could not parse.
    Malformed,
    /// Still incomplete after the maximum number of continuations.
    Endless,
    /// The account may not receive this reply.
    Withheld { reason: String },
    /// The service gave no reason, or "other".
    Other,
    /// A reason that this version does not know, of a reply that nothing proves to be whole.
    Unknown { reason: String },
}

/// Which filter withheld a prompt or a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Filter {
    /// Harmful content.
    Safety,
    /// Too close to a text the model was trained on.
    Recitation,
    /// An unsupported language.
    Language,
    /// A word on a block list.
    Blocklist,
    /// Content that is prohibited whatever the settings.
    Prohibited,
    /// Personal data.
    PersonalData,
    /// An image.
    Image,
    /// An attempt to circumvent the rules.
    Jailbreak,
    /// A filter that the account's owner configured.
    ModelArmor,
    /// The service does not say more.
    Unspecified,
    /// A filter that this version does not know.
    Unknown(String),
}

/// What was wrong with a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ToolCall {
    /// No tool was offered.
    Unexpected,
    /// It could not be read.
    Malformed,
    /// There were too many.
    TooMany,
    /// It lacked the signature that the service requires back.
    Unsigned,
}

/// What to do about a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// Use it.
    Use,
    /// Ask again: it was chance. The client has already done so before it returns such a reply.
    Retry,
    /// Tell the model what was wrong; repeating the same prompt would have the same result.
    TellModel,
    /// The user has to check the prompt, the account or the settings.
    TellPerson,
}

impl Finish {
    /// What a service's word means. Gateways pass on each other's words, so each dialect reads only those first that mean
    /// something else to it. No word at all is the end of a whole message.
    pub fn of_word(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "" | "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "complete"
            | "completed" => Self::Complete,
            "length"
            | "limit"
            | "max_tokens"
            | "max_output_tokens"
            | "token_limit"
            | "model_length"
            | "model_context_window_exceeded" => Self::Truncated,
            "content_filter"
            | "content_filtered"
            | "guardrail_intervened"
            | "sensitive"
            | "safety" => Self::Filtered {
                filter: Filter::Unspecified,
            },
            // The service broke the reply off, although it ends its message as if it were whole.
            "abort"
            | "aborted"
            | "cancelled"
            | "error"
            | "failed"
            | "incomplete"
            | "insufficient_system_resource"
            | "network_error"
            | "not_finished"
            | "pause_turn"
            | "time_limit"
            | "timeout" => Self::Other,
            "tool_calls" | "function_call" | "tool_use" => Self::ToolCall(ToolCall::Unexpected),
            _ => Self::Unknown {
                reason: word.to_owned(),
            },
        }
    }

    /// For `deserialize_with`: how a recorded reply ended. An end that cannot be read is unknown, so the reply is not used.
    pub fn recorded<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let end = Value::deserialize(from)?;
        Ok(Self::deserialize(&end).unwrap_or_else(|_| Self::Unknown {
            reason: end.to_string(),
        }))
    }

    /// What to do.
    pub fn advice(&self) -> Advice {
        match self {
            Self::Complete => Advice::Use,
            Self::ToolCall(_) | Self::Malformed | Self::Other => Advice::Retry,
            // S0 and S1 count calls: a reply without text is one.
            Self::Empty
            | Self::Truncated
            | Self::Endless
            | Self::Filtered {
                filter: Filter::Recitation | Filter::Language,
            } => Advice::TellModel,
            Self::Filtered { .. }
            | Self::Blocked { .. }
            | Self::Refused { .. }
            | Self::Withheld { .. }
            | Self::Unknown { .. } => Advice::TellPerson,
        }
    }

    /// The stable, kebab-case name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Truncated => "truncated",
            Self::Empty => "empty",
            Self::Blocked { .. } => "blocked",
            Self::Filtered { .. } => "filtered",
            Self::Refused { .. } => "refused",
            Self::ToolCall(_) => "tool-call",
            Self::Malformed => "malformed",
            Self::Endless => "endless",
            Self::Withheld { .. } => "withheld",
            Self::Other => "other",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// Whether another model may answer what this one, or a filter before it, declined.
    pub fn asks_for_another_model(&self) -> bool {
        matches!(
            self,
            Self::Blocked { .. }
                | Self::Filtered { .. }
                | Self::Refused { .. }
                | Self::Withheld { .. }
        )
    }

    /// One sentence for the user or the model, depending on [`Finish::advice`].
    pub fn explain(&self) -> String {
        match self {
            Self::Complete => "the reply is complete".into(),
            Self::Truncated => {
                "the reply was cut off at the output limit; reply in smaller steps".into()
            }
            Self::Empty => "the reply contains no text".into(),
            Self::Blocked { filter } => format!("the service blocked the prompt ({filter})"),
            Self::Filtered { filter } => format!("the service withheld the reply ({filter})"),
            Self::Refused { message } => format!("the model declined: {message}"),
            Self::ToolCall(_) => {
                "the model called a tool instead of replying; no tool is offered".into()
            }
            Self::Malformed => "the model wrote a reply that its service could not read".into(),
            Self::Endless => "the reply went on for too long; reply in smaller steps".into(),
            Self::Withheld { reason } => format!("the account may not have this reply ({reason})"),
            Self::Other => "the service ended the reply and gave no reason".into(),
            Self::Unknown { reason } => format!("the reply ended for an unknown reason ({reason})"),
        }
    }

    /// What the user can do about a reply that cannot be used.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Blocked { .. } => {
                "remove from the prompt what the filter may object to, or choose another model"
            }
            Self::Filtered { .. } | Self::Refused { .. } => {
                "rephrase the request, or choose another model"
            }
            Self::Withheld { .. } => {
                "check the account's permissions at the provider, or choose another model"
            }
            Self::Complete
            | Self::Truncated
            | Self::Empty
            | Self::ToolCall(_)
            | Self::Malformed
            | Self::Endless
            | Self::Other
            | Self::Unknown { .. } => "try again, or choose another model",
        }
    }
}

impl std::fmt::Display for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Safety => "safety",
            Self::Recitation => "recitation",
            Self::Language => "unsupported language",
            Self::Blocklist => "blocklist",
            Self::Prohibited => "prohibited content",
            Self::PersonalData => "personal data",
            Self::Image => "image",
            Self::Jailbreak => "jailbreak",
            Self::ModelArmor => "model armor",
            Self::Unspecified => "no reason given",
            Self::Unknown(word) => word,
        })
    }
}
