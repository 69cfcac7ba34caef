//! A model that reads its replies from a file, so that everything can be tried without a network.
//!
//! The file is one of two things:
//!
//! - JSON: `{"replies": [ENTRY, …]}`;
//! - anything else: plain text, with replies separated by lines that say `--- next reply ---`.
//!
//! An ENTRY is an object with [`Entry`]'s fields, such as `{"text": "…"}`, `{"error":
//! "rate-limited", "retry_after_s": 2}` or `{"text": "half", "finish": "truncated"}`. Failures are
//! retried like a real service's: the next entry answers the next attempt.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;

use crate::failure::by_status;
use crate::http::Head;
use crate::provider::SCRIPTED;
use crate::retry::{Answer, Tried, with_retry};
use crate::{
    Attempt, CallError, Finish, Model, ModelId, ModelIdError, Progress, Reply, Request, Retry,
    Usage, Waited, Watch,
};

/// Separates replies in a plain file.
const SEPARATOR: &str = "--- next reply ---";

/// One reply of the script.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Entry {
    /// The answer's text.
    pub text: String,
    /// How it ended, if not completely: `truncated`, `empty`, `{"filtered": {"filter": "safety"}}`.
    pub finish: Option<Finish>,
    /// The reported usage.
    pub usage: Usage,
    /// The model that answered.
    pub served_model: Option<String>,
    /// A failure instead of an answer.
    pub error: Option<Failure>,
    /// Its message.
    pub message: String,
    /// How long the service asks us to wait.
    pub retry_after_s: Option<f64>,
    /// How long the answer takes.
    pub delay_ms: u64,
}

/// The failures that a script can have, with the names of [`CallError::code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Failure {
    Billing,
    DailyQuota,
    Idle,
    Overloaded,
    RateLimited,
    Server,
    StreamCut,
}

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum ScriptError {
    #[error("cannot read {}", .path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    /// It is not a valid script.
    #[error("{} cannot be read as a script", .path.display())]
    Malformed {
        path: PathBuf,
        source: serde_json::Error,
    },
    /// The path cannot be part of a model's name.
    #[error(transparent)]
    Name(#[from] ModelIdError),
}

/// A model that answers from a script.
#[derive(Debug)]
pub struct Scripted {
    id: ModelId,
    entries: Vec<Entry>,
    next: AtomicUsize,
    retry: Retry,
}

impl Scripted {
    /// Reads the script.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let text = std::fs::read_to_string(path).map_err(|source| ScriptError::Read {
            path: path.to_owned(),
            source,
        })?;
        let entries = parse(&text).map_err(|source| ScriptError::Malformed {
            path: path.to_owned(),
            source,
        })?;
        let id = ModelId::new(SCRIPTED, &path.to_string_lossy())?;
        Ok(Self {
            id,
            ..Self::new(entries)
        })
    }

    /// A script made of entries, for tests without a file.
    pub fn new(entries: Vec<Entry>) -> Self {
        Self {
            id: ModelId::inline_script(),
            entries,
            next: AtomicUsize::new(0),
            retry: Retry::default(),
        }
    }

    /// Replaces the retry rules.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    fn attempt(&self, request: &Request<'_>, watch: &mut dyn Watch) -> Tried {
        let outcome = self.answer(request, watch);
        let mut attempt = Attempt::default();
        match &outcome {
            Ok(reply) => attempt.note_reply(reply),
            Err(error) => attempt.note_error(error),
        }
        Tried {
            outcome: outcome.map(|reply| Answer {
                reply,
                continuation: None,
            }),
            attempt,
            is_simplified: false,
        }
    }

    fn answer(&self, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Reply, CallError> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        let entry = self.entries.get(at).ok_or(CallError::NothingLeft {
            given: self.entries.len(),
        })?;
        if entry.delay_ms > 0
            && watch.wait(Duration::from_millis(entry.delay_ms)) == Waited::Cancelled
        {
            return Err(CallError::Cancelled);
        }
        if let Some(failure) = entry.error {
            return Err(error(failure, entry));
        }
        watch.progress(Progress::Connected);
        watch.progress(Progress::Bytes(entry.text.len() as u64));
        if request.stream {
            watch.progress(Progress::Text(&entry.text));
        }
        let reply = Reply::of_text(entry.text.clone());
        let finish = entry.finish.clone().unwrap_or_else(|| reply.finish.clone());
        Ok(Reply {
            finish,
            usage: entry.usage,
            served_model: entry.served_model.clone(),
            ..reply
        })
    }
}

impl Model for Scripted {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn pass_over(&self, attempts: usize) {
        self.next.fetch_add(attempts, Ordering::Relaxed);
    }

    fn call(&self, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Reply, CallError> {
        with_retry(&self.retry, request.time_left, watch, |_, watch| {
            self.attempt(request, watch)
        })
    }
}

fn parse(text: &str) -> Result<Vec<Entry>, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Whole {
        replies: Vec<Entry>,
    }
    if !text.trim_start().starts_with('{') {
        return Ok(plain(text));
    }
    serde_json::from_str::<Whole>(text).map(|whole| whole.replies)
}

/// The newline before a separator belongs to it, not to the reply.
fn plain(text: &str) -> Vec<Entry> {
    let mut replies = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.trim() == SEPARATOR {
            replies.push(String::new());
        } else if let Some(reply) = replies.last_mut() {
            reply.push_str(line);
        }
    }
    replies
        .into_iter()
        .map(|text| Entry {
            text,
            ..Entry::default()
        })
        .collect()
}

fn error(failure: Failure, entry: &Entry) -> CallError {
    let message = entry.message.clone();
    let after = entry.retry_after_s;
    let retry_after = after.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let status = match failure {
        Failure::Idle => {
            let after = Duration::from_millis(entry.delay_ms);
            return CallError::Idle { after };
        }
        Failure::StreamCut => {
            let received = entry.text.len() as u64;
            return CallError::StreamCut { received };
        }
        Failure::DailyQuota => {
            return CallError::DailyQuota {
                message,
                retry_after,
            };
        }
        Failure::Billing => 402,
        Failure::RateLimited => 429,
        Failure::Server => 500,
        Failure::Overloaded => 503,
    };
    by_status(status, &Head::default(), SCRIPTED, message, retry_after)
}

#[cfg(test)]
mod tests;
