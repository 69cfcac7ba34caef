//! The service's words for how an answer ended.

use llm::{Finish, ToolCall};

/// `stop_reason`, except for a refusal, which has words of its own.
pub(crate) fn of(reason: &str) -> Finish {
    match reason {
        "end_turn" | "stop_sequence" => Finish::Complete,
        "max_tokens" | "model_context_window_exceeded" => Finish::Truncated,
        "tool_use" => Finish::ToolCall(ToolCall::Unexpected),
        // A turn of the service's own tools, none of which was offered.
        "pause_turn" => Finish::Other,
        other => Finish::Unknown { reason: other.to_owned() },
    }
}
