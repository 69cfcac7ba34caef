//! One phase: build, verify, and again until it passes or a person is needed (S3 §The Loop).

mod account;
mod ask;
mod end;
mod failures;
mod inputs;
mod judge;

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::Session;
use perform::{AgentFact, AgentLimits, AgentStep, AgentUsage, Loop, Next, Outcome, Place, Turned};

pub use inputs::{Inputs, Limits, PhaseSpec, RoleInputs, Start};
pub use judge::has_report;

use crate::phase::inputs::Role;
use crate::phase::judge::{Verdict, build};
use crate::state::{Current, State, Status};
use crate::{ABL, BUILDER, FAILED_SPECS, PROJECT_MAP, SRC, STATE, TESTS, VERIFIER};

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Save(Status),
    List,
    WriteMap,
    Turn,
    Account,
    CommitBuild,
    RemoveOldFailures,
    ReadFailures,
    RemoveFailures,
    CommitPassed,
    CommitFailed,
    Over,
}

/// S3 as a value.
#[derive(Debug)]
pub struct PhaseLoop {
    inputs: Inputs,
    iteration: u32,
    stage: Stage,
    role: Role,
    number: u32,
    tries: u32,
    map: Arc<str>,
    failures: Option<Arc<str>>,
    complaint: Option<String>,
    /// What the builder hears of in its next iteration.
    unreported: Option<String>,
    turned: Option<Turned>,
    at: Option<String>,
    /// Rows of a turn that was cut off, not on record yet.
    lost: String,
    used: AgentUsage,
    limits: AgentLimits,
    outcome: Outcome,
}

impl PhaseLoop {
    /// A phase that is about to begin.
    #[must_use]
    pub fn new(inputs: Inputs) -> Self {
        let Start { iteration, builder_done, failures } = inputs.start.clone();
        let iteration = iteration.max(1);
        let stage = Stage::Save(if builder_done { Status::Verifying } else { Status::Building });
        Self {
            inputs,
            iteration,
            stage,
            role: if builder_done { Role::Verifier } else { Role::Builder },
            number: 1,
            tries: 1,
            map: Arc::from(""),
            failures,
            complaint: None,
            unreported: None,
            turned: None,
            at: None,
            lost: String::new(),
            used: AgentUsage::default(),
            limits: AgentLimits::default(),
            outcome: Outcome::Done { rounds: iteration },
        }
    }

    /// From now on the run may use so much; what it has used counts.
    pub fn limit(&mut self, limits: AgentLimits) {
        self.limits = limits;
        if self.stage == Stage::Turn {
            self.ask();
        }
    }

    /// Unless the run has used what it may.
    fn ask(&mut self) {
        self.stage = Stage::Turn;
        if let Some(passed) = self.used.passed(&self.limits) {
            self.end_at(passed);
        }
    }

    fn role(&self) -> (&'static str, &RoleInputs) {
        match self.role {
            Role::Builder => (BUILDER, &self.inputs.builder),
            Role::Verifier => (VERIFIER, &self.inputs.verifier),
        }
    }

    fn state(&self, status: Status) -> State {
        let phase = self.inputs.phase;
        let done =
            |spec: &&PhaseSpec| spec.completed || (status == Status::Completed && spec.number == phase);
        let titles: BTreeMap<u32, String> =
            self.inputs.specs.iter().map(|spec| (spec.number, spec.title.clone())).collect();
        State {
            phases_completed: self.inputs.specs.iter().filter(done).map(|spec| spec.number).collect(),
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

    fn step(&self) -> AgentStep {
        let phase = self.inputs.phase;
        let iteration = self.iteration;
        let (name, _) = self.role();
        let commit =
            |repository: &str, message| AgentStep::Commit { repository: repository.to_owned(), message };
        let write = |file: &str, text| AgentStep::Write { place: Place::new(ABL, file), text };
        match self.stage {
            Stage::Save(status) => write(STATE, self.state(status).to_json().into()),
            Stage::List => AgentStep::List { role: name.to_owned() },
            Stage::WriteMap => write(PROJECT_MAP, Arc::clone(&self.map)),
            Stage::Turn => AgentStep::Turn {
                number: self.number,
                role: name.to_owned(),
                prompt: self.prompt().into(),
                system: None,
                session: Session::None,
            },
            Stage::Account => self.account(),
            Stage::CommitBuild => commit(SRC, format!("phase{phase}/build/step-{iteration}")),
            Stage::RemoveOldFailures | Stage::RemoveFailures => {
                AgentStep::Delete(Place::new(TESTS, FAILED_SPECS))
            }
            Stage::ReadFailures => AgentStep::Read(Place::new(TESTS, FAILED_SPECS)),
            Stage::CommitFailed => commit(TESTS, format!("phase{phase}/verify/step-{iteration}")),
            Stage::CommitPassed | Stage::Over => commit(SRC, format!("phase{phase}/passed")),
        }
    }

    /// What follows a step that has nothing to say but that it is done.
    fn go_on(&mut self) {
        self.stage = match self.stage {
            Stage::Save(Status::Building) | Stage::RemoveOldFailures => Stage::List,
            Stage::Save(Status::Verifying) => Stage::RemoveOldFailures,
            Stage::Save(Status::ContractsFailed) => return self.next_iteration(),
            Stage::Save(Status::Clean | Status::Stuck | Status::Completed) | Stage::Over => Stage::Over,
            Stage::WriteMap => return self.ask(),
            Stage::Account => return self.judge(),
            Stage::CommitBuild => return self.begin_verifying(),
            Stage::RemoveFailures => Stage::CommitPassed,
            Stage::CommitPassed => {
                self.outcome = Outcome::Done { rounds: self.iteration };
                Stage::Save(Status::Completed)
            }
            Stage::CommitFailed if self.iteration >= self.inputs.limits.iterations => {
                self.outcome = Outcome::NeedsPerson { round: self.iteration, cause: self.stuck() };
                Stage::Save(Status::Stuck)
            }
            Stage::CommitFailed => Stage::Save(Status::ContractsFailed),
            stage @ (Stage::List | Stage::Turn | Stage::ReadFailures) => stage,
        };
    }

    fn next_iteration(&mut self) {
        self.iteration += 1;
        self.role = Role::Builder;
        self.tries = 1;
        self.complaint = self.unreported.take();
        self.stage = Stage::Save(Status::Building);
    }

    fn begin_verifying(&mut self) {
        self.role = Role::Verifier;
        self.tries = 1;
        self.complaint = None;
        self.stage = Stage::Save(Status::Verifying);
    }

    /// After a turn whose cost is on record.
    fn judge(&mut self) {
        let Some(turned) = self.turned.clone() else { return };
        if let Some(passed) = self.used.cut_off(&turned, &self.limits) {
            return self.end_at(passed);
        }
        match build(&turned) {
            Verdict::Good if self.role == Role::Verifier => self.stage = Stage::ReadFailures,
            Verdict::Good => self.stage = Stage::CommitBuild,
            Verdict::Again(complaint) if self.tries < self.inputs.limits.tries => self.again(complaint),
            // The verifier's word on what was built counts more than the builder's report.
            Verdict::Again(complaint) if self.role == Role::Builder && turned.end == agent::End::Ok => {
                self.unreported = Some(complaint);
                self.stage = Stage::CommitBuild;
            }
            Verdict::Again(complaint) => self.stop(&turned, &complaint),
            Verdict::Stop(message) => self.stop(&turned, &message),
        }
    }

    fn again(&mut self, complaint: String) {
        self.tries += 1;
        self.complaint = Some(complaint);
        self.stage = Stage::List;
    }
}

impl Loop for PhaseLoop {
    type Step = AgentStep;
    type Fact = AgentFact;

    fn next(&self) -> Next<AgentStep> {
        if let Some(step) = self.account_of_lost() {
            return Next::Do(step);
        }
        if self.stage == Stage::Over { Next::Stop(self.outcome.clone()) } else { Next::Do(self.step()) }
    }

    fn learn(&mut self, fact: &AgentFact) {
        match fact {
            AgentFact::Listed { list, at, .. } if self.stage == Stage::List => {
                (self.map, self.at) = (list.share(), Some(at.clone()));
                self.stage = Stage::WriteMap;
            }
            AgentFact::TurnBegins { .. } | AgentFact::CutOff { .. } if self.stage == Stage::Turn => {
                self.lose(fact);
            }
            AgentFact::Turned(turned) if self.stage == Stage::Turn => {
                self.lost.clear();
                self.at = Some(turned.at.clone());
                self.used.add(turned);
                self.turned = Some((**turned).clone());
                self.number += 1;
                self.stage = Stage::Account;
            }
            AgentFact::WasRead { text, odd, .. } if self.stage == Stage::ReadFailures => {
                self.learn_failures(text.as_ref().map(perform::Text::share), *odd);
            }
            AgentFact::Wrote { .. } if !self.lost.is_empty() => self.lost.clear(),
            AgentFact::Wrote { .. } | AgentFact::Committed { .. } => self.go_on(),
            // Not what this stage waits for, or what no stage does.
            AgentFact::Listed { .. }
            | AgentFact::Turned(_)
            | AgentFact::WasRead { .. }
            | AgentFact::TurnBegins { .. }
            | AgentFact::CutOff { .. }
            | AgentFact::Ran { .. }
            | AgentFact::Surveyed { .. }
            | AgentFact::Checkpointed { .. }
            | AgentFact::Waited { .. }
            | AgentFact::Announced { .. }
            | AgentFact::Resumed
            | AgentFact::Ended { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
