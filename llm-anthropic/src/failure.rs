//! `{"type": "error", "error": {"type": …, "message": …}}`, and what proxies send instead.

use code_commit_llm::http::Head;
use code_commit_llm::{CallError, ErrorBody, Secret, retry_after};
use serde_json::Value;

/// What an HTTP status other than 200 means.
pub(crate) fn of(head: &Head, body: &[u8], model: &str, key: &Secret) -> CallError {
    let body = ErrorBody::read(body, key);
    let message = body.message.clone();
    match body.field("type") {
        "authentication_error" => CallError::BadKey { message },
        "billing_error" => CallError::Billing { message },
        "permission_error" => CallError::NoPermission { message },
        "not_found_error" => CallError::NotFound {
            model: model.to_owned(),
            message,
        },
        "request_too_large" => CallError::TooLarge { message },
        "invalid_request_error" if is_too_long(&message) => CallError::TooLarge { message },
        "invalid_request_error" if message.contains("credit balance") => {
            CallError::Billing { message }
        }
        // The account's own limit: it is not lifted by waiting.
        "rate_limit_error" if has_reached_its_spend_limit(&body.error) => {
            CallError::Billing { message }
        }
        _ => body.by_status(head, model, retry_after(head)),
    }
}

/// What an `error` event in the middle of a stream means. Its type stands for the status that should have come first.
pub(crate) fn in_stream(error: &Value, model: &str, key: &Secret) -> CallError {
    let status = match error.get("type").and_then(Value::as_str) {
        Some("invalid_request_error") => 400,
        Some("rate_limit_error") => 429,
        Some("timeout_error") => 504,
        Some("overloaded_error") => 529,
        _ => 500,
    };
    of(
        &Head {
            status,
            ..Head::default()
        },
        error.to_string().as_bytes(),
        model,
        key,
    )
}

/// The service has no type for it: the same one stands for any mistake in a request.
fn is_too_long(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["prompt is too long", "exceed context limit"]
        .iter()
        .any(|part| message.contains(part))
}

fn has_reached_its_spend_limit(error: &Value) -> bool {
    error.to_string().contains("enforced_spend_limit_reached")
}
