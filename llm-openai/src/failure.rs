//! Error bodies: OpenAI's, and those of other servers.

use code_commit_llm::http::Head;
use code_commit_llm::{CallError, ErrorBody, retry_after};
use serde_json::Value;

use crate::Service;

/// What an HTTP status other than 200 means. `code` is the field to check, if there is one.
pub(crate) fn of(head: &Head, body: &[u8], service: &Service) -> CallError {
    let body = ErrorBody::read(body, &service.key);
    let code = if body.field("code").is_empty() {
        body.field("type")
    } else {
        body.field("code")
    };
    match (head.status, code) {
        (_, "invalid_api_key") => CallError::BadKey {
            message: body.message,
        },
        (403, "unsupported_country_region_territory") => CallError::Unavailable {
            message: body.message,
        },
        (_, "content_filter" | "content_policy_violation") => CallError::Blocked {
            message: body.message,
        },
        (
            _,
            "context_length_exceeded" | "exceed_context_size_error" | "string_above_max_length",
        ) => CallError::TooLarge {
            message: body.message,
        },
        (
            _,
            "insufficient_quota"
            | "credit_balance_exhausted"
            | "billing_hard_limit_reached"
            | "billing_not_active",
        ) => CallError::Billing {
            message: body.message,
        },
        (404 | 405, code) if is_of_another_server(&body, code, service) => {
            CallError::WrongAddress {
                base: service.base.join(""),
                message: body.message,
            }
        }
        _ => body.by_status(head, service.model(), retry_after(head)),
    }
}

/// Whether the path is missing rather than the model, which has the same status. The server's text
/// tells them apart: a message about a missing model mentions a model. Servers of another kind send
/// no code, and neither does OpenAI for an address without `/v1`.
fn is_of_another_server(body: &ErrorBody, code: &str, service: &Service) -> bool {
    let speaks_of_model = [code, &body.message]
        .iter()
        .any(|w| w.to_ascii_lowercase().contains("model"));
    !speaks_of_model && (code.is_empty() || service.base.is_origin())
}

/// What an `error` in the middle of a stream means. Its only status is a number in it. LM Studio
/// answers every unknown path with 200 and such an error.
pub(crate) fn in_stream(error: &Value, service: &Service) -> CallError {
    let number = error
        .get("code")
        .or_else(|| error.get("status"))
        .and_then(Value::as_u64);
    let by_code = match error.get("code").and_then(Value::as_str) {
        Some("rate_limit_exceeded") => Some(429),
        Some("server_is_overloaded" | "slow_down") => Some(503),
        Some("invalid_prompt") => Some(400),
        _ if error
            .as_str()
            .is_some_and(|text| text.starts_with("Unexpected endpoint")) =>
        {
            Some(404)
        }
        _ => None,
    };
    let status = number
        .and_then(|n| u16::try_from(n).ok())
        .or(by_code)
        .unwrap_or(500);
    of(
        &Head {
            status,
            ..Head::default()
        },
        error.to_string().as_bytes(),
        service,
    )
}
