//! What happened: the lines of the journal.

use apply::Changed;
use logging::Durability;
use runner::Ended;
use serde::{Deserialize, Serialize};

use crate::record::Facts;
use crate::{CallFact, OnTree, Outcome, Text};

/// One thing that happened in a run. The journal holds them in order; a loop fed with them again comes to the same decisions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Fact {
    /// The reply's changes are on disk, all of them.
    Applied {
        /// Which round.
        round: u32,
        /// Every file of the reply.
        changes: Vec<Changed>,
        /// What a person should look at; nothing of it stopped the change.
        warnings: Vec<Problem>,
        /// The reason, when the reply says that nothing has to change.
        no_change: Option<String>,
    },
    /// The reply could not be used; nothing of it is on disk.
    Rejected {
        /// Which round.
        round: u32,
        /// Everything that is wrong with it.
        problems: Vec<Problem>,
        /// The same for the model, in the place of the build's output: `N-build.txt`.
        report: Text,
    },
    /// The build ran.
    Built {
        /// Which round.
        round: u32,
        /// How it ended.
        ended: Ended,
        /// Whether it changed, twice, what decides whether it passes: it counts as failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        seal_broken: bool,
        /// Everything that it printed and its exit code, `N-build.txt`.
        output: Text,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// The run goes on, and a person should know this; it is about none of the reply's changes.
    Warned {
        /// What.
        warning: Problem,
    },
    /// The files that this run changed are as they were before it.
    Restored {
        /// Every file that was put back.
        paths: Vec<String>,
    },
    /// A person let a run go on that had ended because the model gave no answer.
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

impl Fact {
    /// Whether this is a build that passed: it exited with 0 and left alone what decides about it.
    pub fn is_passed_build(&self) -> bool {
        matches!(self, Self::Built { ended: Ended::Exited(0), seal_broken: false, .. })
    }
}

impl From<CallFact> for Fact {
    fn from(fact: CallFact) -> Self {
        Self::Call(fact)
    }
}

impl Facts for Fact {
    fn ended(outcome: Outcome) -> Self {
        Self::Ended { outcome }
    }

    fn texts_mut(&mut self) -> Vec<&mut Text> {
        match self {
            Self::Call(fact) => fact.texts_mut(),
            Self::Rejected { report, .. } => vec![report],
            Self::Built { .. }
            | Self::Applied { .. }
            | Self::Warned { .. }
            | Self::Restored { .. }
            | Self::Resumed
            | Self::Ended { .. } => Vec::new(),
        }
    }

    fn outputs_mut(&mut self) -> Vec<&mut Text> {
        if let Self::Built { output, .. } = self { vec![output] } else { Vec::new() }
    }

    /// The wall hides the record.
    fn warned(warning: &Problem) -> Option<Self> {
        Some(Self::Warned { warning: warning.clone() })
    }

    fn on_tree(&self) -> OnTree {
        if let Self::Applied { round, changes, .. } = self {
            return OnTree::of_changes(*round, changes);
        }
        if matches!(self, Self::Restored { .. }) { OnTree::Restored } else { OnTree::Untouched }
    }

    fn durability(&self) -> Durability {
        match self {
            Self::Call(fact) => fact.durability(),
            Self::Restored { .. } => Durability::Synced,
            // What was applied outlives a power cut in its own folder, where the next start finds it.
            Self::Applied { .. }
            | Self::Rejected { .. }
            | Self::Built { .. }
            | Self::Warned { .. }
            | Self::Resumed
            | Self::Ended { .. } => Durability::Written,
        }
    }
}

/// Something that is wrong with a reply, or worth a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A stable kebab-case code.
    pub code: String,
    /// The file that it is about, as the reply names it, escaped where it would not print.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line of the reply, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// One sentence.
    pub message: String,
}
