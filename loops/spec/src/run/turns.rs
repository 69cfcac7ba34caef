//! A turn of an agent, and what happens if it does not end as it should.

use std::path::Path;

use code_commit_engine::{
    Announce, Cause, Checkpoint, Delete, Harness, Identify, Next, Outcome, Pace, Read, Replace,
    Shell, Survey, Turn, TurnAnswer, Turned, Wait,
};
use code_commit_prompt::spec::{self, Turn as Told};

use super::{Halt, Run};
use crate::judge::{Verdict, judge};
use crate::{Files, PhaseEvent, Place, Role, Specs};

/// The marker that a turn ended with.
pub(super) struct Said {
    pub(super) marker: &'static str,
    pub(super) content: String,
}

impl<H> Run<'_, H>
where
    H: Harness<Turn<Specs>> + Harness<Shell> + Harness<Survey<Specs>> + Harness<Checkpoint<Specs>>,
    H: Harness<Read<Specs>> + Harness<Replace<Specs>> + Harness<Delete<Specs>>,
    H: Harness<Wait> + Harness<Announce> + Harness<Identify<Specs>>,
{
    /// The terminal marker of an agent's turn.
    pub(super) fn turn_of(&mut self, role: Role) -> Result<Said, Halt<H::Stop>> {
        let turned = self.attempts(role)?;
        match judge(role, &turned) {
            Verdict::Said { marker, content } => Ok(Said { marker, content }),
            Verdict::SpecIssue(content) => Err(Halt::End(self.end_for_person(role, &content)?)),
            Verdict::Stop { code, why } => Err(self.stop(role, &code, &why)),
            Verdict::Limit(cause) => Err(self.stop_at(cause)),
        }
    }

    /// Asks until an agent has worked, if others or a wait help.
    fn attempts(&mut self, role: Role) -> Result<Turned, Halt<H::Stop>> {
        let prompt = self.prompt(role);
        // For repairs of what a review found, stronger agents implement.
        let repairs = if role == Role::Implementing {
            self.iteration.saturating_sub(1)
        } else {
            0
        };
        let mut pace = Pace::new(self.inputs.agents, repairs);
        loop {
            let turned = self.attempt(role, &prompt, &pace)?;
            match pace.after(&turned) {
                Next::Judge => return Ok(turned),
                Next::Again | Next::Other => {}
                Next::Wait(wait) => {
                    let (iteration, until_unix) = (self.iteration, wait.until_unix);
                    self.announce(&PhaseEvent::QuotaWaitStart {
                        iteration,
                        until_unix,
                    })?;
                    if self.ask(wait)?.is_too_long {
                        return Ok(turned);
                    }
                }
            }
        }
    }

    fn attempt(&mut self, role: Role, prompt: &str, pace: &Pace) -> Result<Turned, Halt<H::Stop>> {
        self.heed_specs()?;
        if role == Role::Reviewing {
            // The verdict will hold for this tree.
            self.ask(Identify {
                place: Place::Project,
            })?;
        }
        let system = Some(spec::system(role.who(), &self.inputs.specs));
        let turn = pace.lead(Turn::new(role, prompt.into(), system));
        let turned = match self.ask(turn)? {
            TurnAnswer::LimitReached(limit) => return Err(self.stop_at(limit.cause)),
            TurnAnswer::Turned(turned) => *turned,
        };
        self.put_back.retain(|(of, _)| *of != role);
        if !turned.put_back.is_empty() {
            self.put_back.push((role, turned.put_back.clone()));
        }
        if turned
            .changed
            .iter()
            .any(|path| Path::new(path).starts_with(&self.inputs.specs))
        {
            self.specs = None;
        }
        Ok(turned)
    }

    /// Agents read the specs themselves; a person hears that they are others from here on.
    fn heed_specs(&mut self) -> Result<(), Halt<H::Stop>> {
        let now = self
            .ask(Identify {
                place: Place::Specs,
            })?
            .sha256
            .unwrap_or_default();
        let before = self.specs.replace(now.clone());
        if before.is_some_and(|before| before != now) {
            self.announce(&PhaseEvent::SpecsChanged {
                iteration: self.iteration,
            })?;
        }
        Ok(())
    }

    /// Keeps the session files: the turn can be asked for again.
    pub(super) fn stop(&self, role: Role, code: &str, why: &str) -> Halt<H::Stop> {
        let message = format!("{}: {why}", role.name());
        let hint = "fix the cause, then: code-commit spec run --resume";
        self.unavailable(Cause {
            code: code.to_owned(),
            message,
            remedy: Some(hint.to_owned()),
        })
    }

    /// Keeps what was done so far.
    pub(super) fn stop_at(&self, limit: Cause) -> Halt<H::Stop> {
        let hint = "check the result, raise the limit, then: code-commit spec run --resume";
        self.unavailable(Cause {
            remedy: Some(hint.to_owned()),
            ..limit
        })
    }

    /// Keeps the session files, so that the run can be resumed.
    fn unavailable(&self, cause: Cause) -> Halt<H::Stop> {
        Halt::End(Outcome::ModelUnavailable {
            round: self.iteration,
            cause,
        })
    }
}

impl<H> Run<'_, H> {
    pub(super) fn prompt(&self, role: Role) -> String {
        let [session, plan, review, check] = [
            self.files.session(),
            self.files.plan(),
            self.files.review(),
            self.files.check(),
        ]
        .map(|file| Files::path(&file));
        let put_back = self.put_back.iter().find(|(of, _)| *of == role);
        let told = Told {
            focus: &self.inputs.focus,
            specs: &self.inputs.specs,
            session: &session,
            plan: &plan,
            review: &review,
            has_review: self.has_review,
            check: self.check.as_deref().map(|ended| (ended, check.as_str())),
            initial_commit: self.head.as_deref(),
            put_back: put_back
                .map(|(_, paths)| paths.as_slice())
                .unwrap_or_default(),
        };
        match role {
            Role::Planning => spec::planning(&told),
            Role::Implementing => spec::implementing(&told),
            Role::Reviewing => spec::reviewing(&told),
            Role::Audit => spec::audit(&self.inputs.specs),
        }
    }
}
