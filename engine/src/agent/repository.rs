//! Commits, and what is not committed.

use serde::{Deserialize, Serialize};

use super::files::AgentLoop;
use crate::text::digest_json;
use crate::{Answer, CommitAnswer, Request};

/// Commit everything that differs in a repository. There must be something to commit.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct CommitAll<P: AgentLoop> {
    /// Where.
    pub repository: P::Repository,
    /// The message.
    pub message: String,
    /// Whether only to mark the last commit: what differs is not part of what is to be committed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_mark: bool,
}

impl<P: AgentLoop> Request for CommitAll<P> {
    const KIND: &'static str = "commit-all";
    type Answer = CommitAnswer;
}

/// Check what is not committed in a repository, before anything is changed.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Survey<P: AgentLoop> {
    /// Where.
    pub repository: P::Repository,
}

impl<P: AgentLoop> Request for Survey<P> {
    const KIND: &'static str = "survey";
    type Answer = Surveyed;
}

/// The uncommitted changes of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "surveyed")]
pub struct Surveyed {
    /// Where.
    pub repository: String,
    /// The commit that is checked out; `None` in a repository without commits.
    pub head: Option<String>,
    /// What differs from it.
    pub uncommitted: Vec<Uncommitted>,
}

impl Answer for Surveyed {}

/// An uncommitted file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Uncommitted {
    /// Relative to the repository's folder.
    pub path: String,
    /// SHA-256 of its content in hex; `None` if it is gone.
    pub sha256: Option<String>,
}

/// Commit all changes, if there are any.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Checkpoint<P: AgentLoop> {
    /// Where.
    pub repository: P::Repository,
    /// The message.
    pub message: String,
    /// Not committed unless they have changed since.
    #[serde(serialize_with = "digest_json")]
    pub spare: Vec<Uncommitted>,
}

impl<P: AgentLoop> Request for Checkpoint<P> {
    const KIND: &'static str = "checkpoint";
    type Answer = Checkpointed;
}

/// What came of a checkpoint. That git fails is an answer: it does not stop a run (S4 §Auto-Commit).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "checkpointed")]
pub struct Checkpointed {
    /// Where.
    pub repository: String,
    /// The message.
    pub message: String,
    /// Whether there is a commit.
    pub checkpoint: CheckpointResult,
}

impl Answer for Checkpointed {}

/// Whether there is a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "checkpoint", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it all")]
pub enum CheckpointResult {
    Made {
        commit: String,
    },
    /// Nothing had changed.
    Nothing,
    Failed {
        error: String,
    },
}
