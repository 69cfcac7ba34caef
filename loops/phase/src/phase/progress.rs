//! The progress of a phase, as `state.json` has it.

use std::collections::BTreeMap;

use code_commit_engine::HoldsFor;

use super::{PhaseSpec, Work, specs_sha256};
use crate::state::{Current, State, Status};

impl<H> Work<'_, H> {
    pub(super) fn state(&self, status: Status) -> State {
        let phase = self.inputs.phase;
        let done =
            |spec: &&PhaseSpec| spec.completed || (status == Status::Completed && spec.number == phase);
        let titles: BTreeMap<u32, String> =
            self.specs.iter().map(|spec| (spec.number, spec.title.clone())).collect();
        let mut passes = self.inputs.start.passes.clone();
        if status == Status::Completed {
            passes.insert(phase, self.verified());
        }
        State {
            phases_completed: self.specs.iter().filter(done).map(|spec| spec.number).collect(),
            passes,
            stuck_on: (status == Status::Stuck).then(|| self.verified()),
            phase_titles: titles,
            current: Current {
                phase: Some(phase),
                verifier_iteration: self.iteration,
                status,
                builder_done: status != Status::Building,
                verifier_done: !matches!(status, Status::Building | Status::Verifying),
            },
            last_updated: self.at.clone(),
        }
    }

    /// What the last verification holds for.
    fn verified(&self) -> HoldsFor {
        let specs = self.specs.iter().map(|spec| (spec.number, spec.text.as_str()));
        HoldsFor {
            tree: self.src.clone(),
            specification: Some(specs_sha256(specs, self.inputs.phase)),
            decider: Some(self.inputs.start.decider.clone()),
        }
    }
}
