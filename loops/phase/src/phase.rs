//! One phase: build and verify, until the phase passes or a person is needed (S3 §The Loop).

mod ask;
mod end;
mod inputs;
mod progress;
mod specs;
mod verify;

use std::sync::Arc;

use code_commit_engine::{
    Announce, Append, At, CommitAll, CommitAnswer, Delete, Harness, Identify, List, Named as _,
    Next, Outcome, Pace, Read, Replace, Turn, TurnAdvice, TurnAnswer, Turned, Wait,
};

pub use inputs::{Inputs, PhaseSpec, RoleInputs, Start, decider, specs_sha256};
pub use specs::specs_changed;

use crate::phase::verify::Writings;
use crate::state::Status;
use crate::tokens::{self, HEADER};
use crate::{PROJECT_MAP, Phases, Place, Repository, Role, STATE, TOKENS};

/// S3: the builder builds, the verifier verifies, and what fails goes back to the builder.
///
/// # Errors
///
/// What stopped the harness. The run can be resumed.
pub fn phase<H>(harness: &mut H, inputs: &Inputs) -> Result<Outcome, H::Stop>
where
    H: Harness<List<Phases>> + Harness<Turn<Phases>> + Harness<CommitAll<Phases>>,
    H: Harness<Identify<Phases>> + Harness<Announce> + Harness<Wait>,
    H: Harness<Read<Phases>>
        + Harness<Replace<Phases>>
        + Harness<Append<Phases>>
        + Harness<Delete<Phases>>,
{
    Work::of(harness, inputs).run()
}

/// The first prompt of a run, without the list of files that its role can see.
pub fn first_prompt(inputs: &Inputs) -> String {
    let who = if inputs.start.builder_done {
        Role::Verifier
    } else {
        Role::Builder
    };
    Work::of(&mut (), inputs).prompt(who)
}

/// Why a phase ends before it has passed.
enum Halt<S> {
    Stop(S),
    /// Nothing more can be done before a person has acted.
    End(Outcome),
    /// The specs are others than they were: the phase is built again.
    SpecsChanged,
}

impl<'w, H> Work<'w, H> {
    fn of(harness: &'w mut H, inputs: &'w Inputs) -> Self {
        Self {
            harness,
            inputs,
            iteration: inputs.start.iteration.max(1),
            map: Arc::from(""),
            specs: inputs.start.specs.clone(),
            specs_identity: inputs.start.specs_identity.clone(),
            src: None,
            tests: None,
            writings: Writings::default(),
            failures: inputs.start.failures.as_deref().map(Into::into),
            at: None,
        }
    }
}

enum Step {
    Build,
    Verify,
    Fail,
    Pass,
    End,
}

struct Work<'w, H> {
    harness: &'w mut H,
    inputs: &'w Inputs,
    iteration: u32,
    /// The files that the role can see.
    map: Arc<str>,
    /// Every phase with its spec as it was last read.
    specs: Vec<PhaseSpec>,
    specs_identity: Option<String>,
    /// The identity of the source that is verified.
    src: Option<String>,
    /// The identity of the tests that decided a pass.
    tests: Option<String>,
    /// What the verifier has written in this verification.
    writings: Writings,
    /// What the verifier reported last.
    failures: Option<Arc<str>>,
    /// The time of the last event.
    at: Option<String>,
}

impl<H> Work<'_, H>
where
    H: Harness<List<Phases>> + Harness<Turn<Phases>> + Harness<CommitAll<Phases>>,
    H: Harness<Identify<Phases>> + Harness<Announce> + Harness<Wait>,
    H: Harness<Read<Phases>>
        + Harness<Replace<Phases>>
        + Harness<Append<Phases>>
        + Harness<Delete<Phases>>,
{
    fn run(mut self) -> Result<Outcome, H::Stop> {
        let mut next = if self.inputs.start.builder_done {
            Step::Verify
        } else {
            Step::Build
        };
        loop {
            next = match self.step(&next) {
                // Whatever was built and judged was so by other specs.
                Err(Halt::SpecsChanged) => Step::Build,
                Err(Halt::Stop(stop)) => return Err(stop),
                Err(Halt::End(outcome)) => return Ok(outcome),
                Ok(Step::End) => {
                    return Ok(Outcome::Done {
                        rounds: self.iteration,
                    });
                }
                Ok(step) => step,
            };
        }
    }

    /// Takes a step; gives the next one.
    fn step(&mut self, step: &Step) -> Result<Step, Halt<H::Stop>> {
        match step {
            Step::Build => {
                self.build()?;
                Ok(Step::Verify)
            }
            Step::Verify => {
                let has_passed = self.verify()?;
                self.heed_specs()?;
                Ok(if has_passed { Step::Pass } else { Step::Fail })
            }
            Step::Fail => {
                self.fail()?;
                Ok(Step::Build)
            }
            Step::Pass => {
                self.tests = self.identity(Place::Tests)?;
                // What was changed while the verifier judged has not passed.
                let is_mark = self.identity(Place::Src)? != self.src;
                let message = format!("phase{}/passed", self.inputs.phase);
                self.commit(CommitAll {
                    repository: Repository::Src,
                    message,
                    is_mark,
                })?;
                self.save(Status::Completed)?;
                Ok(Step::End)
            }
            Step::End => Ok(Step::End),
        }
    }

    /// Begins the next iteration, if there is one.
    fn fail(&mut self) -> Result<(), Halt<H::Stop>> {
        self.commit(CommitAll {
            repository: Repository::Tests,
            message: format!("phase{}/verify/step-{}", self.inputs.phase, self.iteration),
            is_mark: false,
        })?;
        if self.iteration >= self.inputs.iterations {
            self.save(Status::Stuck)?;
            return Err(Halt::End(Outcome::NeedsPerson {
                round: self.iteration,
                cause: self.stuck(),
            }));
        }
        self.save(Status::ContractsFailed)?;
        self.iteration += 1;
        Ok(())
    }

    fn build(&mut self) -> Result<(), Halt<H::Stop>> {
        self.save(Status::Building)?;
        self.turn(Role::Builder)?;
        self.commit(CommitAll {
            repository: Repository::Src,
            message: format!("phase{}/build/step-{}", self.inputs.phase, self.iteration),
            is_mark: false,
        })
    }

    /// Runs a role's turn, again if it was cut off. One that ends badly ends the run.
    fn turn(&mut self, role: Role) -> Result<Turned, Halt<H::Stop>> {
        self.heed_specs()?;
        let listed = self.harness.perform(List { role }).map_err(Halt::Stop)?;
        (self.map, self.at) = (listed.list.share(), Some(listed.at));
        self.replace(PROJECT_MAP, Arc::clone(&self.map))?;
        let prompt: Arc<str> = self.prompt(role).into();
        let repairs = if role == Role::Builder {
            self.iteration - 1
        } else {
            0
        };
        let mut pace = Pace::new(self.inputs.start.agents(role), repairs);
        loop {
            let turn = pace.lead(Turn::new(role, Arc::clone(&prompt), None));
            let turned = match self.harness.perform(turn).map_err(Halt::Stop)? {
                TurnAnswer::LimitReached(limit) => return Err(self.end_at(limit.cause)),
                TurnAnswer::Turned(turned) => *turned,
            };
            self.at = Some(turned.at.clone());
            self.account(role, &turned)?;
            self.writings.add(role, &turned);
            if let TurnAdvice::Limit(cause) = turned.end.then {
                return Err(self.end_at(cause));
            }
            match pace.after(&turned) {
                Next::Judge if turned.end.is_ok() => return Ok(turned),
                Next::Judge => return Err(self.stopped(role, &turned)),
                Next::Again | Next::Other => self.heed_specs()?,
                Next::Wait(wait) => {
                    if self.harness.perform(wait).map_err(Halt::Stop)?.is_too_long {
                        return Err(self.stopped(role, &turned));
                    }
                    self.heed_specs()?;
                }
            }
        }
    }

    /// Records what a turn used (S3 §Token Tracking), even if it was cut off.
    fn account(&mut self, role: Role, turned: &Turned) -> Result<(), Halt<H::Stop>> {
        let text = tokens::rows(&tokens::Turn {
            at: &turned.at,
            phase: self.inputs.phase,
            iteration: self.iteration,
            role: role.name(),
            asked_model: &self.inputs.role(role).model,
            session: turned.session.as_deref(),
            usage: &turned.usage,
        });
        let at = At::new(Place::Abl, TOKENS);
        self.harness
            .perform(Append {
                at,
                head: HEADER,
                text,
            })
            .map_err(Halt::Stop)
            .map(drop)
    }

    fn commit(&mut self, commit: CommitAll<Phases>) -> Result<(), Halt<H::Stop>> {
        match self.harness.perform(commit).map_err(Halt::Stop)? {
            CommitAnswer::Committed(_) => Ok(()),
            CommitAnswer::NotCommitted(why) => Err(self.not_committed(why.message)),
        }
    }

    fn identity(&mut self, place: Place) -> Result<Option<String>, Halt<H::Stop>> {
        Ok(self
            .harness
            .perform(Identify { place })
            .map_err(Halt::Stop)?
            .sha256)
    }

    fn replace(&mut self, file: &str, text: Arc<str>) -> Result<(), Halt<H::Stop>> {
        let at = At::new(Place::Abl, file);
        self.harness
            .perform(Replace { at, text })
            .map_err(Halt::Stop)
            .map(drop)
    }

    fn save(&mut self, status: Status) -> Result<(), Halt<H::Stop>> {
        let state = self.state(status).to_json();
        self.replace(STATE, state.into())
    }
}

#[cfg(test)]
mod tests;
