//! The progress of a phase, as `state.json` has it.

use std::collections::BTreeMap;

use code_commit_engine::HoldsFor;

use super::{PhaseSpec, Work, decider, specs_sha256};
use crate::state::{Current, State, Status};

impl<H> Work<'_, H> {
    pub(super) fn state(&self, status: Status) -> State {
        let phase = self.inputs.phase;
        let done = |spec: &&PhaseSpec| {
            spec.completed || (status == Status::Completed && spec.number == phase)
        };
        let titles: BTreeMap<u32, String> = self
            .specs
            .iter()
            .map(|spec| (spec.number, spec.title.clone()))
            .collect();
        let (mut passes, mut tests) = (
            self.inputs.start.passes.clone(),
            self.inputs.start.tests.clone(),
        );
        if status == Status::Completed {
            passes.insert(phase, self.verified());
            tests.remove(&phase);
            tests.extend(self.tests.clone().map(|tests| (phase, tests)));
        }
        State {
            phases_completed: self
                .specs
                .iter()
                .filter(done)
                .map(|spec| spec.number)
                .collect(),
            passes,
            tests,
            stuck_on: (status == Status::Stuck).then(|| self.verified()),
            phase_titles: titles,
            current: Current {
                phase: Some(phase),
                verifier_iteration: self.iteration,
                status,
                builder_done: status != Status::Building,
                verifier_done: !matches!(status, Status::Building | Status::Verifying),
                specs: Some(self.specs_sha256(None)),
            },
            last_updated: self.at.clone(),
        }
    }

    /// What the last verification holds for.
    fn verified(&self) -> HoldsFor {
        HoldsFor {
            tree: self.src.clone(),
            specification: Some(self.specs_sha256(self.inputs.project.as_deref())),
            decider: Some(decider(&self.inputs.start.decider, self.tests.as_deref())),
        }
    }

    fn specs_sha256(&self, project: Option<&str>) -> String {
        let specs = self.specs.iter();
        let specs = specs.map(|spec| (spec.number, spec.text.as_str()));
        specs_sha256(specs, project, self.inputs.phase)
    }
}
