//! What the errors of all services mean: one table of their words, then the HTTP status.

use std::time::Duration;

use serde_json::Value;

use crate::dialect::Service;
use crate::http::Head;
use crate::{CallError, Secret};

/// What a service means by its word for an error is what this status says, whatever its own status.
const MEANT: [(u16, &[&str]); 5] = [
    (
        401,
        &["invalid_api_key", "API_KEY_INVALID", "authentication_error"],
    ),
    (
        402,
        &[
            "insufficient_quota",
            "credit_balance_exhausted",
            "billing_hard_limit_reached",
            "billing_not_active",
            "billing_error",
        ],
    ),
    (403, &["permission_error"]),
    (404, &["not_found_error", "NOT_FOUND"]),
    (
        413,
        &[
            "context_length_exceeded",
            "exceed_context_size_error",
            "string_above_max_length",
            "request_too_large",
        ],
    ),
];

/// The same for parts of a message, in lower case: these services have no word for it. With `LiteLLM`'s name, and the code of
/// the service behind it, whose error it quotes.
const MEANT_IN_WORDS: [(u16, u16, &[&str]); 3] = [
    (
        400,
        413,
        &[
            "input token count",
            "prompt is too long",
            "exceed context limit",
            "contextwindowexceedederror",
            "context_length_exceeded",
        ],
    ),
    (400, 402, &["credit balance"]),
    // The account's own limit: it is not lifted by waiting.
    (429, 402, &["enforced_spend_limit_reached"]),
];

/// The service refuses to pass the prompt to the model; no status says so.
const BLOCKED: [&str; 2] = ["content_filter", "content_policy_violation"];

/// The service does not serve this account from this country; the second of them if the status is 400.
const UNAVAILABLE: [&str; 2] = [
    "unsupported_country_region_territory",
    "FAILED_PRECONDITION",
];

/// The status that should have come first, for an error in the middle of a stream that has no number.
const IN_STREAM: [(u16, &[&str]); 5] = [
    (400, &["invalid_prompt", "invalid_request_error"]),
    (429, &["rate_limit_exceeded", "rate_limit_error"]),
    (503, &["server_is_overloaded", "slow_down"]),
    (504, &["timeout_error"]),
    (529, &["overloaded_error"]),
];

/// The hour of UTC at which daily quotas are reset: midnight in California, which is an hour earlier in summer. The
/// `retryDelay` of such an error is that of another quota.
const NEW_DAY: u64 = 8;

/// What an HTTP status that is no success means.
pub fn of(head: &Head, body: &[u8], service: &Service) -> CallError {
    let body = ErrorBody::read(body, &service.key);
    let words = body.words();
    let is_one_of = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let message = body.message.clone();
    if is_one_of(&BLOCKED) {
        return CallError::Blocked { message };
    }
    if matches!(head.status, 400 | 403) && is_one_of(&UNAVAILABLE) {
        return CallError::Unavailable { message };
    }
    if head.status == 429 && body.names_a_daily_quota() {
        return CallError::DailyQuota {
            message,
            retry_after: until_hour(head, NEW_DAY),
        };
    }
    let said = body.said();
    let by_word = MEANT.iter().find(|(_, known)| is_one_of(known));
    let by_message = MEANT_IN_WORDS
        .iter()
        .find(|(of, _, parts)| *of == head.status && parts.iter().any(|part| said.contains(part)));
    let status = match (by_word, by_message) {
        (Some((status, _)), _) | (_, Some((_, status, _))) => *status,
        // The path is missing rather than the model, which has the same status: the server's text would mention a model.
        // Servers of another kind send no word for it, and neither does OpenAI for an address without `/v1`.
        _ if matches!(head.status, 404 | 405)
            && (words.is_empty() || service.base.is_origin())
            && !said.contains("model") =>
        {
            return CallError::WrongAddress {
                base: service.base.join(""),
                message,
            };
        }
        _ => head.status,
    };
    let retry_after = body.retry_delay().or_else(|| retry_after(head));
    by_status(status, head, service.id.name(), message, retry_after)
}

/// The status of an error in the middle of a stream: a number in it, or what its word stands for.
pub(crate) fn status_of(error: &Value) -> u16 {
    let number = ["code", "status"]
        .iter()
        .find_map(|name| error.get(name)?.as_u64());
    if let Some(status) = number.and_then(|number| number.try_into().ok()) {
        return status;
    }
    let is = |word: &&str| ["code", "type"].iter().any(|name| error[*name] == **word);
    let known = IN_STREAM.iter().find(|(_, words)| words.iter().any(is));
    // LM Studio answers every unknown path with 200 and such an error.
    let is_lost = error
        .as_str()
        .is_some_and(|text| text.starts_with("Unexpected endpoint"));
    known.map_or(if is_lost { 404 } else { 500 }, |(status, _)| *status)
}

/// What this status says, with the other headers of `head`.
pub(crate) fn by_status(
    status: u16,
    head: &Head,
    model: &str,
    message: String,
    retry_after: Option<Duration>,
) -> CallError {
    match status {
        300..=399 => {
            let target = head.header("location").unwrap_or_default();
            let is_whole = target.contains("://");
            let location = if is_whole {
                crate::http::origin_of(target)
            } else {
                "another path".into()
            };
            CallError::Redirected { status, location }
        }
        401 => CallError::BadKey { message },
        402 => CallError::Billing { message },
        403 => CallError::NoPermission { message },
        404 => CallError::NotFound {
            model: model.to_owned(),
            message,
        },
        407 => CallError::Proxy {
            origin: "the service".into(),
            message,
        },
        413 => CallError::TooLarge { message },
        429 => CallError::RateLimited {
            message,
            retry_after,
        },
        503 | 529 => CallError::Overloaded {
            status,
            message,
            retry_after,
        },
        // 409 is what OpenAI and Anthropic answer while they wait for a lock. 520 to 524 are from Cloudflare: the service behind it is down or slow.
        408 | 409 | 500 | 502 | 504 | 520..=524 => CallError::Server {
            status,
            message,
            retry_after,
        },
        _ => CallError::BadRequest { status, message },
    }
}

/// An error body of any shape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ErrorBody {
    /// The object that describes the error; null where the body is not JSON.
    error: Value,
    /// Its message, sanitized for display.
    pub(crate) message: String,
}

impl ErrorBody {
    /// Reads `{"error":{"message":…}}`, the same in an array or as the first event of a stream, `{"error":"…"}`, `{"detail":…}`,
    /// `{"message":…}`, an HTML page, plain text, or nothing. `key` never appears in the message.
    pub(crate) fn read(body: &[u8], key: &Secret) -> Self {
        let event = body
            .strip_prefix(b"data:")
            .and_then(|rest| rest.split(|byte| *byte == b'\n').next());
        let Ok(value) = serde_json::from_slice::<Value>(event.unwrap_or(body)) else {
            let text = String::from_utf8_lossy(body);
            return Self {
                error: Value::Null,
                message: clean_message(&text_of(&text), key),
            };
        };
        let object = value.get(0).unwrap_or(&value);
        let error = object.get("error").unwrap_or(object);
        let words = ["message", "detail", "error"]
            .into_iter()
            .filter_map(|name| error.get(name))
            .find(|v| !v.is_null());
        let words = words.unwrap_or(error);
        let message = words
            .as_str()
            .map_or_else(|| words.to_string(), str::to_owned);
        Self {
            message: clean_message(&message, key),
            error: error.clone(),
        }
    }

    /// Its words for what is wrong: `code`, `type` and `status`, and the `reason` of Google's details.
    fn words(&self) -> Vec<&str> {
        let own = ["code", "type", "status"].map(|name| self.error.get(name));
        let words = own.into_iter().flatten().chain(self.details("reason"));
        words
            .filter_map(Value::as_str)
            .filter(|word| !word.is_empty())
            .collect()
    }

    /// All of it, in lower case.
    fn said(&self) -> String {
        format!("{} {}", self.message, self.error).to_ascii_lowercase()
    }

    fn details<'e>(&'e self, name: &'e str) -> impl Iterator<Item = &'e Value> {
        let details = self.error.get("details").and_then(Value::as_array);
        details
            .into_iter()
            .flatten()
            .filter_map(move |detail| detail.get(name))
    }

    fn names_a_daily_quota(&self) -> bool {
        self.details("violations")
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(|violation| violation.get("quotaId")?.as_str())
            .any(|id| id.contains("PerDay"))
    }

    /// `google.protobuf.Duration`: "34.07s".
    fn retry_delay(&self) -> Option<Duration> {
        let delay = self.details("retryDelay").next()?.as_str()?;
        Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
    }
}

/// The text of a body that is not JSON: the title of a page, or the beginning of plain text.
fn text_of(body: &str) -> String {
    let lower = body.to_ascii_lowercase();
    let title = lower
        .find("<title>")
        .map(|at| at + "<title>".len())
        .zip(lower.find("</title>"));
    match title.and_then(|(from, to)| body.get(from..to)) {
        Some(title) => format!("a page of HTML, \"{}\"", title.trim()),
        None if lower.contains("<html") || lower.contains("<!doctype") => "a page of HTML".into(),
        None if body.trim().is_empty() => "no further explanation".into(),
        None => body.to_owned(),
    }
}

/// How long the service asks us to wait: from `retry-after-ms` or `retry-after` (seconds, or a
/// date, which is compared with the response's own `date`).
fn retry_after(head: &Head) -> Option<Duration> {
    if let Some(millis) = head
        .header("retry-after-ms")
        .and_then(|v| v.trim().parse::<f64>().ok())
    {
        return seconds(millis / 1000.0);
    }
    let value = head.header("retry-after")?.trim();
    if let Ok(wait) = value.parse::<f64>() {
        return seconds(wait);
    }
    let wait = http_date(value)?.as_second() - http_date(head.header("date")?)?.as_second();
    Some(Duration::from_secs(u64::try_from(wait).unwrap_or(0)))
}

/// How long from the response's own `date` until this many hours of UTC.
fn until_hour(head: &Head, hour: u64) -> Option<Duration> {
    const DAY: i64 = 24 * 3600;
    let hour = i64::try_from(hour * 3600).ok()?;
    let left = (hour - http_date(head.header("date")?)?.as_second()).rem_euclid(DAY);
    Some(Duration::from_secs(
        u64::try_from(if left == 0 { DAY } else { left }).ok()?,
    ))
}

/// A value that overflows means for ever; a value that is not a time is ignored.
fn seconds(value: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(value)
        .ok()
        .or_else(|| (value > 0.0).then_some(Duration::MAX))
}

fn http_date(text: &str) -> Option<jiff::Timestamp> {
    let rfc_850 = || jiff::civil::DateTime::strptime("%A, %d-%b-%y %T GMT", text).ok();
    let parsed = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text);
    parsed
        .ok()
        .or_else(|| jiff::tz::TimeZone::UTC.to_timestamp(rfc_850()?).ok())
}

/// Control characters, and characters that are invisible or change the writing direction.
fn is_unfit(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// A service's text, made safe for a terminal and a log: one line, no control characters, at most
/// 600 characters, and with the key redacted in case the service echoed it.
pub fn clean_message(text: &str, key: &Secret) -> String {
    const LONGEST: usize = 600;
    let spaced: String = key
        .hide_in(text)
        .chars()
        .map(|c| if is_unfit(c) { ' ' } else { c })
        .collect();
    let mut words = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = words.char_indices().nth(LONGEST) {
        words.truncate(at);
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        Service {
            base: "http://localhost".parse().unwrap(),
            id: "openai/m".parse().unwrap(),
            key: Secret::default(),
        }
    }

    fn message(body: &str) -> String {
        ErrorBody::read(body.as_bytes(), &Secret::new("sk-secret-key-xy")).message
    }

    const IN_AN_EVENT: &str =
        "data: {\"error\": {\"message\": \"in an event\"}}\n\ndata: [DONE]\n\n";

    #[test]
    fn any_shape_of_error_body_has_a_message() {
        for (body, shown) in [
            (r#"{"error":{"message":"m","code":400}}"#, "m"),
            (r#"[{"error":{"message":"in an array"}}]"#, "in an array"),
            (IN_AN_EVENT, "in an event"),
            (r#"{"error":"text"}"#, "text"),
            (r#"{"detail":"d"}"#, "d"),
            (
                r#"{"detail":[{"loc":["body"],"msg":"x"}]}"#,
                r#"[{"loc":["body"],"msg":"x"}]"#,
            ),
            (r#"{"message":"top"}"#, "top"),
            (r#"{"odd":1}"#, r#"{"odd":1}"#),
            ("\"just text\"", "just text"),
            (
                "<html><head><TITLE> 502 Bad Gateway </TITLE>",
                "a page of HTML, \"502 Bad Gateway\"",
            ),
            ("<!doctype html><p>x", "a page of HTML"),
            (" \n", "no further explanation"),
            ("plain \u{1b}[31mwords\n here", "plain [31mwords here"),
            ("a\u{202e}b\u{200b}c", "a b c"),
            ("<title>backwards</title", "<title>backwards</title"),
            ("</title><title>", "</title><title>"),
        ] {
            assert_eq!(message(body), shown, "{body}");
        }
    }

    /// What the official Python clients send again: openai 3.52.0 and anthropic 2.11.0, which agree, and google-genai 3.4.0.
    #[test]
    fn what_the_official_clients_send_again_is_sent_again_unless_it_cannot_help() {
        let is_retried = |status| {
            let head = Head {
                status,
                ..Head::default()
            };
            of(&head, b"{}", &service()).is_retryable()
        };
        let openai_and_anthropic = |status| matches!(status, 408 | 409 | 429 | 500..);
        let genai = |status| matches!(status, 408 | 429 | 500 | 502 | 503 | 504);
        for status in 400..600 {
            assert!(
                !is_retried(status) || openai_and_anthropic(status),
                "{status}: more than they do"
            );
            assert!(
                !genai(status) || is_retried(status),
                "{status}: less than any of them does"
            );
        }
        // A server that cannot do something will not learn it.
        let not_by_us: Vec<u16> = (400..530)
            .filter(|s| openai_and_anthropic(*s) && !is_retried(*s))
            .collect();
        assert_eq!(
            not_by_us,
            [vec![501], (505..520).collect(), (525..529).collect()].concat()
        );
    }

    #[test]
    fn a_missing_path_is_told_from_a_missing_model() {
        let word = r#"{"error":{"code":"gone","message":"none"}}"#;
        for (status, base, body, code) in [
            (404, "http://h", "nothing here", "wrong-address"),
            (404, "http://h/v1", "nothing here", "wrong-address"),
            (405, "http://h", word, "wrong-address"),
            (404, "http://h/v1", word, "not-found"),
            (404, "http://h", "no such model", "not-found"),
            (400, "http://h", "nothing here", "bad-request"),
        ] {
            let base = base.parse().unwrap();
            let head = Head {
                status,
                ..Head::default()
            };
            let error = of(&head, body.as_bytes(), &Service { base, ..service() });
            assert_eq!(error.code(), code, "{status} {body}");
        }
    }

    #[test]
    fn the_time_until_an_hour_is_that_of_the_next_one_by_the_answers_own_date() {
        let left = |date: &str| {
            let headers = vec![("date".to_owned(), date.to_owned())];
            until_hour(
                &Head {
                    headers,
                    ..Head::default()
                },
                8,
            )
            .map(|left| left.as_secs())
        };
        assert_eq!(left("Mon, 23 Nov 2026 07:00:00 GMT"), Some(3600));
        assert_eq!(left("Mon, 23 Nov 2026 08:00:00 GMT"), Some(24 * 3600));
        assert_eq!(left("Mon, 23 Nov 2026 20:00:00 GMT"), Some(12 * 3600));
        assert_eq!(
            (left("soon"), until_hour(&Head::default(), 8)),
            (None, None)
        );
    }

    #[test]
    fn a_key_in_an_error_body_does_not_come_through() {
        assert_eq!(
            message(r#"{"error":{"message":"bad key sk-secret-key-xy!"}}"#),
            "bad key …xy!"
        );
        assert!(message(&"x".repeat(100_000)).chars().count() <= 601);
    }

    /// The hint in milliseconds.
    fn hint(headers: &[(&str, &str)]) -> Option<u128> {
        let owned = |(n, v): &(&str, &str)| ((*n).to_owned(), (*v).to_owned());
        let head = Head {
            status: 429,
            headers: headers.iter().map(owned).collect(),
            after: Duration::ZERO,
        };
        retry_after(&head).map(|hint| hint.as_millis())
    }

    #[test]
    fn a_hint_is_seconds_milliseconds_or_a_date() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let seconds = |value| hint(&[("retry-after", value), date]);
        let in_ms = [("retry-after-ms", "250"), ("retry-after", "9")];
        assert_eq!(hint(&in_ms), Some(250));
        for (value, ms) in [
            ("7", 7000),
            ("1.5", 1500),
            ("Sun, 06 Nov 1994 08:50:37 GMT", 60_000),
            ("Sun, 06 Nov 1994 08:00:00 GMT", 0),
            ("Sunday, 06-Nov-94 08:50:37 GMT", 60_000),
        ] {
            assert_eq!(seconds(value), Some(ms), "{value}");
        }
        let undated = [("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT")];
        assert_eq!(hint(&undated), None);
        for longer_than_any in ["1e300", "99999999999999999999", "inf"] {
            let most = Some(Duration::MAX.as_millis());
            assert_eq!(seconds(longer_than_any), most, "{longer_than_any}");
        }
        for nonsense in ["", "-1", "soon", "NaN"] {
            assert_eq!(seconds(nonsense), None, "{nonsense}");
        }
    }
}
