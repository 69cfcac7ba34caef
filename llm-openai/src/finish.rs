//! The services' words for how an answer ended.

use llm::{Filter, Finish, ToolCall};

/// `finish_reason`.
pub(crate) fn of(reason: &str) -> Finish {
    match reason {
        "stop" => Finish::Complete,
        "length" => Finish::Truncated,
        "content_filter" => Finish::Filtered { filter: Filter::Unspecified },
        "tool_calls" | "function_call" => Finish::ToolCall(ToolCall::Unexpected),
        other => Finish::Unknown { reason: other.to_owned() },
    }
}
