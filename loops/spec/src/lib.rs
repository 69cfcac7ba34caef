#![doc = include_str!("../README.md")]

mod event;
mod files;
mod focus;
mod inputs;
mod judge;
mod marker;
mod run;
pub mod watch;

pub use event::PhaseEvent;
pub use files::{BACKLOG, Files, ISSUES, MEMORY, STORE, TBD, WIP};
pub use focus::asks_to_change;
pub use inputs::{CommitScope, Inputs};
pub use marker::{Role, SPEC_ISSUE};
pub use run::{LOG, first_prompt, spec, still_holds};

use code_commit_engine::{AgentLoop, Named};
use serde::Serialize;

/// The names that the requests of a run use.
#[derive(Debug, Clone)]
pub struct Specs;

impl AgentLoop for Specs {
    type Role = Role;
    type Place = Place;
    type Repository = Repository;
}

/// A folder that the loop asks for: two of the dot folder, and what verdicts are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Session files.
    Wip,
    /// Spec issues.
    SpecIssues,
    /// The specs.
    Specs,
    /// The whole project.
    Project,
}

impl Named for Place {
    fn name(self) -> &'static str {
        match self {
            Self::Wip => WIP,
            Self::SpecIssues => ISSUES,
            Self::Specs => "specs",
            Self::Project => PROJECT,
        }
    }
}

/// A repository that commits go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Repository {
    /// The project's own.
    Project,
}

impl Named for Repository {
    fn name(self) -> &'static str {
        PROJECT
    }
}

/// The name of the only repository of a run.
pub const PROJECT: &str = "project";
/// The name of the user's command line that runs after planning.
pub const SETUP: &str = "setup";
/// The name of the user's command line that runs before implementing and reviewing.
pub(crate) const CHECK: &str = "check";
