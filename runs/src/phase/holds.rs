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

    /// Why the pass of a phase does not hold any more, without source and tests.
    pub(crate) fn stale(&self, phase: u32) -> Option<Stale> {
        self.state.stale(phase, &self.now(phase))
    }

    /// Whether source or tests have changed since a phase passed that has passed for the specs of now.
    pub(crate) fn moved_on(&self, phase: u32) -> Result<Option<Stale>, Failure> {
        if !self.has_passed(phase) {
            return Ok(None);
        }
        Ok(self.state.moved_on(
            phase,
            self.source()?.as_deref(),
            self.deciding_tests()?.as_deref(),
        ))
    }

    /// What the pass of this phase would hold for now, without the source. One of an older version names neither
    /// the tests nor the description of the project.
    fn now(&self, phase: u32) -> HoldsFor {
        let tests = self.state.tests.get(&phase);
        self.holding(
            phase,
            tests.and(self.description.as_deref()),
            tests.map(String::as_str),
        )
    }

    pub(super) fn holding(
        &self,
        phase: u32,
        project: Option<&str>,
        tests: Option<&str>,
    ) -> HoldsFor {
        let specs = self
            .specs
            .iter()
            .map(|(number, text)| (*number, text.as_str()));
        HoldsFor {
            tree: None,
            specification: Some(specs_sha256(specs, project, phase)),
            decider: Some(code_commit_loop_phase::decider(&self.decider, tests)),
        }
    }

    /// The identity of the tests, without the reports on them.
    pub(crate) fn deciding_tests(&self) -> Result<Option<String>, Failure> {
        identity(self.tests(), &self.no_tests())
    }

    /// The identity of the source.
    pub(crate) fn source(&self) -> Result<Option<String>, Failure> {
        identity(self.src(), &self.never_committed(self.src()))
    }

    /// Whether the phase is stuck, and everything is as it was then: asking again could only cost.
    pub(crate) fn is_stuck(&self, phase: u32) -> Result<bool, Failure> {
        let State {
            current, stuck_on, ..
        } = &self.state;
        let Some(then) = stuck_on
            .as_ref()
            .filter(|_| current.phase == Some(phase) && current.status == Status::Stuck)
        else {
            return Ok(false);
        };
        let now = self.holding(phase, self.description.as_deref(), None);
        Ok(*then
            == HoldsFor {
                tree: self.source()?,
                ..now
            })
    }
}

fn identity(folder: &Path, without: &[String]) -> Result<Option<String>, Failure> {
    let identity = code_commit_perform::identity(folder, None, without, code_commit_dir::NEVER);
    Ok(identity.with_context(|| format!("cannot read {}", folder.display()))?)
}

/// What makes the verifier: its prompt, unless that is the built-in one, and its commands.
pub(super) fn decider(
    prompt: Option<&str>,
    config: &code_commit_settings::phase::Config,
) -> String {
    let commands = serde_json::to_string(&config.verifier_commands).unwrap_or_default();
    sha256_hex(format!("{}\0{commands}", prompt.unwrap_or_default()).as_bytes())
}

/// What the end of a phase holds for, as the loop has just noted it.
pub(super) fn verdict(root: &Path, phase: u32) -> HoldsFor {
    let state = read(&root.join(ABL).join(code_commit_loop_phase::STATE))
        .ok()
        .flatten();
    let state: State = state
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    match state.current.status {
        Status::Completed => state.passes.get(&phase).cloned().unwrap_or_default(),
        Status::Stuck => state.stuck_on.unwrap_or_default(),
        Status::Clean | Status::Building | Status::Verifying | Status::ContractsFailed => {
            HoldsFor::default()
        }
    }
}
