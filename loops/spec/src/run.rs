//! One run: plan, implement and review, until the reviewer approves (S4 §Main Loop Flow).

mod turns;

use std::sync::Arc;

use code_commit_engine::{
    Announce, At, Cause, Checkpoint, Delete, Harness, Identify, Outcome, Read, Recorded, Replace,
    Shell, Survey, Turn, Uncommitted, Wait,
};

use crate::marker::{DONE, REQUEST_CHANGES};
use crate::run::turns::Said;
use crate::{CHECK, CommitScope, Files, Inputs, PhaseEvent, Place, Repository, Role, SETUP, Specs};

/// Separates the plan from the markers in the session file.
pub const LOG: &str = "\n# Progress Log\n\n";

/// S4: an agent plans, agents implement one task at a time, an agent reviews, until it approves.
///
/// # Errors
///
/// What stopped the harness. The run can be resumed.
pub fn spec<H>(harness: &mut H, inputs: &Inputs) -> Result<Outcome, H::Stop>
where
    H: Harness<Turn<Specs>> + Harness<Shell> + Harness<Survey<Specs>> + Harness<Checkpoint<Specs>>,
    H: Harness<Read<Specs>> + Harness<Replace<Specs>> + Harness<Delete<Specs>>,
    H: Harness<Wait> + Harness<Announce> + Harness<Identify<Specs>>,
{
    Run::of(harness, inputs).run().or_else(|halt| match halt {
        Halt::Stop(stop) => Err(stop),
        Halt::End(outcome) => Ok(outcome),
    })
}

/// How many answers, counted from the first, a resumed run keeps if it had ended because its agent
/// could not be used: the turn without an end is asked again, by a fresh agent.
pub fn still_holds(answers: &[Recorded]) -> usize {
    let begins_turn = |entry: &Recorded| {
        let event = PhaseEvent::of_json(&entry.request);
        event.is_some_and(|event| event.begins_turn())
    };
    answers
        .iter()
        .rposition(begins_turn)
        .map_or(0, |last| last + 1)
}

enum Halt<S> {
    Stop(S),
    End(Outcome),
}

struct Run<'r, H> {
    harness: &'r mut H,
    inputs: &'r Inputs,
    files: Files,
    iteration: u32,
    /// The commit that was checked out when the run began.
    head: Option<String>,
    /// What was not committed then.
    spare: Vec<Uncommitted>,
    has_review: bool,
    /// How the last check ended.
    check: Option<String>,
    /// The identity of the specs before the last turn, empty without specs; `None` if that turn was asked to
    /// change them.
    specs: Option<String>,
    /// The files that were restored after the last turn of each role.
    put_back: Vec<(Role, Vec<String>)>,
}

impl<'r, H> Run<'r, H> {
    fn of(harness: &'r mut H, inputs: &'r Inputs) -> Self {
        Self {
            harness,
            inputs,
            files: Files::of(&inputs.id),
            iteration: 0,
            head: None,
            spare: Vec::new(),
            has_review: false,
            check: None,
            specs: None,
            put_back: Vec::new(),
        }
    }
}

/// The first prompt of a run, without the commit that it begins with.
pub fn first_prompt(inputs: &Inputs) -> String {
    let mut nobody = ();
    let run = Run {
        has_review: inputs.review.is_some(),
        ..Run::of(&mut nobody, inputs)
    };
    run.prompt(Role::Planning)
}

enum Review {
    Approved,
    Changes(String),
}

impl<H> Run<'_, H>
where
    H: Harness<Turn<Specs>> + Harness<Shell> + Harness<Survey<Specs>> + Harness<Checkpoint<Specs>>,
    H: Harness<Read<Specs>> + Harness<Replace<Specs>> + Harness<Delete<Specs>>,
    H: Harness<Wait> + Harness<Announce> + Harness<Identify<Specs>>,
{
    fn run(mut self) -> Result<Outcome, Halt<H::Stop>> {
        if let Some(review) = self.inputs.review.clone() {
            self.keep_review(&review)?;
        }
        if self.inputs.commit.is_some() {
            let surveyed = self.ask(Survey {
                repository: Repository::Project,
            })?;
            (self.head, self.spare) = (surveyed.head, surveyed.uncommitted);
        }
        loop {
            self.iteration += 1;
            let (iteration, max_iterations) = (self.iteration, self.inputs.max_iterations);
            self.announce(&PhaseEvent::IterationStart {
                iteration,
                max_iterations,
            })?;
            self.plan()?;
            self.implement()?;
            let review = match self.review()? {
                Review::Approved => {
                    return self.end(
                        Outcome::Done { rounds: iteration },
                        &PhaseEvent::LoopApproved { iteration },
                    );
                }
                Review::Changes(review) => review,
            };
            if iteration >= max_iterations {
                // The session files are about to be deleted, so the event has to contain the
                // review.
                return self.end(
                    Outcome::AttemptsUsedUp { rounds: iteration },
                    &PhaseEvent::LoopMaxIterations { iteration, review },
                );
            }
        }
    }

    /// The plan becomes the session file (S4 §File Creation Flow).
    fn plan(&mut self) -> Result<(), Halt<H::Stop>> {
        self.announce(&PhaseEvent::PlanningStart {
            iteration: self.iteration,
        })?;
        self.turn_of(Role::Planning)?;
        let plan = self
            .read(self.files.plan())?
            .filter(|text| !text.trim().is_empty());
        let Some(plan) = plan else {
            let file = Files::path(&self.files.plan());
            let why = format!("the plan file `{file}` is not there or is empty");
            return Err(self.stop(Role::Planning, "no-plan", &why));
        };
        self.replace(self.files.session(), format!("{}\n{LOG}", plan.trim_end()))?;
        self.ask(Delete(self.files.plan()))?;
        self.ask(Delete(self.files.review()))?;
        self.has_review = false;
        if let Some(line) = self.inputs.setup.clone() {
            // The output is only in the record: no agent may read it (S4 §Setup Output Handling),
            // and all of them work in the folder of the session files.
            self.ask(Shell { name: SETUP, line })?;
        }
        Ok(())
    }

    /// Runs one turn per task until all are done. S4 sets no end, so an agent could work for ever.
    fn implement(&mut self) -> Result<(), Halt<H::Stop>> {
        for turns in 0.. {
            self.run_check()?;
            self.announce(&PhaseEvent::ImplementingStart {
                iteration: self.iteration,
            })?;
            if turns >= self.inputs.max_turns {
                return Err(self.stop_at(Cause {
                    code: "limit-turns".to_owned(),
                    message: format!("the agent has implemented for {turns} turns and is not done"),
                    remedy: None,
                }));
            }
            let Said { marker, content } = self.turn_of(Role::Implementing)?;
            if let Some(scope) = self.inputs.commit {
                self.checkpoint(scope, content.trim())?;
            }
            if marker == DONE {
                break;
            }
        }
        Ok(())
    }

    fn review(&mut self) -> Result<Review, Halt<H::Stop>> {
        self.run_check()?;
        self.announce(&PhaseEvent::ReviewingStart {
            iteration: self.iteration,
        })?;
        let Said { marker, content } = self.turn_of(Role::Reviewing)?;
        if marker != REQUEST_CHANGES {
            return Ok(Review::Approved);
        }
        let written = self
            .read(self.files.review())?
            .filter(|text| !text.trim().is_empty());
        let silent = "The reviewing agent requested changes and did not say which: look for what does not match the specs.";
        let said = if content.trim().is_empty() {
            silent
        } else {
            &content
        };
        if self.iteration < self.inputs.max_iterations {
            match written {
                Some(_) => self.has_review = true,
                None => self.keep_review(said)?,
            }
        }
        Ok(Review::Changes(
            written.as_deref().unwrap_or(said).trim().to_owned(),
        ))
    }

    /// Runs the user's command line before implementing and reviewing. Agents read its output.
    fn run_check(&mut self) -> Result<(), Halt<H::Stop>> {
        let Some(line) = self.inputs.check.clone() else {
            return Ok(());
        };
        let ran = self.ask(Shell { name: CHECK, line })?;
        self.check = Some(ran.ended.to_string());
        self.ask(Replace {
            at: self.files.check(),
            text: ran.output.share(),
        })
        .map(drop)
    }

    /// A failed commit does not stop the loop (S4 §Auto-Commit).
    fn checkpoint(&mut self, scope: CommitScope, said: &str) -> Result<(), Halt<H::Stop>> {
        let message = if said.is_empty() {
            "a task of the plan is done"
        } else {
            said
        }
        .to_owned();
        let spare = match scope {
            CommitScope::Run => self.spare.clone(),
            CommitScope::All => Vec::new(),
        };
        self.ask(Checkpoint {
            repository: Repository::Project,
            message,
            spare,
        })
        .map(drop)
    }

    /// Stores the review that the next plan has to address.
    fn keep_review(&mut self, review: &str) -> Result<(), Halt<H::Stop>> {
        self.has_review = true;
        self.replace(self.files.review(), format!("{}\n", review.trim_end()))
    }

    /// Deletes the session files. The final event comes last.
    fn end(&mut self, outcome: Outcome, event: &PhaseEvent) -> Result<Outcome, Halt<H::Stop>> {
        for file in self.files.all() {
            self.ask(Delete(file))?;
        }
        self.announce(event)?;
        Ok(outcome)
    }

    /// A person has to settle something in the specs (S4 §Spec Issue Handling).
    fn end_for_person(&mut self, role: Role, content: &str) -> Result<Outcome, Halt<H::Stop>> {
        let content = if content.trim().is_empty() {
            format!(
                "The {} agent found a problem in the specs and did not say where.",
                role.name()
            )
        } else {
            content.to_owned()
        };
        let file = self.files.issue();
        let (filename, path) = (file.file.clone(), Files::path(&file));
        let hint = format!(
            "resolve it in {}, remove {path}, then start again",
            self.inputs.specs
        );
        self.replace(file, format!("{content}\n"))?;
        let iteration = self.iteration;
        let cause = Cause {
            code: "spec-issue".to_owned(),
            message: content.clone(),
            remedy: Some(hint),
        };
        let outcome = Outcome::NeedsPerson {
            round: iteration,
            cause,
        };
        self.end(
            outcome,
            &PhaseEvent::LoopSpecIssue {
                iteration,
                content,
                filename,
            },
        )
    }

    fn announce(&mut self, event: &PhaseEvent) -> Result<(), Halt<H::Stop>> {
        self.ask(Announce(event.to_json())).map(drop)
    }

    fn read(&mut self, file: At<Place>) -> Result<Option<Arc<str>>, Halt<H::Stop>> {
        Ok(self.ask(Read(file))?.text.map(|text| text.share()))
    }

    fn replace(&mut self, at: At<Place>, text: String) -> Result<(), Halt<H::Stop>> {
        self.ask(Replace {
            at,
            text: text.into(),
        })
        .map(drop)
    }

    fn ask<R: code_commit_engine::Request>(
        &mut self,
        request: R,
    ) -> Result<R::Answer, Halt<H::Stop>>
    where
        H: Harness<R>,
    {
        self.harness.perform(request).map_err(Halt::Stop)
    }
}

#[cfg(test)]
pub(crate) mod tests;
