//! What loops that drive coding agents ask for (S3, S4): whole turns of an agent instead of single
//! model calls.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::{digest, digest_json};
use crate::{Answer, Cause, CommitAnswer, Ended, ModelUsage, Request, Stored, Text};

/// What a loop's roles, places and repositories are. Types, so that a request can only name what
/// the harness has.
pub trait Project: fmt::Debug + Clone + 'static {
    /// Who works.
    type Role: Named;
    /// A folder that holds files of the harness or files that it reads.
    type Place: Named;
    /// Where commits go.
    type Repository: Named;
}

/// A role, a place or a repository.
pub trait Named: Serialize + Copy + PartialEq + fmt::Debug {
    /// Its name in the record: lower-case, without blanks.
    fn name(self) -> &'static str;
}

/// List what a role can see.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct List<P: Project> {
    /// The role.
    pub role: P::Role,
}

impl<P: Project> Request for List<P> {
    const KIND: &'static str = "list";
    type Answer = Listed;
}

/// A role's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename = "listed")]
pub struct Listed {
    /// The role.
    pub role: String,
    /// The files, one a line.
    pub list: Text,
    /// When, RFC 3339.
    pub at: String,
}

impl Answer for Listed {
    fn texts_mut(&mut self) -> Vec<&mut Text> {
        vec![&mut self.list]
    }
}

/// Let an agent work until it is done.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Turn<P: Project> {
    /// Who works.
    pub role: P::Role,
    /// What is asked.
    #[serde(serialize_with = "digest")]
    pub prompt: Arc<str>,
    /// Who the agent is to be, beside its CLI's own system prompt.
    #[serde(serialize_with = "digest_json")]
    pub system: Option<String>,
    /// Which conversation it belongs to.
    pub session: Session,
}

impl<P: Project> Request for Turn<P> {
    const KIND: &'static str = "turn";
    const SUBJECT: &'static str = "the prompt";
    type Answer = TurnAnswer;

    fn text(&self) -> Option<&str> {
        Some(&self.prompt)
    }
}

/// Which conversation a turn belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Session {
    /// A new one; the CLI names it.
    #[default]
    None,
    /// A new one that the harness names by a UUID, where the CLI lets it.
    New,
    /// Continue this one.
    Resume(String),
}

/// What comes of a [`Turn`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum TurnAnswer {
    /// The turn is over.
    Turned(Box<Turned>),
    /// The run has used what it may: no turn was begun.
    LimitReached(LimitReached),
}

impl Answer for TurnAnswer {
    fn texts_mut(&mut self) -> Vec<&mut Text> {
        match self {
            Self::Turned(turned) => vec![&mut turned.answer],
            Self::LimitReached(_) => Vec::new(),
        }
    }

    /// A turn costs money and minutes.
    fn is_synced(&self) -> bool {
        matches!(self, Self::Turned(_))
    }
}

/// No turn may begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitReached {
    /// Which limit.
    pub cause: Cause,
}

/// A turn is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turned {
    /// Counts the turns of the run, from 1; those that were cut off too. Names its files.
    pub number: u32,
    /// Who worked.
    pub role: String,
    /// How it ended.
    pub end: TurnEnd,
    /// What the agent said, without the markers.
    pub answer: Text,
    /// The markers that were read out of its text, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<Marked>,
    /// The session, where the CLI named it.
    pub session: Option<String>,
    /// Tokens by model; empty where the CLI did not say.
    pub usage: Vec<ModelUsage>,
    /// What the CLI says that it cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// Tools that the agent was not allowed to use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
    /// Files that the turn created, changed or removed and that the role may touch.
    pub changed: Vec<String>,
    /// Those of `changed` that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// Files that the role may not touch; they were restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_back: Vec<String>,
    /// How long it took.
    pub elapsed_ms: u64,
    /// When it was over, RFC 3339.
    pub at: String,
}

/// How a turn ended, and what may be done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// A stable kebab-case code.
    #[serde(rename = "end")]
    pub how: String,
    /// Reads on from "the agent …".
    pub said: String,
    /// What to do.
    pub then: TurnAdvice,
}

/// What may be done about the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnAdvice {
    /// It ended well.
    Use,
    /// The same turn may well succeed when it is tried again at once.
    Retry,
    /// A fresh session is needed.
    Renew,
    /// Nothing can be asked before this moment, in seconds since 1970 (UTC).
    WaitUntil(u64),
    /// A person stopped it, or the harness was killed in it. It is made again, and does not count
    /// as a try.
    Repeat,
    /// The run has used what it may.
    Limit(Cause),
    /// Trying again is of no use.
    Stop,
}

impl TurnEnd {
    /// Whether it ended well.
    pub fn is_ok(&self) -> bool {
        self.then == TurnAdvice::Use
    }
}

/// Reads on from "the agent …".
impl fmt::Display for TurnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

/// A marker in an agent's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marked {
    /// Its name.
    pub name: String,
    /// What it holds, trimmed.
    pub content: String,
}

/// A tool that an agent was not allowed to use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool.
    pub tool: String,
    /// What for, in one short line.
    pub argument: Option<String>,
}

/// A turn is about to begin. Noted first, so that one whose end never came is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnBegins {
    /// Which turn.
    pub number: u32,
    /// Who works.
    pub role: String,
    /// What is asked.
    pub prompt: Stored,
    /// When, RFC 3339.
    pub at: String,
    /// The request, which a harness that was killed has not answered.
    pub request: Value,
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

/// A command line of the user is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename = "shell-ran")]
pub struct ShellRan {
    /// Counts the lines of the run, from 1. Names its file.
    pub number: u32,
    /// What it was for.
    pub name: String,
    /// How it ended.
    pub ended: Ended,
    /// What it printed.
    pub output: Text,
    /// How long it took.
    pub elapsed_ms: u64,
}

impl Answer for ShellRan {
    fn outputs_mut(&mut self) -> Vec<&mut Text> {
        vec![&mut self.output]
    }
}

/// Commit everything that differs in a repository. There must be something to commit.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct CommitAll<P: Project> {
    /// Where.
    pub repository: P::Repository,
    /// The message.
    pub message: String,
}

impl<P: Project> Request for CommitAll<P> {
    const KIND: &'static str = "commit-all";
    type Answer = CommitAnswer;
}

/// Check what is not committed in a repository, before anything is changed.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Survey<P: Project> {
    /// Where.
    pub repository: P::Repository,
}

impl<P: Project> Request for Survey<P> {
    const KIND: &'static str = "survey";
    type Answer = Surveyed;
}

/// What a repository holds that is not committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename = "surveyed")]
pub struct Surveyed {
    /// Where.
    pub repository: String,
    /// The commit that is checked out; none in a repository without commits.
    pub head: Option<String>,
    /// What differs from it.
    pub uncommitted: Vec<Uncommitted>,
}

impl Answer for Surveyed {}

/// A file that is not committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncommitted {
    /// Relative to the repository's folder.
    pub path: String,
    /// SHA-256 of its content in hex; none if it is gone.
    pub sha256: Option<String>,
}

/// Commit what has changed, if anything has.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Checkpoint<P: Project> {
    /// Where.
    pub repository: P::Repository,
    /// The message.
    pub message: String,
    /// Left out as long as they are what they were.
    #[serde(serialize_with = "digest_json")]
    pub spare: Vec<Uncommitted>,
}

impl<P: Project> Request for Checkpoint<P> {
    const KIND: &'static str = "checkpoint";
    type Answer = Checkpointed;
}

/// What came of a checkpoint. That git fails is an answer: it does not stop a run (S4 §Auto-Commit).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[serde(tag = "checkpoint", rename_all = "kebab-case")]
pub enum CheckpointResult {
    /// There is one.
    Made {
        /// Its hash.
        commit: String,
    },
    /// Nothing had changed.
    Nothing,
    /// Git failed.
    Failed {
        /// Why.
        error: String,
    },
}

/// Let time pass.
#[derive(Debug, Clone, Serialize)]
pub struct Wait {
    /// Until this moment, in seconds since 1970 (UTC), but no longer than eight days.
    pub until_unix: u64,
    /// And no less than this many seconds, should it have passed already.
    pub at_least_secs: u32,
}

impl Request for Wait {
    const KIND: &'static str = "wait";
    type Answer = Waited;
}

/// A moment has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename = "waited")]
pub struct Waited {
    /// Which, in seconds since 1970 (UTC).
    pub until_unix: u64,
}

impl Answer for Waited {}

/// Write something that only the loop knows into the journal, for whoever watches.
#[derive(Debug, Clone, Serialize)]
pub struct Announce(pub Value);

impl Request for Announce {
    const KIND: &'static str = "announce";
    type Answer = Announced;
}

/// Something that only the loop knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename = "announced")]
pub struct Announced {
    /// What.
    pub event: Value,
}

impl Answer for Announced {}

/// A file in one of the loop's places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct At<P> {
    /// The place.
    pub place: P,
    /// The file, relative to it.
    pub file: String,
}

impl<P> At<P> {
    /// `file` in `place`.
    pub fn new(place: P, file: impl Into<String>) -> Self {
        Self { place, file: file.into() }
    }
}

/// Such a file as the journal names it.
pub type Place = At<String>;

/// Read a file.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Read<P: Project>(pub At<P::Place>);

impl<P: Project> Request for Read<P> {
    const KIND: &'static str = "read";
    type Answer = WasRead;
}

/// A file's content, or that it is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename = "was-read")]
pub struct WasRead {
    /// Which.
    pub place: Place,
    /// The content.
    pub text: Option<Text>,
    /// Whether something is there that is not a regular file of a length that is read: a symlink, a
    /// folder, a pipe.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub odd: bool,
}

impl Answer for WasRead {
    fn texts_mut(&mut self) -> Vec<&mut Text> {
        self.text.iter_mut().collect()
    }
}

/// Write a whole file.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Replace<P: Project> {
    /// Which.
    pub at: At<P::Place>,
    /// Its new content.
    #[serde(serialize_with = "digest")]
    pub text: Arc<str>,
}

impl<P: Project> Request for Replace<P> {
    const KIND: &'static str = "replace";
    type Answer = Wrote;
}

/// Add lines to the end of a file, unless they are its end already. They tell what has happened, so
/// Ctrl-C does not keep them out.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Append<P: Project> {
    /// Which.
    pub at: At<P::Place>,
    /// What it begins with if it is new.
    pub head: &'static str,
    /// The lines.
    pub text: String,
}

impl<P: Project> Request for Append<P> {
    const KIND: &'static str = "append";
    type Answer = Wrote;
}

/// Remove a file. It is not an error that it is not there.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Delete<P: Project>(pub At<P::Place>);

impl<P: Project> Request for Delete<P> {
    const KIND: &'static str = "delete";
    type Answer = Wrote;
}

/// A file is as the request wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename = "wrote")]
pub struct Wrote {
    /// Which.
    pub place: Place,
}

impl Answer for Wrote {}
