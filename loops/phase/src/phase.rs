//! One phase: build and verify, until the phase passes or a person is needed (S3 §The Loop).

mod ask;
mod end;
mod inputs;
mod judge;
mod progress;
mod specs;

use std::collections::BTreeMap;
use std::sync::Arc;

use code_commit_engine::{
    Announce, Append, At, CommitAll, CommitAnswer, Delete, Harness, Identify, List, Named as _, Outcome,
    Read, Replace, Session, Turn, TurnAdvice, TurnAnswer, Turned, WasRead,
};

pub use inputs::{Inputs, Limits, PhaseSpec, RoleInputs, Start, specs_sha256};
pub use judge::has_report;
pub use specs::specs_changed;

use crate::phase::judge::{Verdict, judge, left_failures, verification};
use crate::state::Status;
use crate::tokens::{self, HEADER};
use crate::{FAILED_SPECS, PROJECT_MAP, Phases, Place, Repository, Role, STATE, TOKENS};

/// Why a verifier's turn does not count.
const ODD_FAILURES: &str = "made a `failed_specs.md` that is not a regular file of less than 16 MiB.";

/// S3: the builder builds, the verifier verifies, and what fails goes back to the builder.
///
/// # Errors
///
/// What stopped the harness. The run can be resumed.
pub fn phase<H>(harness: &mut H, inputs: &Inputs) -> Result<Outcome, H::Stop>
where
    H: Harness<List<Phases>> + Harness<Turn<Phases>> + Harness<CommitAll<Phases>>,
    H: Harness<Identify<Phases>> + Harness<Announce>,
    H: Harness<Read<Phases>> + Harness<Replace<Phases>> + Harness<Append<Phases>> + Harness<Delete<Phases>>,
{
    Work::of(harness, inputs).run()
}

/// The first prompt of a run, without the list of files that its role can see.
pub fn first_prompt(inputs: &Inputs) -> String {
    let who = if inputs.start.builder_done { Role::Verifier } else { Role::Builder };
    Work::of(&mut (), inputs).prompt(who, None)
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
            built_for: inputs.start.built_for.clone(),
            src: None,
            failures: inputs.start.failures.as_deref().map(Into::into),
            complaint: None,
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
    /// The specs that the code was built for, where they are others now.
    built_for: BTreeMap<u32, String>,
    /// The identity of the source that is verified.
    src: Option<String>,
    /// What the verifier reported last.
    failures: Option<Arc<str>>,
    /// An additional message for the next builder.
    complaint: Option<String>,
    /// The time of the last event.
    at: Option<String>,
}

impl<H> Work<'_, H>
where
    H: Harness<List<Phases>> + Harness<Turn<Phases>> + Harness<CommitAll<Phases>>,
    H: Harness<Identify<Phases>> + Harness<Announce>,
    H: Harness<Read<Phases>> + Harness<Replace<Phases>> + Harness<Append<Phases>> + Harness<Delete<Phases>>,
{
    fn run(mut self) -> Result<Outcome, H::Stop> {
        let mut next = if self.inputs.start.builder_done { Step::Verify } else { Step::Build };
        loop {
            next = match self.step(&next) {
                // Whatever was built and judged was so by other specs.
                Err(Halt::SpecsChanged) => Step::Build,
                Err(Halt::Stop(stop)) => return Err(stop),
                Err(Halt::End(outcome)) => return Ok(outcome),
                Ok(Step::End) => return Ok(Outcome::Done { rounds: self.iteration }),
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
                self.commit(Repository::Src, format!("phase{}/passed", self.inputs.phase))?;
                self.save(Status::Completed)?;
                Ok(Step::End)
            }
            Step::End => Ok(Step::End),
        }
    }

    /// Begins the next iteration, if there is one.
    fn fail(&mut self) -> Result<(), Halt<H::Stop>> {
        self.commit(Repository::Tests, format!("phase{}/verify/step-{}", self.inputs.phase, self.iteration))?;
        if self.iteration >= self.inputs.limits.iterations {
            self.save(Status::Stuck)?;
            return Err(Halt::End(Outcome::NeedsPerson { round: self.iteration, cause: self.stuck() }));
        }
        self.save(Status::ContractsFailed)?;
        self.iteration += 1;
        Ok(())
    }

    fn build(&mut self) -> Result<(), Halt<H::Stop>> {
        self.save(Status::Building)?;
        let mut complaint = self.complaint.take();
        let mut tries = 1;
        loop {
            let turned = self.turn(Role::Builder, complaint.as_deref())?;
            match judge(&turned, Role::Builder) {
                Verdict::Good => break,
                Verdict::Again(why) if tries < self.inputs.limits.tries => complaint = Some(why),
                // The verifier's judgement of the result counts more than the builder's report.
                Verdict::Again(why) if turned.end.is_ok() => {
                    self.complaint = Some(why);
                    break;
                }
                Verdict::Again(why) | Verdict::Stop(why) => {
                    return Err(self.stopped(Role::Builder, &turned, &why));
                }
            }
            tries += 1;
        }
        self.built_for.clear();
        self.commit(Repository::Src, format!("phase{}/build/step-{}", self.inputs.phase, self.iteration))
    }

    /// Whether every contract holds.
    fn verify(&mut self) -> Result<bool, Halt<H::Stop>> {
        self.save(Status::Verifying)?;
        self.src = self.harness.perform(Identify { place: Place::Src }).map_err(Halt::Stop)?.sha256;
        self.remove_failures()?;
        let (mut complaint, mut tries) = (None, 1);
        loop {
            let turned = self.turn(Role::Verifier, complaint.as_deref())?;
            let may_try = tries < self.inputs.limits.tries;
            tries += 1;
            complaint = Some(match judge(&turned, Role::Verifier) {
                Verdict::Good => match self.read_failures(&turned)? {
                    Some(text) => {
                        let report = crate::failed::parse(&text);
                        match verification(&report).filter(|_| may_try) {
                            Some(why) => why,
                            None => return self.decide(text, report.is_pass()),
                        }
                    }
                    None if may_try => {
                        self.remove_failures()?;
                        ODD_FAILURES.to_owned()
                    }
                    None => return Err(self.give_up(Role::Verifier, "odd-failures", ODD_FAILURES)),
                },
                Verdict::Again(why) if may_try => why,
                Verdict::Again(why) | Verdict::Stop(why) => {
                    return Err(self.stopped(Role::Verifier, &turned, &why));
                }
            });
        }
    }

    /// What the verifier reported; empty if there is no file. `None` if nothing can be concluded: a
    /// symlink, a folder, a pipe, an endless file. An earlier try may have left it, since it did
    /// not exist before the first one.
    fn read_failures(&mut self, turned: &Turned) -> Result<Option<Arc<str>>, Halt<H::Stop>> {
        let read = Read(At::new(Place::Tests, FAILED_SPECS));
        let WasRead { text, odd, .. } = self.harness.perform(read).map_err(Halt::Stop)?;
        let is_odd = odd || (text.is_none() && left_failures(turned));
        Ok((!is_odd).then(|| text.map_or_else(|| Arc::from(""), |text| text.share())))
    }

    /// A report that cannot be understood is not a pass: it goes to the builder as it is.
    fn decide(&mut self, failures: Arc<str>, has_passed: bool) -> Result<bool, Halt<H::Stop>> {
        self.failures = (!has_passed).then_some(failures);
        if has_passed {
            self.remove_failures()?;
        }
        Ok(has_passed)
    }

    /// Runs a role's turn, again if it was cut off.
    fn turn(&mut self, role: Role, complaint: Option<&str>) -> Result<Turned, Halt<H::Stop>> {
        self.heed_specs()?;
        let listed = self.harness.perform(List { role }).map_err(Halt::Stop)?;
        (self.map, self.at) = (listed.list.share(), Some(listed.at));
        self.replace(PROJECT_MAP, Arc::clone(&self.map))?;
        let prompt: Arc<str> = self.prompt(role, complaint).into();
        loop {
            let turn = Turn { role, prompt: Arc::clone(&prompt), system: None, session: Session::None };
            let turned = match self.harness.perform(turn).map_err(Halt::Stop)? {
                TurnAnswer::LimitReached(limit) => return Err(self.end_at(limit.cause)),
                TurnAnswer::Turned(turned) => *turned,
            };
            self.at = Some(turned.at.clone());
            self.account(role, &turned)?;
            match turned.end.then {
                TurnAdvice::Repeat => self.heed_specs()?,
                TurnAdvice::Limit(cause) => return Err(self.end_at(cause)),
                TurnAdvice::Use
                | TurnAdvice::Retry
                | TurnAdvice::Renew
                | TurnAdvice::WaitUntil(_)
                | TurnAdvice::Stop => return Ok(turned),
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
        self.harness.perform(Append { at, head: HEADER, text }).map_err(Halt::Stop).map(drop)
    }

    fn commit(&mut self, repository: Repository, message: String) -> Result<(), Halt<H::Stop>> {
        match self.harness.perform(CommitAll { repository, message }).map_err(Halt::Stop)? {
            CommitAnswer::Committed(_) => Ok(()),
            CommitAnswer::NotCommitted(why) => Err(self.not_committed(why.message)),
        }
    }

    fn replace(&mut self, file: &str, text: Arc<str>) -> Result<(), Halt<H::Stop>> {
        let at = At::new(Place::Abl, file);
        self.harness.perform(Replace { at, text }).map_err(Halt::Stop).map(drop)
    }

    fn remove_failures(&mut self) -> Result<(), Halt<H::Stop>> {
        let delete = Delete(At::new(Place::Tests, FAILED_SPECS));
        self.harness.perform(delete).map_err(Halt::Stop).map(drop)
    }

    fn save(&mut self, status: Status) -> Result<(), Halt<H::Stop>> {
        let state = self.state(status).to_json();
        self.replace(STATE, state.into())
    }
}

#[cfg(test)]
mod tests;
