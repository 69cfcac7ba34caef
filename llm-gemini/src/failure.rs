//! `google.rpc.Status`, and what proxies send instead.

use std::time::Duration;

use code_commit_llm::http::Head;
use code_commit_llm::{CallError, ErrorBody, Secret, retry_after, until_hour};
use serde_json::Value;

/// The hour of UTC at which daily quotas are reset: midnight in California, which is an hour earlier in summer. The
/// `retryDelay` of such an error is that of another quota.
const NEW_DAY: u64 = 8;

/// What an HTTP status other than 200 means.
pub(crate) fn of(head: &Head, body: &[u8], model: &str, key: &Secret) -> CallError {
    let body = ErrorBody::read(body, key);
    let details = body
        .error
        .get("details")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let field = |name: &str| details.iter().find_map(|d| d.get(name));
    if field("reason").and_then(Value::as_str) == Some("API_KEY_INVALID") {
        return CallError::BadKey {
            message: body.message,
        };
    }
    if head.status == 400 && body.field("status") == "FAILED_PRECONDITION" {
        return CallError::Unavailable {
            message: body.message,
        };
    }
    // The service has no code for it: INVALID_ARGUMENT stands for any mistake in a request.
    if head.status == 400
        && body
            .message
            .to_ascii_lowercase()
            .contains("input token count")
    {
        return CallError::TooLarge {
            message: body.message,
        };
    }
    if head.status == 429 && field("violations").is_some_and(is_daily) {
        return CallError::DailyQuota {
            message: body.message,
            retry_after: until_hour(head, NEW_DAY),
        };
    }
    let hint = field("retryDelay")
        .and_then(Value::as_str)
        .and_then(duration)
        .or_else(|| retry_after(head));
    body.by_status(head, model, hint)
}

/// What an `error` object in the middle of a stream means. It carries the status that should have
/// come first.
pub(crate) fn in_stream(error: &Value, model: &str, key: &Secret) -> CallError {
    let status = error
        .get("code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok());
    let head = Head {
        status: status.unwrap_or(500),
        ..Head::default()
    };
    of(&head, error.to_string().as_bytes(), model, key)
}

/// Whether a daily quota is among them.
fn is_daily(violations: &Value) -> bool {
    let mut ids = violations
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|v| v.get("quotaId")?.as_str());
    ids.any(|id| id.contains("PerDay"))
}

/// `google.protobuf.Duration`: "34.07s".
fn duration(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.strip_suffix('s')?.parse().ok()?).ok()
}
