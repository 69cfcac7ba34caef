//! The inputs of a run.

use code_commit_engine::Agents;
use serde::{Deserialize, Serialize};

/// The inputs of a run; the same in all of its iterations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// The session, a `UUIDv7`.
    pub id: String,
    /// What the person asked for.
    pub focus: String,
    /// The folder with the specs.
    pub specs: String,
    /// The maximum number of iterations.
    pub max_iterations: u32,
    /// The maximum number of implementing turns in an iteration. Every command sets it anew.
    #[serde(default)]
    pub max_turns: u64,
    /// The user's command line that runs after planning.
    pub setup: Option<String>,
    /// The user's command line that runs before implementing and reviewing.
    pub check: Option<String>,
    /// Whether tasks are committed, and what each commit contains.
    pub commit: Option<CommitScope>,
    /// Who else works where the first agent cannot.
    #[serde(default, skip_serializing_if = "Agents::is_one")]
    pub agents: Agents,
    /// A person's review, which the first plan has to address (S4 §Planning Agent: automated or
    /// manual).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
}

impl Inputs {
    /// The defaults of a project without configuration.
    pub fn new(id: impl Into<String>, focus: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            focus: focus.into(),
            specs: ".specs".to_owned(),
            max_iterations: 10,
            max_turns: 100,
            setup: None,
            check: None,
            commit: None,
            agents: Agents::default(),
            review: None,
        }
    }
}

/// What a checkpoint commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommitScope {
    /// All uncommitted changes.
    All,
    /// All of them, except what a person had not committed before the run and nobody has touched
    /// since.
    Run,
}
