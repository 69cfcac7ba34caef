//! What loops that drive coding agents ask for (S3, S4): whole turns of an agent instead of single
//! model calls.

mod files;
mod pace;
mod repository;
mod turn;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Answer, Ended, Request, Text};

pub use files::{
    AgentLoop, Append, At, Delete, Identified, Identify, Named, Place, Read, Replace, WasRead,
    Wrote,
};
pub use pace::{Agents, Next, Pace};
pub use repository::{
    Checkpoint, CheckpointResult, Checkpointed, CommitAll, Survey, Surveyed, Uncommitted,
};
pub use turn::{
    Amount, Denial, LimitReached, Marked, Turn, TurnAdvice, TurnAnswer, TurnBegins, TurnEnd, Turned,
};

/// List what a role can see.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct List<P: AgentLoop> {
    /// The role.
    pub role: P::Role,
}

impl<P: AgentLoop> Request for List<P> {
    const KIND: &'static str = "list";
    type Answer = Listed;
}

/// A role's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "listed")]
pub struct Listed {
    /// The role.
    pub role: String,
    /// The files, one a line.
    pub list: Text,
    /// When it was listed, RFC 3339.
    pub at: String,
}

impl Answer for Listed {
    fn texts_mut(&mut self) -> Vec<&mut Text> {
        vec![&mut self.list]
    }
}

/// Run a command line of the user in a shell.
#[derive(Debug, Clone, Serialize)]
pub struct Shell {
    /// What the line is for: `setup`, `check`.
    pub name: &'static str,
    /// The line.
    pub line: String,
}

impl Request for Shell {
    const KIND: &'static str = "shell";
    const SUBJECT: &'static str = "the command";
    type Answer = ShellRan;
}

/// A command line of the user has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "shell-ran")]
#[expect(missing_docs, reason = "the rest is what its name says")]
pub struct ShellRan {
    /// The number of the command line in the run, from 1; part of its file's name.
    pub number: u32,
    pub name: String,
    pub ended: Ended,
    pub output: Text,
    pub elapsed_ms: u64,
}

impl Answer for ShellRan {
    fn outputs_mut(&mut self) -> Vec<&mut Text> {
        vec![&mut self.output]
    }
}

/// Let time pass.
#[derive(Debug, Clone, Serialize)]
pub struct Wait {
    /// Until this moment, in seconds since 1970 (UTC), but no longer than eight days.
    pub until_unix: u64,
    /// Wait at least this many seconds, even if that moment has passed.
    pub at_least_secs: u32,
    /// Why; continues a sentence that begins with "the agent".
    pub why: String,
}

impl Request for Wait {
    const KIND: &'static str = "wait";
    type Answer = Waited;
}

/// The moment has come, or nobody waits that long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "waited")]
pub struct Waited {
    /// Which, in seconds since 1970 (UTC).
    pub until_unix: u64,
    /// Whether it would have taken longer than the run may wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_too_long: bool,
}

impl Answer for Waited {}

/// Record something that only the loop knows in the journal, for observers.
#[derive(Debug, Clone, Serialize)]
pub struct Announce(pub Value);

impl Request for Announce {
    const KIND: &'static str = "announce";
    type Answer = Announced;
}

/// An event of the loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "announced")]
pub struct Announced {
    /// The event.
    pub event: Value,
}

impl Answer for Announced {}
