//! The loop: it gives its plan, its world and its words, and gets every promise.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use code_commit_changes::ChangeEngine;
use code_commit_engine::{Apply, Ask, AskAnswer, Harness as _, Journaled, Outcome, Stop};
use code_commit_guard::{Guard, Policy};
use code_commit_llm::Model;
use code_commit_logging::{Layout, Redactor, RunFolder};
use code_commit_perform::{
    Asking, BuildCommand, CommitWorld, Fault, Observer, Past, Rules, Silent,
};
use code_commit_runner::{Cancel, Confinement, Env, Limits};
use code_commit_runs::life::{Asked, Facts, Finished, Ground, Life, Loop, NewRun, Over, Row};
use code_commit_runs::registry::Known;
use code_commit_runs::trusted::Trusted;
use code_commit_runs::{Exit, Failure, Site, records, resume};
use code_commit_settings::{Keys, Settings};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Writes a poem of two verses, one question each.
pub(crate) struct Haiku<'h> {
    site: &'h Site<'h>,
    /// What happens after the next verse.
    pub(crate) then: Cell<Option<fn(&Cancel)>>,
    cancel: Cancel,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Theme {
    #[serde(rename = "loop")]
    kind: String,
    version: String,
    key: Option<String>,
    about: String,
}

impl<'h> Haiku<'h> {
    pub(crate) fn of(site: &'h Site<'h>) -> Self {
        Self {
            site,
            then: Cell::default(),
            cancel: Cancel::new().unwrap(),
        }
    }

    fn live(&self) -> Life<'_, Self> {
        let (lock, cancel) = (self.site.lock().unwrap().into(), self.cancel.clone());
        Life {
            of: self,
            site: self.site,
            lock,
            cancel,
            redactor: Redactor::default(),
        }
    }

    pub(crate) fn start(&self, key: Option<&str>) -> Result<Finished, Failure> {
        let [kind, version, about] = ["haiku", "1", "snow"].map(str::to_owned);
        let plan = Theme {
            kind,
            version,
            key: key.map(str::to_owned),
            about,
        };
        self.live().start(plan, Asked { key, new: false })
    }
}

fn go_on(known: &Known, _: &resume::Request, site: &Site<'_>) -> Result<Exit, Failure> {
    Haiku::of(site).live().go_on(known).map(|done| done.exit)
}

pub(crate) const ROWS: &[Row] = &[Row::of::<Haiku<'_>>(go_on)];

impl Loop for Haiku<'_> {
    const FACTS: Facts = Facts {
        kind: "haiku",
        step: "verse",
        work: "theme",
        ..Facts::PLAIN
    };
    type Plan = Theme;
    type Ready = Rc<dyn Model>;
    type Fault = Fault;
    type World<'w>
        = CommitWorld<'w>
    where
        Self: 'w;
    type Ended = Outcome;

    fn trusted(&self) -> &Trusted {
        &self.site.trusted
    }

    fn is_same(&self, asked: &Theme, recorded: &Theme) -> bool {
        asked.about == recorded.about
    }

    fn ready(&self, _: &mut Theme, run: Option<&RunFolder>) -> Result<Rc<dyn Model>, Failure> {
        let (settings, keys, host) = (Settings::default(), Keys::default(), self.site.host);
        let model = host.models.open(&settings, &keys, host)?;
        let past = run
            .map(|run| Past::read(run.path()).unwrap())
            .unwrap_or_default();
        records::pass_over(&past.lines, &*model);
        Ok(model.into())
    }

    fn new_run(&self, _: &Theme) -> Result<NewRun, Failure> {
        NewRun::create(
            &self.site.root.join("haikus"),
            "haiku",
            Redactor::default(),
            "make room",
        )
    }

    fn observer(&self, _: &Theme, _: &RunFolder) -> Box<dyn Observer> {
        Box::new(Silent)
    }

    fn world<'w>(
        &'w self,
        _: &'w Theme,
        model: &'w Rc<dyn Model>,
        Ground {
            record,
            lock,
            cancel,
            holds_for,
            ..
        }: Ground<'w>,
    ) -> Result<CommitWorld<'w>, Failure> {
        let root = self.site.root.clone();
        let guard = Guard::open(&root, Policy::commit()).unwrap();
        let (argv, sealed, env, limits) =
            (Vec::new(), Vec::new(), Env::default(), Limits::default());
        let build = BuildCommand {
            argv,
            env,
            timeout: None,
            limits,
            confinement: Confinement::off(),
            sealed,
        };
        Ok(CommitWorld {
            record,
            rules: Rules {
                root,
                guard: guard.into(),
                lock,
            },
            model: Rc::clone(model),
            asking: Asking::default(),
            build,
            account: ChangeEngine::default(),
            codebase: "".into(),
            layout: Layout::NumberFirst,
            said_log: None,
            commits: None,
            holds_for,
            cancel,
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
            harness.perform(Apply { round, reply, seen })?;
            if let Some(then) = self.then.take() {
                then(&self.cancel);
            }
        }
        Ok(Outcome::Done { rounds: 2 })
    }

    fn tell(&self, _: &Theme, _: &Over<'_>) -> Result<Map<String, Value>, Failure> {
        Ok(Map::new())
    }
}
