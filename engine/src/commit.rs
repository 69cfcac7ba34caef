//! The requests of the commit loops (S0, S1) besides a model: apply a reply, build, restore.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Answer, Changed, Durability, Ended, Problem, Reply, Request, Text};

/// The code of the warning that a reply changed a file which the build names.
pub const GRADER: &str = "grader";

/// The code of the warning that a line of a reply stands for code that it leaves out.
pub const PLACEHOLDER: &str = "placeholder";

/// The code of what is said of a file that a reply asks for in place of a change.
pub const NEEDED: &str = "file-needed";

/// Parse the reply, judge every path, write all of it or nothing.
#[derive(Debug, Clone, Serialize)]
pub struct Apply {
    /// The round.
    pub round: u32,
    /// What the model answered.
    pub reply: Reply,
    /// The files that the run has changed, each with the SHA-256 of the content that the model saw last; `None`
    /// for one that was removed. Only these files and those of the code may be edited.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<String, Option<String>>,
    /// Bytes of the files that the reply may ask for in place of a change; 0 if it may not.
    #[serde(skip_serializing_if = "is_zero")]
    pub need_bytes: u64,
}

impl Request for Apply {
    const KIND: &'static str = "apply";
    const SUBJECT: &'static str = "the reply";
    type Answer = ApplyAnswer;

    fn round(&self) -> Option<u32> {
        Some(self.round)
    }

    fn text(&self) -> Option<&str> {
        Some(&self.reply.text)
    }
}

/// The answer to an [`Apply`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum ApplyAnswer {
    /// The reply's changes are on disk, all of them.
    Applied(Applied),
    /// The reply was not used; nothing of it is on disk.
    Rejected(Rejected),
}

impl Answer for ApplyAnswer {
    fn texts_mut(&mut self) -> Vec<&mut Text> {
        match self {
            Self::Applied(applied) => applied
                .edited
                .iter_mut()
                .map(|file| &mut file.text)
                .collect(),
            Self::Rejected(rejected) => {
                let shown = rejected.shown.iter_mut().map(|file| &mut file.text);
                std::iter::once(&mut rejected.report).chain(shown).collect()
            }
        }
    }
}

/// A reply that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Applied {
    /// The round.
    pub round: u32,
    /// Every file of the reply.
    pub changes: Vec<Changed>,
    /// Warnings for a person. None of them stopped the change.
    pub warnings: Vec<Problem>,
    /// The whole new content of the files that the reply edits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<Present>,
    /// The reason, if the reply says that nothing has to change.
    pub no_change: Option<String>,
}

/// The present content of a file that the model knows in another state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Present {
    /// Its path.
    pub path: String,
    /// Its content.
    #[serde(flatten)]
    pub text: Text,
}

impl Present {
    /// Its path, and the hash of the content that is known.
    pub fn known(&self) -> (String, Option<String>) {
        (self.path.clone(), Some(self.text.stored.sha256.clone()))
    }
}

impl Applied {
    /// Whether every file is the same as before.
    pub fn changed_nothing(&self) -> bool {
        self.changes
            .iter()
            .all(|change| change.before_sha256 == change.after_sha256)
    }
}

/// A reply that was not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rejected {
    /// The round.
    pub round: u32,
    /// Everything that is wrong with it.
    pub problems: Vec<Problem>,
    /// The problems as text for the model, in place of build output.
    pub report: Text,
    /// Files that the reply asks for, or changes and that were shown only as outlines: the next prompt shows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<Present>,
}

/// Run the build.
#[derive(Debug, Clone, Serialize)]
pub struct Build {
    /// The round.
    pub round: u32,
}

impl Request for Build {
    const KIND: &'static str = "build";
    type Answer = Built;

    fn round(&self) -> Option<u32> {
        Some(self.round)
    }
}

/// The build ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "built")]
pub struct Built {
    /// The round.
    pub round: u32,
    /// How it ended.
    pub ended: Ended,
    /// Whether it changed files that decide whether it passes. Then it counts as failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seal_broken: bool,
    /// All of its output, and its exit code: `N-build.txt`. Of long output, memory holds both ends.
    pub output: Text,
    /// How long it took.
    pub elapsed_ms: u64,
    /// The files that it changed besides what the rules of git ignore. `undo` takes them back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Changed>,
    /// The content that it gave to text files that the model was shown, or has written itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub present: Vec<Present>,
    /// What it changed and may not: it is as it was before the build.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_back: Vec<String>,
    /// The size of the new and changed files that the rules of git ignore. 0 if it is unknown, which it is
    /// where the build worked in the tree itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ignored_bytes: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Built {
    /// Whether it exited with 0 and did not change files that decide about it.
    pub fn passed(&self) -> bool {
        self.ended == Ended::Exited(0) && !self.seal_broken
    }
}

impl Answer for Built {
    fn texts_mut(&mut self) -> Vec<&mut Text> {
        self.present.iter_mut().map(|file| &mut file.text).collect()
    }

    fn outputs_mut(&mut self) -> Vec<&mut Text> {
        vec![&mut self.output]
    }
}

/// Restore every file that the run changed.
#[derive(Debug, Clone, Serialize)]
pub struct Restore;

impl Request for Restore {
    const KIND: &'static str = "restore";
    type Answer = Restored;
}

/// The files that the run changed are as they were before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "restored")]
pub struct Restored {
    /// Every file that was restored.
    pub paths: Vec<String>,
}

impl Answer for Restored {
    fn durability(&self) -> Durability {
        Durability::Now
    }
}
