//! The inputs of a phase.

use std::collections::BTreeMap;
use std::sync::Arc;

use code_commit_engine::{Agents, Digest, HoldsFor};
use serde::{Deserialize, Serialize};

use crate::Role;

/// The inputs of a phase; the same in all of its iterations.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "those without are what their types say")]
pub struct Inputs {
    pub phase: u32,
    /// The person's description of the project.
    pub project: Option<Arc<str>>,
    pub builder: RoleInputs,
    pub verifier: RoleInputs,
    /// The maximum number of verifications (S3 §The Loop: 5).
    pub iterations: u32,
    pub start: Start,
}

impl Inputs {
    pub(super) fn role(&self, role: Role) -> &RoleInputs {
        match role {
            Role::Builder => &self.builder,
            Role::Verifier => &self.verifier,
        }
    }
}

/// A phase and its spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseSpec {
    /// Its number.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// The whole file.
    pub text: String,
    /// Whether it has passed.
    pub completed: bool,
}

/// What a pass of `phase` is bound to: SHA-256 over the specs up to it and the description of the project, in hex.
pub fn specs_sha256<'s>(
    specs: impl IntoIterator<Item = (u32, &'s str)>,
    project: Option<&str>,
    phase: u32,
) -> String {
    let up_to_it = specs.into_iter().filter(|(number, _)| *number <= phase);
    let lines = up_to_it.map(|(number, text)| format!("{number} {}\n", Digest::of(text).sha256));
    let project = project.map(|text| format!("project {}\n", Digest::of(text).sha256));
    Digest::of(&lines.chain(project).collect::<String>()).sha256
}

/// What decided: the verifier, and its tests if they are known.
pub fn decider(verifier: &str, tests: Option<&str>) -> String {
    tests.map_or_else(
        || verifier.to_owned(),
        |tests| Digest::of(&format!("{verifier} {tests}")).sha256,
    )
}

/// What a role is told about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleInputs {
    /// Its prompt, with the placeholders `<<PHASE>>` and `<<ITERATION>>`.
    pub prompt: Arc<str>,
    /// Its folder's path, as the role sees it.
    pub workspace: String,
    /// What `abl-cmd` runs for it: names and descriptions.
    pub commands: Vec<(String, String)>,
    /// The model that it is asked to use.
    pub model: String,
}

/// Where a phase begins: at its first iteration, or where an earlier harness stopped. Recorded with the run: one
/// that goes on begins there, too, and notices what has changed since.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The iteration, from 1; 0 counts as 1.
    pub iteration: u32,
    /// Whether the builder's turn of that iteration is done.
    pub builder_done: bool,
    /// The current `failed_specs.md`.
    pub failures: Option<String>,
    /// Every phase with a spec, in order.
    pub specs: Vec<PhaseSpec>,
    /// The identity of the folder with the specs when they were read.
    pub specs_identity: Option<String>,
    /// What the passes of completed phases hold for.
    pub passes: BTreeMap<u32, HoldsFor>,
    /// SHA-256 over what makes the verifier: its prompt and its commands.
    pub decider: String,
    /// The identities of the tests that decided them.
    #[serde(default)]
    pub tests: BTreeMap<u32, String>,
    /// Who else builds where the builder's first agent cannot.
    #[serde(default, skip_serializing_if = "Agents::is_one")]
    pub builder: Agents,
    /// Who else verifies where the verifier's first agent cannot.
    #[serde(default, skip_serializing_if = "Agents::is_one")]
    pub verifier: Agents,
}

impl Start {
    pub(super) fn agents(&self, role: Role) -> Agents {
        match role {
            Role::Builder => self.builder,
            Role::Verifier => self.verifier,
        }
    }
}
