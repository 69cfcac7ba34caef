//! What an agent is asked, and what when it did not come to its end.

use agent::Session;
use perform::AgentStep;
use prompt::spec::{self, Turn};

use crate::run::{SpecLoop, Tries};
use crate::{Files, PhaseEvent, Role};

impl SpecLoop {
    /// A turn of `role` that was not tried before.
    pub(super) fn begin_turn(&mut self, role: Role) {
        self.role = role;
        self.tries = Tries::default();
        self.push_fresh();
    }

    /// The agent did not say how it stands: its own session first, then a fresh one.
    pub(super) fn ask_again(&mut self, why: &str) {
        match self.session.take() {
            Some(session) if !self.tries.resumed => {
                self.tries.resumed = true;
                self.push_retry(why);
                let prompt = spec::again(why, self.role.terminal());
                self.push_turn(prompt, Session::Resume(session));
            }
            Some(_) | None => self.try_fresh(why),
        }
    }

    /// Once more from the beginning, once.
    pub(super) fn try_fresh(&mut self, why: &str) {
        if self.tries.fresh {
            return self.stop(why.trim_end_matches('.'));
        }
        self.tries.fresh = true;
        self.push_retry(why);
        self.push_fresh();
    }

    fn push_retry(&mut self, why: &str) {
        let (iteration, reason) = (self.iteration, why.trim_end_matches('.').to_owned());
        self.announce(&PhaseEvent::RetryStart { iteration, reason });
    }

    pub(super) fn push_fresh(&mut self) {
        let session = Session::New(self.session_id(self.turn));
        self.push_turn(self.prompt(), session);
    }

    fn push_turn(&mut self, prompt: String, session: Session) {
        if let Some(passed) = self.used.passed(&self.inputs.limits) {
            return self.stop_at(&passed);
        }
        let system = spec::system(self.role.who(), &self.inputs.specs);
        self.push(AgentStep::Turn {
            number: self.turn,
            role: self.role.name().to_owned(),
            prompt: prompt.into(),
            system: Some(system.into()),
            session,
        });
    }

    fn prompt(&self) -> String {
        let [session, plan, review, check] =
            [self.files.session(), self.files.plan(), self.files.review(), self.files.check()]
                .map(|place| Files::path(&place));
        let put_back = self.put_back.iter().find(|(role, _)| *role == self.role);
        let turn = Turn {
            focus: &self.inputs.focus,
            specs: &self.inputs.specs,
            session: &session,
            plan: &plan,
            review: &review,
            has_review: self.has_review,
            check: self.check.as_deref().map(|ended| (ended, check.as_str())),
            initial_commit: self.head.as_deref(),
            put_back: put_back.map(|(_, paths)| paths.as_slice()).unwrap_or_default(),
        };
        match self.role {
            Role::Planning => spec::planning(&turn),
            Role::Implementing => spec::implementing(&turn),
            Role::Reviewing => spec::reviewing(&turn),
            Role::Audit => spec::audit(&self.inputs.specs),
        }
    }

    /// The name of a turn's own session: the run's, with the turn's number at its end.
    fn session_id(&self, turn: u32) -> String {
        let id = &self.inputs.id;
        let stem = id.len().checked_sub(4).and_then(|end| id.get(..end)).unwrap_or_default();
        format!("{stem}{:04x}", turn % 0x1_0000)
    }

    /// A turn that was begun and never ended was cut off by a kill: the next has a number, and a session, of its own.
    pub(super) fn renumbered(&self, step: &AgentStep) -> AgentStep {
        let mut step = step.clone();
        if let AgentStep::Turn { number, session, .. } = &mut step
            && self.begun >= *number
        {
            *number = self.begun + 1;
            if matches!(session, Session::New(_)) {
                *session = Session::New(self.session_id(*number));
            }
        }
        step
    }
}
