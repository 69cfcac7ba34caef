#![doc = include_str!("../README.md")]

pub mod failed;
mod phase;
pub mod spec;
pub mod state;
pub mod tokens;

pub use phase::{Inputs, Limits, PhaseSpec, RoleInputs, Start, has_report, phase};

use engine::{Named, Project};
use serde::Serialize;

/// What the requests of a phase name.
#[derive(Debug, Clone)]
pub struct Phases;

impl Project for Phases {
    type Role = Role;
    type Place = Place;
    type Repository = Repository;
}

/// Who works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Writes code.
    Builder,
    /// Verifies it.
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
    /// That of the phases' own files.
    Abl,
    /// The tests.
    Tests,
}

impl Named for Place {
    fn name(self) -> &'static str {
        match self {
            Self::Abl => "abl",
            Self::Tests => "tests",
        }
    }
}

/// Where commits go.
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

/// What the verifier writes when a contract does not hold, in the tests folder.
pub const FAILED_SPECS: &str = "failed_specs.md";
/// Where the loop is, in the phases' folder.
pub const STATE: &str = "state.json";
/// What the turns have used, in the phases' folder.
pub const TOKENS: &str = "logs/tokens.csv";
/// What a role can see, in the phases' folder, as it was before the last turn.
pub(crate) const PROJECT_MAP: &str = "project_map.txt";

/// Where a role's reports go, in its own folder.
pub fn reports(role: &str) -> String {
    format!("{role}_reports/")
}
