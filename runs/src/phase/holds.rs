//! What a pass holds for: specs, verifier and source, as they were then and as they are now.

use std::path::Path;

use anyhow::Context as _;
use code_commit_engine::HoldsFor;
use code_commit_logging::sha256_hex;
use code_commit_loop_phase::specs_sha256;
use code_commit_loop_phase::state::{Stale, State, Status};
use code_commit_names::ours::ABL;

use crate::exit::Failure;
use crate::phase::folders::read;
use crate::phase::project::Project;

impl Project {
    /// Whether a phase has passed, for the specs and by the verifier of now. A commit that says so proves nothing:
    /// anyone may have made it.
    pub(crate) fn has_passed(&self, phase: u32) -> bool {
        self.state.has_passed(phase, &self.now(phase))
    }

    /// Passes that do not hold any more, and why.
    pub(crate) fn stale(&self) -> impl Iterator<Item = (u32, Stale)> {
        let numbers = self.specs.keys().copied();
        numbers.filter_map(|phase| Some((phase, self.state.stale(phase, &self.now(phase))?)))
    }

    /// What a pass of this phase would hold for now, without the source.
    pub(crate) fn now(&self, phase: u32) -> HoldsFor {
        let specs = self.specs.iter().map(|(number, text)| (*number, text.as_str()));
        HoldsFor {
            tree: None,
            specification: Some(specs_sha256(specs, phase)),
            decider: Some(self.decider.clone()),
        }
    }

    /// The identity of the source.
    pub(crate) fn source(&self) -> Result<Option<String>, Failure> {
        let source = code_commit_perform::identity(
            self.src(),
            None,
            &self.never_committed(self.src()),
            code_commit_dir::NEVER,
        );
        Ok(source.with_context(|| format!("cannot read {}", self.src().display()))?)
    }

    /// Whether the phase is stuck, and everything is as it was then: asking again could only cost.
    pub(crate) fn is_stuck(&self, phase: u32) -> Result<bool, Failure> {
        let State { current, stuck_on, .. } = &self.state;
        let Some(then) =
            stuck_on.as_ref().filter(|_| current.phase == Some(phase) && current.status == Status::Stuck)
        else {
            return Ok(false);
        };
        Ok(*then == HoldsFor { tree: self.source()?, ..self.now(phase) })
    }

    /// Whether the source is another one than the newest pass was given for.
    pub(crate) fn has_moved_on(&self) -> Result<Option<u32>, Failure> {
        let newest = self.state.phases_completed.last().copied();
        let Some((phase, pass)) = newest.and_then(|phase| Some((phase, self.state.passes.get(&phase)?)))
        else {
            return Ok(None);
        };
        Ok(if pass.tree.is_some() && pass.tree != self.source()? { Some(phase) } else { None })
    }
}

/// What makes the verifier: its prompt, unless that is the built-in one, and its commands.
pub(super) fn decider(prompt: Option<&str>, config: &code_commit_settings::phase::Config) -> String {
    let commands = serde_json::to_string(&config.verifier_commands).unwrap_or_default();
    sha256_hex(format!("{}\0{commands}", prompt.unwrap_or_default()).as_bytes())
}

/// What the end of a phase holds for, as the loop has just noted it.
pub(super) fn verdict(root: &Path, phase: u32) -> HoldsFor {
    let state = read(&root.join(ABL).join(code_commit_loop_phase::STATE)).ok().flatten();
    let state: State = state.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    match state.current.status {
        Status::Completed => state.passes.get(&phase).cloned().unwrap_or_default(),
        Status::Stuck => state.stuck_on.unwrap_or_default(),
        Status::Clean | Status::Building | Status::Verifying | Status::ContractsFailed => HoldsFor::default(),
    }
}
