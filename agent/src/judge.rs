//! Derives how a turn ended from the exit status and the CLI's output. Exit code and final event
//! can only make the verdict worse.

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
        Ended::TimedOut => Err(End::TimedOut { idle: false }),
        Ended::Interrupted if facts.was_idle => Err(End::TimedOut { idle: true }),
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
        (None, _) if is_logged_out(facts.stderr) => End::Auth { message: last_line(facts.stderr) },
        (Some(_) | None, _) => crashed(facts, Some(code), None),
    }
}

/// Exit codes that Gemini CLI documents.
fn by_special_code(facts: &Facts<'_>, code: i32) -> Option<End> {
    let message =
        || facts.told.last.as_ref().map_or_else(|| last_line(facts.stderr), |last| last.message.clone());
    match (facts.kind, code) {
        (Kind::Gemini, 41) => Some(End::Auth { message: message() }),
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
        Some(error) => End::Refused { message: error.clone() },
        None if told.answer.trim().is_empty() => End::NoResult,
        None => End::Ok,
    }
}

fn by_error(facts: &Facts<'_>, last: &Last, code: i32) -> End {
    let message = if last.message.is_empty() { last_line(facts.stderr) } else { last.message.clone() };
    match (last.kind.as_deref(), last.stop_reason.as_deref()) {
        (Some("error_max_turns" | "error_max_budget_usd" | "FatalTurnLimitedError"), _) => {
            return End::TurnLimit { message };
        }
        (_, Some("max_tokens")) => return End::MaxTokens,
        (_, Some("refusal")) => return End::Refused { message },
        _ => {}
    }
    let status = last.status.or_else(|| status_of_code(facts.kind, code));
    let everything = format!("{message}\n{}", facts.stderr);
    match status {
        Some(401 | 403) => End::Auth { message },
        Some(402) => End::Quota { message, resets_unix: facts.told.resets_unix },
        Some(429) if is_used_up(&everything) || facts.told.resets_unix.is_some() => {
            End::Quota { message, resets_unix: facts.told.resets_unix.or_else(|| epoch(&everything)) }
        }
        _ if is_logged_out(&everything) => End::Auth { message },
        _ if is_lost_session(&everything) => End::LostSession,
        _ if is_cut_off(&everything) => End::MaxTokens,
        None if is_used_up(&message) || is_used_up_of_codex(facts.kind, &message) => {
            End::Quota { resets_unix: facts.told.resets_unix.or_else(|| epoch(&message)), message }
        }
        None if facts.kind == Kind::Gemini && code == 0 => End::Refused { message },
        status => End::ApiError { status, message },
    }
}

/// Gemini CLI exits with the HTTP status modulo 256.
fn status_of_code(kind: Kind, code: i32) -> Option<u16> {
    const STATUSES: [u16; 14] = [400, 401, 402, 403, 404, 408, 409, 413, 429, 499, 500, 502, 503, 504];
    let same = |status: &u16| i32::from(*status % 256) == code;
    STATUSES.into_iter().find(same).filter(|_| kind == Kind::Gemini)
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

/// Codex omits the status and says this only for `insufficient_quota`; others also say it for a
/// per-minute quota.
fn is_used_up_of_codex(kind: Kind, text: &str) -> bool {
    kind == Kind::Codex && says(text, &["quota exceeded"])
}

fn is_cut_off(text: &str) -> bool {
    says(text, &["output token maximum", "max_output_tokens", "maximum output tokens"])
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
    let said = facts.told.last.as_ref().map(|last| last.message.clone()).filter(|text| !text.is_empty());
    End::Crashed { code, signal, message: said.unwrap_or_else(|| last_line(facts.stderr)) }
}

/// The last line that is not empty.
fn last_line(text: &str) -> String {
    one_line(text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default())
}

#[cfg(test)]
mod tests;
