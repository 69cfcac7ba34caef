//! The vocabulary of work orders (S2): what their loop asks for, and what comes of it.

mod baseline;
mod command;
mod commit;
mod executor;
mod ignored;
mod left;
mod replay;

use std::sync::Arc;

use apply::Changed;
use logging::{Durability, Stored};
use runner::Ended;
use serde::{Deserialize, Serialize};

use crate::executor::trial::WALL;
use crate::record::Facts;
use crate::{Answer, CallFact, OnTree, Outcome, Problem, Text};

pub use baseline::Baseline;
pub use command::CommandSettings;
pub use executor::{OrderExecutor, VERIFY_SCRIPT};
pub use ignored::{IGNORED_FILES, Ignored};
pub use left::Left;
pub use replay::replay_order;

/// One thing to be done. Attempts are counted from 1; names of files are relative to the run folder.
#[derive(Debug, Clone, PartialEq)]
pub enum OrderStep {
    /// Say what time it is. Ends in [`OrderFact::Stamped`].
    Stamp,
    /// Look whether files are there, or are not. Ends in [`OrderFact::Looked`].
    Look {
        /// What has to be so.
        conditions: Vec<Condition>,
    },
    /// Send the prompt to the model. Ends in an answer or in none.
    Ask {
        /// Which attempt.
        attempt: u32,
        /// The whole prompt.
        prompt: Arc<str>,
    },
    /// Read the reply as a proposal, judge every path, write all of it or nothing. Ends in [`OrderFact::Written`] or
    /// [`OrderFact::Refused`].
    Write {
        /// Which attempt.
        attempt: u32,
        /// What the model answered.
        answer: Answer,
        /// Files that the prompt showed in part only: they may not be replaced.
        shown_in_part: Vec<String>,
    },
    /// Run a command at the root. Ends in [`OrderFact::Ran`].
    Run {
        /// `LOG_stdout.txt` and `LOG_stderr.txt` take what it prints.
        log: String,
        /// Program and arguments; never a shell line.
        argv: Vec<String>,
    },
    /// Put the tree back as it was before the first attempt. Ends in [`OrderFact::RolledBack`].
    RollBack,
    /// Keep an artifact. Ends in [`OrderFact::Kept`].
    Keep {
        /// Its file.
        file: String,
        /// Its content.
        text: Arc<str>,
    },
    /// Hash the tree. Ends in [`OrderFact::Measured`].
    Measure,
    /// Commit what the run has changed. Ends in [`OrderFact::Committed`] or [`OrderFact::NotCommitted`].
    Commit {
        /// Names the run, so that a commit whose harness was killed is found again.
        message: String,
    },
}

/// Something that has to be so before or after the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// A regular file is there.
    FileExists(String),
    /// Nothing is there.
    FileAbsent(String),
}

/// Why a reply was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyRefused {
    /// It is no proposal.
    Unusable,
    /// It names a file that it may not write.
    OutOfScope,
    /// It was made for another content of a file.
    Stale,
    /// The system did not let it be written; nothing of it is on disk.
    NotWritten,
}

/// The end of what one stream of a command brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// The file with all of it.
    pub file: String,
    /// Its last 200 lines, or its last 8,000 characters where those are fewer (S2 §6.4).
    pub text: String,
}

/// One thing that happened. The journal holds them in order; a loop fed with them again comes to the same decisions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum OrderFact {
    /// What time it was, UTC, RFC 3339.
    Stamped {
        /// Then.
        at: String,
    },
    /// Conditions were looked at.
    Looked {
        /// Those that are not so.
        failed: Vec<Condition>,
    },
    /// The proposal is on disk, all of it.
    Written {
        /// Which attempt.
        attempt: u32,
        /// The files that it names, normalized.
        touched: Vec<String>,
        /// What became of them.
        changes: Vec<Changed>,
        /// What a person should look at; nothing of it stopped the change.
        warnings: Vec<Problem>,
        /// Whether `scripts/verify.sh` is a file now.
        verify_script: bool,
    },
    /// Nothing of the reply is on disk.
    Refused {
        /// Which attempt.
        attempt: u32,
        /// In one word.
        why: WhyRefused,
        /// The files that it names, as far as they could be read.
        touched: Vec<String>,
        /// Everything that is wrong with it.
        problems: Vec<Problem>,
    },
    /// A command ran, or could not be started.
    Ran {
        /// The beginning of the names of its files.
        log: String,
        /// Program and arguments.
        argv: Vec<String>,
        /// How it ended.
        ended: Ended,
        /// Whether it changed, twice, what it may not change: then it has failed, whatever its exit code.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        seal_broken: bool,
        /// Its standard output.
        stdout: Tail,
        /// Its standard error.
        stderr: Tail,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// The run goes on, and a person should know this.
    Warned {
        /// What.
        warning: Problem,
    },
    /// The tree is as it was before the first attempt.
    RolledBack {
        /// What a person should know: what else stood there, and what of the ignored files is not as it was.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<Problem>,
    },
    /// An artifact is in the run folder.
    Kept {
        /// Its file.
        #[serde(flatten)]
        stored: Stored,
    },
    /// The tree's hash.
    Measured {
        /// SHA-256 in hex.
        tree_sha256: String,
    },
    /// The changes are committed.
    Committed {
        /// The commit, in hex; none where the run has changed nothing.
        commit: Option<String>,
    },
    /// The changes are in place, but git refused to commit them.
    NotCommitted {
        /// Why.
        message: String,
    },
    /// A step could not be done at all, for a reason that lies neither with the model nor with the project.
    Broke {
        /// The error and its causes.
        message: String,
    },
    /// The run was stopped or killed and goes on; the tree was put back first.
    Resumed,
    /// The run is over.
    Ended {
        /// How.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// Something about a model call.
    #[serde(untagged)]
    Call(CallFact),
}

impl OrderFact {
    /// Whether this is a command that passed: it exited with 0 and left alone what it may not change.
    pub fn is_passed_command(&self) -> bool {
        matches!(self, Self::Ran { ended: Ended::Exited(0), seal_broken: false, .. })
    }
}

impl From<CallFact> for OrderFact {
    fn from(fact: CallFact) -> Self {
        Self::Call(fact)
    }
}

impl Facts for OrderFact {
    fn ended(outcome: Outcome) -> Self {
        Self::Ended { outcome }
    }

    fn texts_mut(&mut self) -> Vec<&mut Text> {
        match self {
            Self::Call(fact) => fact.texts_mut(),
            Self::Stamped { .. }
            | Self::Looked { .. }
            | Self::Written { .. }
            | Self::Refused { .. }
            | Self::Ran { .. }
            | Self::Warned { .. }
            | Self::RolledBack { .. }
            | Self::Kept { .. }
            | Self::Measured { .. }
            | Self::Committed { .. }
            | Self::NotCommitted { .. }
            | Self::Broke { .. }
            | Self::Resumed
            | Self::Ended { .. } => Vec::new(),
        }
    }

    /// The run folder may lie in the tree, where a command could read what a hint tells of the world behind the wall.
    fn warned(warning: &Problem) -> Option<Self> {
        (warning.code != WALL).then(|| Self::Warned { warning: warning.clone() })
    }

    fn on_tree(&self) -> OnTree {
        if let Self::Written { attempt, changes, .. } = self {
            return OnTree::of_changes(*attempt, changes);
        }
        // What a run that was stopped had written is put back before it goes on, and its pre-images are removed.
        let is_as_before = matches!(self, Self::RolledBack { .. } | Self::Resumed);
        if is_as_before { OnTree::Restored } else { OnTree::Untouched }
    }

    fn durability(&self) -> Durability {
        match self {
            Self::Call(fact) => fact.durability(),
            Self::Written { .. } | Self::RolledBack { .. } => Durability::Synced,
            Self::Stamped { .. }
            | Self::Looked { .. }
            | Self::Refused { .. }
            | Self::Ran { .. }
            | Self::Warned { .. }
            | Self::Kept { .. }
            | Self::Measured { .. }
            | Self::Committed { .. }
            | Self::NotCommitted { .. }
            | Self::Broke { .. }
            | Self::Resumed
            | Self::Ended { .. } => Durability::Written,
        }
    }
}
