//! Derives how a turn ended from the exit status and the CLI's output. Exit code and final event
//! can only make the verdict worse.

use code_commit_model::ErrorCode;
use code_commit_runner::Ended;

use crate::collected::{Collected, Last, one_line};
use crate::{End, Kind};

/// What is known about a finished turn.
pub(crate) struct Facts<'a> {
    pub(crate) kind: Kind,
    pub(crate) ended: Ended,
    /// Whether it was stopped because it was silent.
    pub(crate) was_idle: bool,
    pub(crate) told: &'a Collected,
    /// The beginning and the end of its standard error.
    pub(crate) stderr: &'a str,
}

/// The worst applicable verdict.
pub(crate) fn judge(facts: &Facts<'_>) -> End {
    let code = match facts.ended {
        Ended::Exited(code) => Ok(code),
        Ended::Signaled(signal) => Err(crashed(facts, None, Some(signal))),
        Ended::TimedOut => Err(out_of_time(facts).unwrap_or(End::TimedOut { idle: false })),
        Ended::Interrupted if facts.was_idle => {
            Err(out_of_time(facts).unwrap_or(End::TimedOut { idle: true }))
        }
        Ended::Interrupted => Err(End::Interrupted),
        Ended::TooMuchOutput => Err(End::TooMuchOutput),
        Ended::NotFound | Ended::NotExecutable => Err(End::NotInstalled),
        // Turns have no such limits.
        Ended::TooMuchMemory | Ended::TooManyProcesses => Err(End::NoResult),
    };
    code.map_or_else(|end| end, |code| by_code(facts, code))
}

fn by_code(facts: &Facts<'_>, code: i32) -> End {
    if let Some(end) = by_special_code(facts, code) {
        return end;
    }
    match (&facts.told.last, code) {
        (Some(last), _) if last.is_error => by_error(facts, last, code),
        (Some(_), 0) => without_error(facts),
        (None, 0) => End::NoResult,
        (None, _) if is_lost_session(facts.stderr) => End::LostSession,
        (None, _) if is_logged_out(facts.stderr) => {
            service(ErrorCode::BadKey, last_line(facts.stderr))
        }
        (Some(_) | None, _) => crashed(facts, Some(code), None),
    }
}

/// Exit codes that Gemini CLI documents.
fn by_special_code(facts: &Facts<'_>, code: i32) -> Option<End> {
    let message = || {
        facts
            .told
            .last
            .as_ref()
            .map_or_else(|| last_line(facts.stderr), |last| last.message.clone())
    };
    match (facts.kind, code) {
        (Kind::Gemini, 41) => Some(service(ErrorCode::BadKey, message())),
        (Kind::Gemini, 53) => Some(End::TurnLimit { message: message() }),
        (Kind::Gemini | Kind::Claude | Kind::Codex, _) => None,
    }
}

/// The final event is not an error, and the exit code is 0.
fn without_error(facts: &Facts<'_>) -> End {
    let told = facts.told;
    if !told.denials.is_empty() {
        return End::PermissionDenied;
    }
    match &told.error {
        Some(error) => End::Refused {
            message: error.clone(),
        },
        None if told.answer.trim().is_empty() => End::NoResult,
        None => End::Ok,
    }
}

fn by_error(facts: &Facts<'_>, last: &Last, code: i32) -> End {
    let message = if last.message.is_empty() {
        last_line(facts.stderr)
    } else {
        last.message.clone()
    };
    match (last.kind.as_deref(), last.stop_reason.as_deref()) {
        (Some("error_max_turns" | "error_max_budget_usd" | "FatalTurnLimitedError"), _) => {
            return End::TurnLimit { message };
        }
        (_, Some("max_tokens")) => return End::Truncated,
        (_, Some("refusal")) => return End::Refused { message },
        _ => {}
    }
    let status = last.status.or_else(|| status_of_code(facts.kind, code));
    let everything = format!("{message}\n{}", facts.stderr);
    let by_status = status.map(ErrorCode::of_status);
    let is_quota = match by_status {
        Some(code) => code == ErrorCode::RateLimited,
        None => is_rate(&message) || is_used_up(&message),
    };
    let code = match by_status {
        Some(code @ (ErrorCode::BadKey | ErrorCode::NoPermission | ErrorCode::Billing)) => code,
        _ if is_quota => quota_of(facts, status, &message),
        _ if is_logged_out(&everything) => ErrorCode::BadKey,
        _ if is_lost_session(&everything) => return End::LostSession,
        _ if is_cut_off(&everything) => return End::Truncated,
        _ if is_too_large(&message) => ErrorCode::TooLarge,
        Some(code) => code,
        None if facts.kind == Kind::Gemini && code == 0 => return End::Refused { message },
        None => ErrorCode::Server,
    };
    let resets_unix = facts.told.resets_unix.or_else(|| epoch(&everything));
    End::Service {
        code,
        message,
        resets_unix,
    }
}

/// Which quota is used up. Codex omits the status and says `quota exceeded` only for `insufficient_quota`; others also say it for
/// a per-minute quota.
fn quota_of(facts: &Facts<'_>, status: Option<u16>, message: &str) -> ErrorCode {
    let is_codex =
        status.is_none() && facts.kind == Kind::Codex && says(message, &["quota exceeded"]);
    let says = |any: &[&str]| says(message, any) || says(facts.stderr, any);
    if is_codex || says(&["insufficient_quota", "credit balance"]) {
        ErrorCode::Billing
    } else if is_used_up(message) || is_used_up(facts.stderr) || facts.told.resets_unix.is_some() {
        ErrorCode::DailyQuota
    } else {
        ErrorCode::RateLimited
    }
}

/// A CLI that was still retrying when its time was up has not run out of time: its service does not answer.
fn out_of_time(facts: &Facts<'_>) -> Option<End> {
    let message = facts
        .told
        .retried
        .clone()
        .or_else(|| last_retry(facts.stderr))?;
    let numbers = message
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse().ok());
    let status = numbers
        .into_iter()
        .find(|number| (400..600).contains(number));
    let code = match status {
        _ if is_rate(&message) => ErrorCode::RateLimited,
        Some(status) => ErrorCode::of_status(status),
        None => ErrorCode::Server,
    };
    Some(service(code, message))
}

fn service(code: ErrorCode, message: String) -> End {
    End::Service {
        code,
        message,
        resets_unix: None,
    }
}

/// Gemini CLI tells a retry on its standard error only: `Attempt 2 failed: WHY`, and below how long it waits.
fn last_retry(stderr: &str) -> Option<String> {
    let is_waiting = says(&last_line(stderr), &["retrying"]);
    let attempt = stderr
        .lines()
        .rev()
        .find(|line| line.starts_with("Attempt "));
    attempt.filter(|_| is_waiting).map(one_line)
}

fn is_rate(text: &str) -> bool {
    says(
        text,
        &[
            "429",
            "rate limit",
            "rate_limit",
            "too many requests",
            "resource_exhausted",
            "quota exceeded",
        ],
    )
}

fn is_too_large(text: &str) -> bool {
    says(
        text,
        &[
            "prompt is too long",
            "context length",
            "context window",
            "input token count",
        ],
    )
}

/// Gemini CLI exits with the HTTP status modulo 256.
fn status_of_code(kind: Kind, code: i32) -> Option<u16> {
    const STATUSES: [u16; 14] = [
        400, 401, 402, 403, 404, 408, 409, 413, 429, 499, 500, 502, 503, 504,
    ];
    let same = |status: &u16| i32::from(*status % 256) == code;
    STATUSES
        .into_iter()
        .find(same)
        .filter(|_| kind == Kind::Gemini)
}

/// The CLIs report these only as text.
fn says(text: &str, any: &[&str]) -> bool {
    let text = text.to_ascii_lowercase();
    any.iter().any(|words| text.contains(words))
}

fn is_logged_out(text: &str) -> bool {
    let words = [
        "not logged in",
        "invalid api key",
        "api key not valid",
        "api_key_invalid",
        "authentication_error",
        "missing environment variable",
    ];
    says(text, &words)
}

fn is_lost_session(text: &str) -> bool {
    let words = [
        "no conversation found",
        "invalid session identifier",
        "no previous sessions found",
        "no rollout found",
        "error resuming session",
    ];
    says(text, &words)
}

/// Per day or permanently: waiting a minute does not help.
fn is_used_up(text: &str) -> bool {
    let words = [
        "per day",
        "perday",
        "daily",
        "insufficient_quota",
        "credit balance",
        "usage limit",
        "limit reached",
        "hit your limit",
        "exhausted your",
    ];
    says(text, &words)
}

fn is_cut_off(text: &str) -> bool {
    says(
        text,
        &[
            "output token maximum",
            "max_output_tokens",
            "maximum output tokens",
        ],
    )
}

/// `…limit reached|1795224363`: the renewal time. Exactly ten digits, right after these words.
fn epoch(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let (_, behind) = text.split_once("limit reached|")?;
    let digits = behind.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    let is_number = digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

fn crashed(facts: &Facts<'_>, code: Option<i32>, signal: Option<i32>) -> End {
    let said = facts
        .told
        .last
        .as_ref()
        .map(|last| last.message.clone())
        .filter(|text| !text.is_empty());
    End::Crashed {
        code,
        signal,
        message: said.unwrap_or_else(|| last_line(facts.stderr)),
    }
}

/// The last line that is not empty.
fn last_line(text: &str) -> String {
    one_line(
        text.lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests;
