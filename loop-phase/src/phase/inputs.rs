//! The inputs of a phase.

use std::sync::Arc;

use crate::Role;

/// The inputs of a phase; the same in all of its iterations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// Which phase.
    pub phase: u32,
    /// Every phase with a spec, in order.
    pub specs: Vec<PhaseSpec>,
    /// The person's description of the project.
    pub project: Option<Arc<str>>,
    /// The builder.
    pub builder: RoleInputs,
    /// The verifier.
    pub verifier: RoleInputs,
    /// The limits of the phase.
    pub limits: Limits,
    /// Where it begins.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseSpec {
    /// Its number.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// The whole file.
    pub text: Arc<str>,
    /// Whether it has passed.
    pub completed: bool,
    /// SHA-256 over the specs up to this one, in hex: what a pass is bound to.
    pub specs_sha256: String,
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

/// The limits of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of verifications.
    pub iterations: u32,
    /// How often a turn that ends badly is tried.
    pub tries: u32,
}

impl Default for Limits {
    /// Five verifications (S3 §The Loop); a turn that ends badly is tried once more.
    fn default() -> Self {
        Self { iterations: 5, tries: 2 }
    }
}

/// Where a phase begins: at its first iteration, or where an earlier harness stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// The iteration, from 1; 0 counts as 1.
    pub iteration: u32,
    /// Whether the builder's turn of that iteration is done.
    pub builder_done: bool,
    /// The current `failed_specs.md`.
    pub failures: Option<Arc<str>>,
}
