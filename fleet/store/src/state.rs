//! Where an order stands.

use serde::{Deserialize, Serialize};

use crate::StoreError;

/// The states of an order.
///
/// ```text
/// waiting ─▶ queued ⇄ leased ─▶ passed ─▶ landed
///                       ├─▶ failed    FAIL
///                       ├─▶ stopped   no model, or over budget
///                       └─▶ dead      lost too often
/// ```
///
/// A passed order whose branch has moved goes back to `queued`. `cancel` ends any order that is not over, and `retry` queues one
/// that ended without success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the picture above has them")]
pub enum State {
    Waiting,
    Queued,
    Leased,
    Passed,
    Landed,
    Failed,
    Stopped,
    Dead,
    Cancelled,
}

impl State {
    /// In the order in which an order meets them.
    pub const ALL: [Self; 9] = [
        Self::Waiting,
        Self::Queued,
        Self::Leased,
        Self::Passed,
        Self::Landed,
        Self::Failed,
        Self::Stopped,
        Self::Dead,
        Self::Cancelled,
    ];

    /// As in the database and in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Queued => "queued",
            Self::Leased => "leased",
            Self::Passed => "passed",
            Self::Landed => "landed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    /// Nobody works on it any more, and nobody will unless a person says so.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Queued | Self::Leased)
    }

    /// It ended without success.
    pub const fn is_failure(self) -> bool {
        matches!(
            self,
            Self::Failed | Self::Stopped | Self::Dead | Self::Cancelled
        )
    }

    pub(crate) fn read(word: &str) -> Result<Self, StoreError> {
        let found = Self::ALL.into_iter().find(|state| state.word() == word);
        found.ok_or_else(|| StoreError::Word(word.to_owned()))
    }
}
