//! Reads what the service sends.

use code_commit_llm::json::{self, Aside, First};
use code_commit_llm::{CallError, Event, Fragment};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// `GenerateContentResponse`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Message {
    #[serde(deserialize_with = "json::each")]
    candidates: First<Candidate>,
    prompt_feedback: Aside,
    usage_metadata: Aside,
    model_version: Aside,
    response_id: Aside,
    #[serde(deserialize_with = "json::error")]
    error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Aside,
    finish_message: Aside,
    continuation_token: Aside,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Content {
    #[serde(deserialize_with = "json::each")]
    parts: Parts,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Part {
    text: Fragment,
    thought: Aside,
    function_call: Option<IgnoredAny>,
}

#[derive(Debug, Default)]
struct Parts {
    text: Fragment,
    /// Summaries for the reader.
    thought: Fragment,
    called_tool: bool,
}

impl Extend<Part> for Parts {
    fn extend<I: IntoIterator<Item = Part>>(&mut self, parts: I) {
        for part in parts {
            self.called_tool |= part.function_call.is_some();
            if *part.thought == true {
                self.thought.extend(part.text);
            } else {
                self.text.extend(part.text);
            }
        }
    }
}

/// Reads one message, the whole answer or a piece of it.
pub(crate) fn event(json: &[u8]) -> Result<Event, CallError> {
    let message: Message = json::object(json)?;
    let candidate = message.candidates.0.unwrap_or_default();
    let parts = candidate.content.unwrap_or_default().parts;
    let reason = match block_reason(&message.prompt_feedback) {
        Some(block) if !candidate.finish_reason.is_string() => Aside(block.into()),
        _ => candidate.finish_reason,
    };
    Ok(Event {
        reason,
        fields: vec![
            ("promptFeedback", message.prompt_feedback),
            ("usageMetadata", message.usage_metadata),
            ("modelVersion", message.model_version),
            ("responseId", message.response_id),
            ("finishMessage", candidate.finish_message),
        ],
        text: parts.text,
        thought: parts.thought,
        called_tool: parts.called_tool,
        continuation: candidate.continuation_token,
        error: message.error,
        ..Event::default()
    })
}

/// Why the service refused to pass the prompt to the model.
pub(crate) fn block_reason(feedback: &Value) -> Option<&str> {
    feedback.get("blockReason").and_then(Value::as_str)
}
