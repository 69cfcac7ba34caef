//! The requests of the loop of work orders (S2) besides a model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Answer, Changed, Durability, Ended, Problem, Reply, Request, Stored, digest};

/// The answer to a request that may be impossible to perform, for a reason that neither the model
/// nor the project caused. The loop then ends the run, so that the tree is restored and there is a
/// summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Tried<A> {
    /// It was done.
    Done(A),
    /// It was not.
    Broke(Broke),
}

impl<A> Tried<A> {
    /// For `?`.
    ///
    /// # Errors
    ///
    /// What broke.
    pub fn done(self) -> Result<A, Broke> {
        match self {
            Self::Done(answer) => Ok(answer),
            Self::Broke(broke) => Err(broke),
        }
    }
}

impl<A: Answer> Answer for Tried<A> {
    fn durability(&self) -> Durability {
        match self {
            Self::Done(answer) => answer.durability(),
            Self::Broke(_) => Durability::Later,
        }
    }
}

/// Something could not be performed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "broke")]
pub struct Broke {
    /// The error and its causes.
    pub message: String,
}

/// Read the clock.
#[derive(Debug, Clone, Serialize)]
pub struct Stamp;

impl Request for Stamp {
    const KIND: &'static str = "stamp";
    type Answer = Stamped;
}

/// The current time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "stamped")]
pub struct Stamped {
    /// UTC, RFC 3339.
    pub at: String,
}

impl Answer for Stamped {}

/// Check which files exist.
#[derive(Debug, Clone, Serialize)]
pub struct Look {
    /// The conditions to check.
    pub conditions: Vec<Condition>,
}

impl Request for Look {
    const KIND: &'static str = "look";
    type Answer = Tried<Looked>;
}

/// What has to hold before or after the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// A regular file is there.
    FileExists(String),
    /// Nothing is there.
    FileAbsent(String),
}

/// Conditions were checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "looked")]
pub struct Looked {
    /// Those that do not hold.
    pub failed: Vec<Condition>,
}

impl Answer for Looked {}

/// Read the reply as a proposal, judge every path, write all of it or nothing.
#[derive(Debug, Clone, Serialize)]
pub struct Write {
    /// The attempt.
    pub attempt: u32,
    /// What the model answered.
    pub reply: Reply,
    /// Files that the prompt showed whole. Only they may be edited.
    pub shown_whole: Vec<String>,
    /// Files that the prompt showed only in part. They may not be replaced.
    pub shown_in_part: Vec<String>,
}

impl Request for Write {
    const KIND: &'static str = "write";
    const SUBJECT: &'static str = "the reply";
    type Answer = Tried<WriteAnswer>;

    fn round(&self) -> Option<u32> {
        Some(self.attempt)
    }

    fn text(&self) -> Option<&str> {
        Some(&self.reply.text)
    }
}

/// The answer to a [`Write`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum WriteAnswer {
    /// The proposal is on disk, all of it.
    Written(Written),
    /// Nothing of the reply is on disk.
    Refused(Refused),
}

impl Answer for WriteAnswer {
    fn durability(&self) -> Durability {
        match self {
            Self::Written(_) => Durability::Now,
            Self::Refused(_) => Durability::Later,
        }
    }
}

/// A proposal that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Written {
    /// The attempt.
    pub attempt: u32,
    /// The files that it names, normalized.
    pub touched: Vec<String>,
    /// What became of them.
    pub changes: Vec<Changed>,
    /// Warnings for a person. None of them stopped the change.
    pub warnings: Vec<Problem>,
    /// Whether `scripts/verify.sh` is now a file.
    pub verify_script: bool,
}

/// A reply that was not written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Refused {
    /// The attempt.
    pub attempt: u32,
    /// Why, in one word.
    pub why: WhyRefused,
    /// The files that it names, if they could be read.
    pub touched: Vec<String>,
    /// Everything that is wrong with it.
    pub problems: Vec<Problem>,
}

/// Why a reply was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WhyRefused {
    /// It is not a proposal.
    Unusable,
    /// It names a file that it may not write.
    OutOfScope,
    /// It was made for another version of a file.
    Stale,
    /// The system refused to write it; nothing of it is on disk.
    NotWritten,
}

/// Run a command at the root.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// The beginning of its logs' names: `LOG_stdout.txt` and `LOG_stderr.txt`.
    pub log: String,
    /// Program and arguments; never a shell line.
    pub argv: Vec<String>,
}

impl Request for Run {
    const KIND: &'static str = "run";
    const SUBJECT: &'static str = "the command";
    type Answer = Tried<Ran>;
}

/// A command ran, or could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "ran")]
#[expect(missing_docs, reason = "the rest is what its name says")]
pub struct Ran {
    /// The beginning of its logs' names.
    pub log: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    pub ended: Ended,
    /// Whether it changed files that it may not change. Then it has failed, whatever its exit
    /// code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seal_broken: bool,
    pub stdout: Tail,
    pub stderr: Tail,
    pub elapsed_ms: u64,
}

impl Ran {
    /// Whether it exited with 0 and did not change files that it may not change.
    pub fn passed(&self) -> bool {
        self.ended == Ended::Exited(0) && !self.seal_broken
    }
}

impl Answer for Ran {}

/// The end of what a command wrote to one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tail {
    /// The file with all of it.
    pub file: String,
    /// Its last 200 lines or 8,000 characters, whichever is shorter (S2 §6.4).
    pub text: String,
}

/// Restore the tree as it was before the first attempt.
#[derive(Debug, Clone, Serialize)]
pub struct RollBack;

impl Request for RollBack {
    const KIND: &'static str = "roll-back";
    type Answer = RolledBack;
}

/// Code of the warning that not all ignored files are as they were.
pub const IGNORED_FILES: &str = "ignored-files";

/// The tree is as it was before the first attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "rolled-back")]
pub struct RolledBack {
    /// Warnings for a person: what else was there, and which ignored files differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Problem>,
}

impl Answer for RolledBack {
    fn durability(&self) -> Durability {
        Durability::Now
    }
}

/// Store an artifact in the run folder.
#[derive(Debug, Clone, Serialize)]
pub struct Keep {
    /// Its file.
    pub file: String,
    /// Its content.
    #[serde(serialize_with = "digest")]
    pub text: Arc<str>,
}

impl Request for Keep {
    const KIND: &'static str = "keep";
    const SUBJECT: &'static str = "an artifact";
    type Answer = Kept;

    fn text(&self) -> Option<&str> {
        Some(&self.text)
    }
}

/// An artifact is in the run folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "kept")]
pub struct Kept {
    /// Its file.
    #[serde(flatten)]
    pub stored: Stored,
}

impl Answer for Kept {}

/// Put back what the commands have changed besides the files that the order names, then hash the tree.
#[derive(Debug, Clone, Serialize)]
pub struct Measure;

impl Request for Measure {
    const KIND: &'static str = "measure";
    type Answer = Tried<Measured>;
}

/// The tree that passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "measured")]
pub struct Measured {
    /// SHA-256 in hex.
    pub tree_sha256: String,
    /// What the commands have changed of the files that the order names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Changed>,
    /// What else they had changed: it is as it was before the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_back: Vec<String>,
}

impl Answer for Measured {}

/// Commit only what the run changed. Failing to commit is an answer: the run has passed, and a
/// person can commit.
#[derive(Debug, Clone, Serialize)]
pub struct Commit {
    /// Names the run, so that the commit of a killed harness is found again. In a commit loop the world adds that line.
    pub message: String,
}

impl Request for Commit {
    const KIND: &'static str = "commit";
    type Answer = CommitAnswer;
}

/// The answer to a [`Commit`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum CommitAnswer {
    /// The changes are committed, or there were none.
    Committed(Committed),
    /// The changes are in place, but they are not committed.
    NotCommitted(NotCommitted),
}

impl Answer for CommitAnswer {}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Committed {
    /// Its repository, if the loop has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The message, if the loop commits to several repositories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Its hash in hex; `None` if the run changed nothing.
    pub commit: Option<String>,
}

/// Git refused, or a file is not what was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotCommitted {
    /// Why.
    pub message: String,
    /// The file that is not what was built, relative to the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
}
