//! The service's words for how an answer ended.

use code_commit_llm::{Filter, Finish, ToolCall};

/// `Candidate.FinishReason`.
pub(crate) fn of(reason: &str) -> Finish {
    match reason {
        "CONTINUATION" => Finish::Endless,
        "MALFORMED_RESPONSE" => Finish::Malformed,
        "MALFORMED_FUNCTION_CALL" => Finish::ToolCall(ToolCall::Malformed),
        "UNEXPECTED_TOOL_CALL" => Finish::ToolCall(ToolCall::Unexpected),
        "TOO_MANY_TOOL_CALLS" => Finish::ToolCall(ToolCall::TooMany),
        "MISSING_THOUGHT_SIGNATURE" => Finish::ToolCall(ToolCall::Unsigned),
        "ESCALATION" | "PUP_LIMITED_DISABLED" => Finish::Withheld {
            reason: reason.to_owned(),
        },
        "OTHER" | "FINISH_REASON_UNSPECIFIED" => Finish::Other,
        other => filtered(filter(other)),
    }
}

fn filtered(filter: Filter) -> Finish {
    if let Filter::Unknown(reason) = filter {
        Finish::of_word(&reason)
    } else {
        Finish::Filtered { filter }
    }
}

/// The filters that `PromptFeedback.BlockReason` and `Candidate.FinishReason` have in common.
pub(crate) fn filter(reason: &str) -> Filter {
    match reason {
        "SAFETY" => Filter::Safety,
        "RECITATION" => Filter::Recitation,
        "LANGUAGE" => Filter::Language,
        "BLOCKLIST" => Filter::Blocklist,
        "PROHIBITED_CONTENT" => Filter::Prohibited,
        "SPII" => Filter::PersonalData,
        "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_OTHER"
        | "NO_IMAGE"
        | "IMAGE_RECITATION" => Filter::Image,
        "MODEL_ARMOR" => Filter::ModelArmor,
        "JAILBREAK" => Filter::Jailbreak,
        "OTHER" | "BLOCK_REASON_UNSPECIFIED" => Filter::Unspecified,
        other => Filter::Unknown(other.to_owned()),
    }
}
