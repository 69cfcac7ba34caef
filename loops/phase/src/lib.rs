#![doc = include_str!("../README.md")]

pub mod failed;
mod phase;
pub mod spec;
pub mod state;
pub mod tokens;

pub use phase::{
    Inputs, PhaseSpec, RoleInputs, Start, decider, first_prompt, phase, specs_changed, specs_sha256,
};

use code_commit_engine::{AgentLoop, Named};
use serde::Serialize;

/// The names that the requests of a phase use.
#[derive(Debug, Clone)]
pub struct Phases;

impl AgentLoop for Phases {
    type Role = Role;
    type Place = Place;
    type Repository = Repository;
}

/// Who works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Writes the code.
    Builder,
    /// Verifies the code.
    Verifier,
}

impl Named for Role {
    fn name(self) -> &'static str {
        match self {
            Self::Builder => "builder",
            Self::Verifier => "verifier",
        }
    }
}

/// A folder with files that the loop reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The folder of the phases' own files.
    Abl,
    /// The tests.
    Tests,
    /// The specs.
    Specs,
    /// The source.
    Src,
}

impl Named for Place {
    fn name(self) -> &'static str {
        match self {
            Self::Abl => "abl",
            Self::Tests => "tests",
            Self::Specs => "specs",
            Self::Src => "src",
        }
    }
}

/// A repository that commits go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Repository {
    /// The source.
    Src,
    /// The tests.
    Tests,
}

impl Named for Repository {
    fn name(self) -> &'static str {
        match self {
            Self::Src => "src",
            Self::Tests => "tests",
        }
    }
}

/// The verifier's list of contracts that do not hold, in the tests folder.
pub const FAILED_SPECS: &str = "failed_specs.md";
/// The state of the loop, in the phases' folder.
pub const STATE: &str = "state.json";
/// The tokens used by each turn, in the phases' folder.
pub const TOKENS: &str = "logs/tokens.csv";
/// The files that a role could see before the last turn, in the phases' folder.
pub(crate) const PROJECT_MAP: &str = "project_map.txt";

/// Where a role's reports go, in its own folder.
pub fn reports(role: &str) -> String {
    format!("{role}_reports/")
}
