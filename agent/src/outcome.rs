//! How an agent's turn ended.

use code_commit_model::{ErrorCode, ModelUsage};
use serde::{Deserialize, Serialize};

/// The result of one turn and its cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The reply: what the model said last. If the turn ended badly, what it said until then.
    pub text: String,
    /// Tokens of this turn by model; empty if the CLI did not report any.
    pub usage: Vec<ModelUsage>,
    /// The cost of this turn as calculated by the CLI, in US dollars.
    pub cost_usd: Option<f64>,
    /// The session's name, for the next turn.
    pub session: Option<String>,
    /// Tools that the model was not allowed to use.
    pub denials: Vec<Denial>,
    /// From start to end.
    pub elapsed_ms: u64,
    /// The beginning and the end of its standard error, with the key redacted.
    pub stderr: String,
}

/// How a turn ended: the worst that is known about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "`message` is what the CLI or its service said last; the names say the rest"
)]
pub enum End {
    /// There is a reply and nothing contradicts it.
    Ok,
    /// The model's service did not answer, even after retries: what a call of the harness's own would have failed with.
    Service {
        code: ErrorCode,
        message: String,
        /// When a quota is renewed, in seconds since 1970 (UTC), if the CLI says so.
        resets_unix: Option<u64>,
    },
    /// The answer was cut off at the token limit.
    Truncated,
    /// The model, or a filter in front of it, declined to reply.
    Refused { message: String },
    /// The CLI's own limit on turns or money.
    TurnLimit { message: String },
    /// Tools were denied, so the work cannot be complete.
    PermissionDenied,
    /// The session to continue does not exist.
    LostSession,
    /// It exited without a final event or without an answer.
    NoResult,
    /// It failed in some other way.
    Crashed {
        code: Option<i32>,
        signal: Option<i32>,
        message: String,
    },
    /// It exceeded its time limit, or was silent for too long, and was killed.
    TimedOut {
        /// Whether it was silence.
        idle: bool,
    },
    /// It wrote more than any agent should and was killed.
    TooMuchOutput,
    /// The caller stopped it.
    Interrupted,
    /// The program disappeared or cannot be started.
    NotInstalled,
}

impl End {
    /// Stable, kebab-case.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Service { code, .. } => code.as_str(),
            Self::Truncated => "truncated",
            Self::Refused { .. } => "refused",
            Self::TurnLimit { .. } => "turn-limit",
            Self::PermissionDenied => "permission-denied",
            Self::LostSession => "lost-session",
            Self::NoResult => "no-result",
            Self::Crashed { .. } => "crashed",
            Self::TimedOut { idle: false } => "timeout",
            Self::TimedOut { idle: true } => "idle",
            Self::TooMuchOutput => "too-much-output",
            Self::Interrupted => "interrupted",
            Self::NotInstalled => "not-installed",
        }
    }

    /// The message of the CLI or its service, if there is one.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Service { message, .. }
            | Self::Refused { message }
            | Self::TurnLimit { message }
            | Self::Crashed { message, .. } => {
                Some(message.as_str()).filter(|text| !text.is_empty())
            }
            Self::Ok
            | Self::Truncated
            | Self::PermissionDenied
            | Self::LostSession
            | Self::NoResult
            | Self::TimedOut { .. }
            | Self::TooMuchOutput
            | Self::Interrupted
            | Self::NotInstalled => None,
        }
    }

    /// Replaces the message, for callers that need to redact it.
    #[must_use]
    pub fn map_message(mut self, change: impl FnOnce(String) -> String) -> Self {
        if let Self::Service { message, .. }
        | Self::Refused { message }
        | Self::TurnLimit { message }
        | Self::Crashed { message, .. } = &mut self
        {
            *message = change(std::mem::take(message));
        }
        self
    }

    /// Whether another agent, or another model, may do better.
    pub fn asks_for_another(&self) -> bool {
        matches!(self, Self::Service { code, .. } if code.asks_for_another_model())
            || matches!(self, Self::Refused { .. } | Self::NotInstalled)
    }
}

fn said_of(code: ErrorCode) -> &'static str {
    let known = [
        (ErrorCode::RateLimited, "was rate limited"),
        (ErrorCode::DailyQuota, "has used up its quota"),
        (ErrorCode::Billing, "has no credit left"),
        (ErrorCode::BadKey, "could not log in to its service"),
        (ErrorCode::NoPermission, "is not permitted by its service"),
        (
            ErrorCode::TooLarge,
            "was asked for more than its model takes",
        ),
        (ErrorCode::Overloaded, "found its service overloaded"),
        (ErrorCode::NotFound, "asked for a model that does not exist"),
        (ErrorCode::BadRequest, "was refused by its service"),
    ];
    known
        .iter()
        .find(|(own, _)| *own == code)
        .map_or("got an error from its service", |(_, said)| said)
}

/// Continues a sentence that begins with "the agent".
impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self {
            Self::Ok => "answered",
            Self::Service { code, .. } => said_of(*code),
            Self::Truncated => "was cut off at its token limit",
            Self::Refused { .. } => "refused to answer",
            Self::TurnLimit { .. } => "used up its own limit of turns",
            Self::PermissionDenied => "was denied tools that it needed",
            Self::LostSession => "no longer knows the session",
            Self::NoResult => "ended without a result",
            Self::Crashed { .. } => "crashed",
            Self::TimedOut { idle: false } => "ran out of time",
            Self::TimedOut { idle: true } => "was silent for too long",
            Self::TooMuchOutput => "wrote too much output",
            Self::Interrupted => "was interrupted",
            Self::NotInstalled => "could not be started",
        };
        f.write_str(what)?;
        self.message()
            .map_or(Ok(()), |message| write!(f, ": {message}"))
    }
}

/// A tool that the model was not allowed to use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool.
    pub tool: String,
    /// Its main argument, in one short line.
    pub argument: Option<String>,
}
