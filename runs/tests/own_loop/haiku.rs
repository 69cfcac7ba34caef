//! The loop: it gives its plan, its world and its words, and gets every promise.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use code_commit_engine::{Apply, Ask, AskAnswer, Harness as _, Journaled, Outcome, Stop};
use code_commit_guard::{Guard, Policy};
use code_commit_llm::Model;
use code_commit_logging::Redactor;
use code_commit_perform::{CommitWorld, Fault, Rules};
use code_commit_runner::Cancel;
use code_commit_runs::driver::{Asked, Context, Driver, Loop, LoopKind, Report, Resumed};
use code_commit_runs::registry::Known;
use code_commit_runs::{Exit, Failure, Project, records, resume};
use code_commit_settings::{Keys, Settings};
use serde::{Deserialize, Serialize};

/// Writes a poem of two verses, one question each.
pub(crate) struct Haiku<'h> {
    project: &'h Project<'h>,
    /// What happens after the next verse.
    pub(crate) then: Cell<Option<fn(&Cancel)>>,
    cancel: Cancel,
    redactor: Redactor,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Theme {
    key: Option<String>,
    about: String,
}

impl<'h> Haiku<'h> {
    pub(crate) fn of(project: &'h Project<'h>) -> Self {
        Self {
            project,
            then: Cell::default(),
            cancel: Cancel::new().unwrap(),
            redactor: Redactor::default(),
        }
    }

    fn live(&self) -> Driver<'_, Self> {
        Driver::new(self, self.project.lock().unwrap(), self.cancel.clone())
    }

    pub(crate) fn start(&self, key: Option<&str>) -> Result<Report, Failure> {
        let plan = Theme {
            key: key.map(str::to_owned),
            about: "snow".to_owned(),
        };
        self.live().start(plan, Asked { key, new: false })
    }
}

fn go_on(known: &Known, _: &resume::Request, project: &Project<'_>) -> Result<Exit, Failure> {
    Haiku::of(project).live().go_on(known).map(|done| done.exit)
}

pub(crate) const LOOPS: &[LoopKind] = &[Haiku::KIND];

impl Loop for Haiku<'_> {
    const KIND: LoopKind = LoopKind {
        step: "verse",
        work: "theme",
        ..LoopKind::of::<Self>("haiku", go_on)
    };
    type Plan = Theme;
    type Ready = Rc<dyn Model>;
    type Fault = Fault;
    type World<'w>
        = CommitWorld<'w>
    where
        Self: 'w;
    type Ended = Outcome;

    fn project(&self) -> &Project<'_> {
        self.project
    }

    fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    fn is_same(&self, asked: &Theme, recorded: &Theme) -> bool {
        asked.about == recorded.about
    }

    fn ready(
        &self,
        _: &mut Theme,
        recorded: Option<Resumed<'_>>,
    ) -> Result<Rc<dyn Model>, Failure> {
        let (settings, keys, host) = (Settings::default(), Keys::default(), self.project.host);
        let model = host.models.open(&settings, &keys, host)?;
        if let Some((_, past)) = recorded {
            records::pass_over(&past.lines, &*model);
        }
        Ok(model.into())
    }

    fn world<'w>(
        &'w self,
        _: &'w Theme,
        model: &'w Rc<dyn Model>,
        of: Context<'w>,
    ) -> Result<CommitWorld<'w>, Failure> {
        let (root, lock) = (self.project.root.clone(), of.lock);
        let guard = Guard::open(&root, Policy::commit()).unwrap().into();
        let rules = Rules { root, guard, lock };
        Ok(CommitWorld {
            holds_for: of.holds_for,
            ..CommitWorld::new(of.record, rules, Rc::clone(model), of.cancel)
        })
    }

    fn lead(
        &self,
        plan: &Theme,
        _: &Rc<dyn Model>,
        harness: &mut Journaled<CommitWorld<'_>>,
    ) -> Result<Outcome, Stop<Fault>> {
        for round in 1..=2 {
            let prompt = format!("verse {round} about {}", plan.about).into();
            let AskAnswer::Answered(answered) = harness.perform(Ask {
                round,
                prompt,
                stable: 0,
                system: 0,
            })?
            else {
                return Ok(Outcome::AttemptsUsedUp { rounds: round });
            };
            let (reply, seen) = (answered.reply(), BTreeMap::new());
            let need_bytes = 0;
            harness.perform(Apply {
                round,
                reply,
                seen,
                need_bytes,
            })?;
            if let Some(then) = self.then.take() {
                then(&self.cancel);
            }
        }
        Ok(Outcome::Done { rounds: 2 })
    }
}
