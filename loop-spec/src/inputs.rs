//! What a run is about.

use serde::{Deserialize, Serialize};

/// What a run is about; the same over all of its iterations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// The session, a `UUIDv7`.
    pub id: String,
    /// What the person asked for.
    pub focus: String,
    /// The folder with the specs.
    pub specs: String,
    /// Iterations at most.
    pub max_iterations: u32,
    /// The user's line after planning.
    pub setup: Option<String>,
    /// The user's line before implementing and reviewing.
    pub check: Option<String>,
    /// Whether each task is committed, and what of.
    pub commit: Option<CommitScope>,
    /// What to do when a quota is used up and it is known until when.
    pub patience: Patience,
    /// A person's review, which the first plan answers (S4 §Planning Agent: automated or manual).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
}

impl Inputs {
    /// With the defaults of a project without configuration.
    pub fn new(id: impl Into<String>, focus: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            focus: focus.into(),
            specs: ".specs".to_owned(),
            max_iterations: 10,
            setup: None,
            check: None,
            commit: None,
            patience: Patience::Stop,
            review: None,
        }
    }
}

/// What a checkpoint commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommitScope {
    /// Everything that differs.
    All,
    /// Not what a person had not committed before the run and nobody has touched since.
    Run,
}

/// What to do when a quota is used up and it is known until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Patience {
    /// The run ends.
    Stop,
    /// The run waits.
    Wait,
}
