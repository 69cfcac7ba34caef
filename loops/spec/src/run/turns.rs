//! A turn of an agent, and what happens if it does not end as it should.

use std::collections::BTreeSet;
use std::path::Path;

use code_commit_engine::{
    Announce, Cause, Checkpoint, Delete, Doubt, Harness, Identify, Next, Outcome, Pace, Read,
    Replace, Session, Shell, Survey, Turn, TurnAnswer, Turned, Wait,
};
use code_commit_prompt::spec::{self, Turn as Told};

use super::{Halt, Run};
use crate::judge::{Verdict, judge};
use crate::marker::APPROVED;
use crate::{Files, PhaseEvent, Place, Role, Specs};

/// Why an approval does not count. What was reviewed is not the tree that the run would end with.
const VOID: &str = "the approval does not count, because files that the reviewing agent may not change had to be restored";

/// Why an approval does not count if somebody else changed specs or files.
const STALE: &str = "the approval does not count, because specs or files were changed while the reviewing agent worked";

/// The code of specs that a review did not look at.
const UNOPENED: &str = "unopened";
/// What a review is about: the identities of the specs and of the whole project.
type Judged = (Option<String>, Option<String>);

/// A turn with all of its tries.
pub(super) struct Task {
    role: Role,
    /// The next prompt, and the session that it belongs to.
    prompt: String,
    session: Session,
    last_session: Option<String>,
    was_resumed: bool,
    was_fresh: bool,
    /// Whether changes of the session at hand were restored: it goes on with what it saw before.
    was_restored: bool,
    /// Approvals without a look at the specs.
    unread: u32,
    /// The specs that the session at hand has opened.
    opened: BTreeSet<String>,
    /// What the session at hand reviews.
    judged: Option<Judged>,
    /// The attempts since one last ended in another way than with a quota.
    pace: Pace,
    /// How the last try ended, if it ended badly.
    bad_end: Option<String>,
}

/// The marker that a turn ended with.
pub(super) struct Said {
    pub(super) marker: &'static str,
    pub(super) content: String,
    pub(super) changed_nothing: bool,
}

impl<H> Run<'_, H>
where
    H: Harness<Turn<Specs>> + Harness<Shell> + Harness<Survey<Specs>> + Harness<Checkpoint<Specs>>,
    H: Harness<Read<Specs>> + Harness<Replace<Specs>> + Harness<Delete<Specs>>,
    H: Harness<Wait> + Harness<Announce> + Harness<Identify<Specs>> + Harness<Doubt>,
{
    pub(super) fn turn_of(&mut self, role: Role) -> Result<Said, Halt<H::Stop>> {
        let mut task = self.begin_turn(role);
        self.turn(&mut task)
    }

    pub(super) fn begin_turn(&self, role: Role) -> Task {
        Task {
            role,
            prompt: self.prompt(role),
            session: Session::New,
            last_session: None,
            was_resumed: false,
            was_fresh: false,
            was_restored: false,
            unread: 0,
            opened: BTreeSet::new(),
            judged: None,
            pace: self.pace(role),
            bad_end: None,
        }
    }

    /// Tries until the agent emits a terminal marker.
    pub(super) fn turn(&mut self, task: &mut Task) -> Result<Said, Halt<H::Stop>> {
        loop {
            let turned = self.attempts(task)?;
            let verdict = judge(task.role, &turned);
            task.pace = self.pace(task.role);
            if let Verdict::Said {
                marker: APPROVED, ..
            } = verdict
                && !self.counts(task, &turned)?
            {
                continue;
            }
            match verdict {
                Verdict::SpecIssue(content) => {
                    return Err(Halt::End(self.end_for_person(task.role, &content)?));
                }
                Verdict::Said { marker, content } => {
                    return Ok(Said {
                        marker,
                        content,
                        changed_nothing: turned.changed.is_empty(),
                    });
                }
                Verdict::Silent(why) => self.again(task, &why)?,
                Verdict::Lost(why) => self.afresh(task, &why)?,
                Verdict::Stop(why) => return Err(self.stop(task, &why)),
                Verdict::Limit(cause) => return Err(self.stop_at(cause)),
            }
        }
    }

    /// For repairs of what a review found, stronger agents implement.
    fn pace(&self, role: Role) -> Pace {
        let repairs = if role == Role::Implementing {
            self.iteration.saturating_sub(1)
        } else {
            0
        };
        Pace::new(self.inputs.agents, repairs)
    }

    /// Tries until an agent has worked, as far as others or a wait help. None of this counts as a try.
    fn attempts(&mut self, task: &mut Task) -> Result<Turned, Halt<H::Stop>> {
        loop {
            let turned = self.one_try(task)?;
            match task.pace.after(&turned) {
                Next::Judge => return Ok(turned),
                Next::Again => {}
                Next::Other => (task.prompt, task.session) = (self.prompt(task.role), Session::New),
                Next::Wait(wait) => {
                    let (iteration, until_unix) = (self.iteration, wait.until_unix);
                    self.announce(&PhaseEvent::QuotaWaitStart {
                        iteration,
                        until_unix,
                    })?;
                    if self.ask(wait)?.is_too_long {
                        return Ok(turned);
                    }
                    (task.prompt, task.session) = (self.prompt(task.role), Session::New);
                }
            }
        }
    }

    fn one_try(&mut self, task: &mut Task) -> Result<Turned, Halt<H::Stop>> {
        self.heed_specs()?;
        if task.role == Role::Reviewing && !matches!(task.session, Session::Resume(_)) {
            task.judged = Some(self.judged()?);
        }
        let system = Some(spec::system(task.role.who(), &self.inputs.specs));
        let turn = Turn::new(
            task.role,
            task.prompt.as_str().into(),
            system,
            task.session.clone(),
        );
        let turn = task.pace.lead(turn);
        let turned = match self.ask(turn)? {
            TurnAnswer::LimitReached(limit) => return Err(self.stop_at(limit.cause)),
            TurnAnswer::Turned(turned) => *turned,
        };
        task.last_session.clone_from(&turned.session);
        task.bad_end = (!turned.end.is_ok()).then(|| turned.end.how.clone());
        task.was_restored &= matches!(task.session, Session::Resume(_));
        task.was_restored |= !turned.put_back.is_empty();
        if !turned.went_on && !matches!(task.session, Session::Resume(_)) {
            task.opened.clear();
        }
        task.opened.extend(turned.opened.iter().cloned());
        self.put_back.retain(|(role, _)| *role != task.role);
        if !turned.put_back.is_empty() {
            self.put_back.push((task.role, turned.put_back.clone()));
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

    fn judged(&mut self) -> Result<Judged, Halt<H::Stop>> {
        let specs = self
            .ask(Identify {
                place: Place::Specs,
            })?
            .sha256;
        Ok((
            specs,
            self.ask(Identify {
                place: Place::Project,
            })?
            .sha256,
        ))
    }

    /// An approval counts only for what was reviewed.
    fn why_void(&mut self, task: &Task) -> Result<Option<&'static str>, Halt<H::Stop>> {
        if task.was_restored {
            return Ok(Some(VOID));
        }
        let now = self.judged()?;
        Ok((task.judged.as_ref() != Some(&now)).then_some(STALE))
    }

    /// There was no terminal marker: asks in the same session first, then in a fresh one.
    pub(super) fn again(&mut self, task: &mut Task, why: &str) -> Result<(), Halt<H::Stop>> {
        match task.last_session.take() {
            Some(session) if !task.was_resumed => {
                task.was_resumed = true;
                task.prompt = spec::again(why, task.role.terminal());
                task.session = Session::Resume(session);
                self.retry(why)
            }
            Some(_) | None => self.afresh(task, why),
        }
    }

    /// Checks and reviews again.
    fn void(&mut self, task: &mut Task, why: &str) -> Result<(), Halt<H::Stop>> {
        task.bad_end = Some("void-approval".to_owned());
        self.afresh(task, why)?;
        self.ask(Delete(self.files.review()))?;
        self.run_check()?;
        task.prompt = self.prompt(task.role);
        Ok(())
    }

    /// Whether an approval counts; if not, the next try is prepared. Specs that the reviewer left out are named.
    fn counts(&mut self, task: &mut Task, turned: &Turned) -> Result<bool, Halt<H::Stop>> {
        if let Some(why) = self.why_void(task)? {
            return self.void(task, why).map(|()| false);
        }
        let is_unopened = |path: &&str| !task.opened.contains(*path);
        let unopened: Vec<&str> = turned
            .unopened
            .iter()
            .map(String::as_str)
            .filter(is_unopened)
            .collect();
        if task.opened.is_empty() && !unopened.is_empty() {
            return self.unread(task).map(|()| false);
        }
        if !unopened.is_empty() {
            let said = format!("the reviewing agent did not open {}", unopened.join(", "));
            self.ask(Doubt::new(UNOPENED, said))?;
        }
        Ok(true)
    }

    /// Nobody approves by specs that they have not seen.
    fn unread(&mut self, task: &mut Task) -> Result<(), Halt<H::Stop>> {
        let why = format!(
            "the approval does not count, because no spec in `{}` was opened",
            self.inputs.specs
        );
        task.bad_end = Some(UNOPENED.to_owned());
        task.unread += 1;
        if task.unread > 1 {
            return Err(self.stop(task, &why));
        }
        self.again(task, &format!("{why}: read those that the focus is about."))
    }

    /// Starts over, once.
    fn afresh(&mut self, task: &mut Task, why: &str) -> Result<(), Halt<H::Stop>> {
        if task.was_fresh {
            return Err(self.stop(task, why.trim_end_matches('.')));
        }
        task.was_fresh = true;
        (task.prompt, task.session) = (self.prompt(task.role), Session::New);
        self.retry(why)
    }

    fn retry(&mut self, why: &str) -> Result<(), Halt<H::Stop>> {
        let (iteration, reason) = (self.iteration, why.trim_end_matches('.').to_owned());
        self.announce(&PhaseEvent::RetryStart { iteration, reason })
    }

    fn stop(&self, task: &Task, why: &str) -> Halt<H::Stop> {
        let code = task
            .bad_end
            .clone()
            .unwrap_or_else(|| "no-marker".to_owned());
        let message = format!("{}: {why}", task.role.name());
        let hint = "mend what stands in the way, then: code-commit spec run --resume";
        self.unavailable(Cause {
            code,
            message,
            remedy: Some(hint.to_owned()),
        })
    }

    /// Keeps what was done so far.
    fn stop_at(&self, limit: Cause) -> Halt<H::Stop> {
        let hint = "look at what is there, raise the limit, then: code-commit spec run --resume";
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
