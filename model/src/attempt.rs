//! One HTTP attempt of a call.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{Advice, CallError, Finish, Reply, Usage};

/// The result of one HTTP attempt: a row of the token table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Attempt {
    /// From 1, throughout the call.
    pub number: u32,
    /// The model that was asked, if it is not the first of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it ended.
    pub status: AttemptStatus,
    /// The service's own term for how it ended.
    pub finish_reason: Option<String>,
    /// The HTTP status; `None` if no answer began.
    pub http_status: Option<u16>,
    /// [`CallError::code`] of the failure.
    pub error: Option<String>,
    /// The failure in words, or why the reply cannot be used.
    pub message: Option<String>,
    /// The model that answered, as the service names it.
    pub served_model: Option<String>,
    /// The service's id of the reply.
    pub response_id: Option<String>,
    /// The usage reported for it.
    pub usage: Usage,
    /// Whether the attempt was paid for. Unknown if the request was sent but its usage was never
    /// reported, or if the row does not say.
    #[serde(default = "Spend::unstated")]
    pub spend: Spend,
    /// From the start of the attempt to its end.
    pub duration_ms: u64,
    /// From the start of the attempt to the first byte of the reply.
    pub first_byte_ms: Option<u64>,
    /// How long the next attempt is held back; `None` if this was the last.
    pub wait_ms: Option<u64>,
}

impl Attempt {
    /// For `deserialize_with`: the row as it was recorded. One that cannot be read may have been paid for.
    pub fn recorded<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(
            serde_json::from_value(Value::deserialize(from)?)
                .unwrap_or_else(|_| Self::unreadable()),
        )
    }

    /// A row that is damaged or missing: it may have been paid for.
    pub fn unreadable() -> Self {
        Self {
            spend: Spend::Unknown,
            error: Some("unreadable".to_owned()),
            ..Self::default()
        }
    }

    /// Whether it failed after the request was sent: it may have been paid for, and nobody will
    /// ever know.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.error.is_some() && self.spend == Spend::Unknown
    }

    /// Whether the client has a reply, which was paid for, but may still ask for a better one.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.error.is_none() && self.spend != Spend::Nothing
    }

    /// Records a part of a reply that the next attempt continues.
    pub fn note_part(&mut self, reply: &Reply) {
        self.note_reply(reply);
        self.status = AttemptStatus::Continued;
    }

    /// Records a whole answer, usable or not.
    pub fn note_reply(&mut self, reply: &Reply) {
        self.status = match (&reply.finish, reply.finish.advice()) {
            (Finish::Truncated, _) => AttemptStatus::Truncated,
            (_, Advice::Use) => AttemptStatus::Ok,
            (Finish::Empty, _) | (_, Advice::Retry) => AttemptStatus::Unusable,
            (_, Advice::TellModel | Advice::TellPerson) => AttemptStatus::Refused,
        };
        self.message = (self.status == AttemptStatus::Unusable).then(|| reply.finish.explain());
        self.finish_reason.clone_from(&reply.finish_reason);
        self.served_model.clone_from(&reply.served_model);
        self.response_id.clone_from(&reply.response_id);
        self.usage = reply.usage;
        self.spend = if reply.usage.total().is_some() {
            Spend::Usage
        } else {
            Spend::Unknown
        };
    }

    /// Records that there is no answer.
    pub fn note_error(&mut self, error: &CallError) {
        let cancelled = matches!(error, CallError::Cancelled);
        self.status = if cancelled {
            AttemptStatus::Cancelled
        } else {
            AttemptStatus::Error
        };
        self.error = Some(error.code().to_owned());
        self.message = Some(error.to_string());
        self.spend = error.spend();
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AttemptStatus {
    /// A whole answer.
    Ok,
    /// A reply cut off at the limit.
    Truncated,
    /// The service or the model refused to answer.
    Refused,
    /// A reply that cannot be used: empty, malformed, of an unknown kind.
    Unusable,
    /// The reply continues in the next attempt.
    Continued,
    /// No answer.
    #[default]
    Error,
    /// The caller cancelled it.
    Cancelled,
}

/// Was an attempt paid for?
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Spend {
    /// The service rejected it before doing any work.
    #[default]
    Nothing,
    /// As [`Attempt::usage`] says.
    Usage,
    /// The request was sent but its usage was never reported: count it as spent.
    Unknown,
}

impl Spend {
    fn unstated() -> Self {
        Self::Unknown
    }
}
