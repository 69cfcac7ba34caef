//! What a loop gives to the life of its runs.

use std::rc::Rc;

use code_commit_apply::Lock;
use code_commit_dir::Interrupt;
use code_commit_engine::{HoldsFor, Journaled, Outcome, Recorded, Stop, Stored, World};
use code_commit_logging::RunFolder;
use code_commit_perform::{HoldsNow, Observer, Past, Record};
use code_commit_report::{Output, Summary};
use code_commit_runner::Cancel;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::changes::FileChange;
use crate::exit::{Exit, Failure};
use crate::records::{self, NewRun};
use crate::registry::Known;
use crate::row::Facts;
use crate::trusted::Trusted;
use crate::verdict;

/// What to do about a record of another run.
pub(crate) const UNLIKE_RECORDED: &str =
    "a record that was changed cannot be resumed: start a new run";

/// What a supervisor asks for besides the work.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// Its name for the work: a finished run of that name is answered from the record.
    pub key: Option<&'a str>,
    /// Begin a new run, whatever is recorded.
    pub new: bool,
}

/// What the life gives to a world.
pub struct Ground<'w> {
    /// Where everything is recorded.
    pub record: Record,
    /// What is recorded already.
    pub past: &'w Past,
    /// Held until the summary is written.
    pub lock: Rc<Lock>,
    /// Raised by Ctrl-C.
    pub cancel: Cancel,
    /// What the end of the run holds for.
    pub holds_for: HoldsNow<'w>,
}

impl std::fmt::Debug for Ground<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ground")
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

/// A loop: its data, its world and its words. The value holds what its runs share, such as flags and settings.
pub trait Loop {
    /// Its row.
    const FACTS: Facts;
    /// What a run is to do, as `run.json` has it.
    type Plan: Serialize + DeserializeOwned;
    /// What is opened before the first step, for the whole run: a model, a guard.
    type Ready;
    /// Why a run was stopped from the outside.
    type Fault: std::error::Error + Send + Sync + 'static;
    /// Performs what the loop asks for.
    type World<'w>: World<Fault = Self::Fault>
    where
        Self: 'w;
    /// What the loop returns.
    type Ended: Ending;

    /// The name of the loop in `run.json`; one value may stand for two loops that differ in their plans.
    fn kind(_plan: &Self::Plan) -> &'static str {
        Self::FACTS.kind
    }

    /// The phase that a run is about, where only the newest of each can go on.
    fn phase(_plan: &Self::Plan) -> Option<u32> {
        None
    }

    /// The plan of a recorded run. Refuses one that differs from the plan that the run began with.
    fn load(&self, folder: &RunFolder, known: &Known) -> anyhow::Result<Self::Plan> {
        known.plan(folder)
    }

    /// What does not change while commands of the project run.
    fn trusted(&self) -> &Trusted;

    /// Whether both are the same work.
    fn is_same(&self, asked: &Self::Plan, recorded: &Self::Plan) -> bool;

    /// How many recorded answers hold if the run goes on; `None` if it is over.
    fn kept(past: &Past) -> Option<usize> {
        past.outcome().is_none().then_some(past.answers.len())
    }

    /// Whether what is on disk is still what the unfinished run was about.
    fn may_go_on(&self, _plan: &Self::Plan, _run: &RunFolder) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether the verdict of a finished run still holds.
    fn still_holds(
        &self,
        plan: &Self::Plan,
        run: &RunFolder,
        past: &Past,
    ) -> Result<bool, Failure> {
        Ok(past.end().is_some_and(|(outcome, of)| {
            of.tree.is_some() && *of == self.holds_for(plan, run, outcome, code_commit_dir::NEVER)
        }))
    }

    /// Opens what a run needs, and may complete its plan. `run` is the folder of a run that goes on.
    fn ready(&self, plan: &mut Self::Plan, run: Option<&RunFolder>)
    -> Result<Self::Ready, Failure>;

    /// A folder for a new run.
    fn new_run(&self, plan: &Self::Plan) -> Result<NewRun, Failure>;

    /// Stores the plan, and what belongs to it.
    fn store(
        &self,
        plan: &Self::Plan,
        _ready: &Self::Ready,
        new: &NewRun,
    ) -> Result<Stored, Failure> {
        new.store(plan)
    }

    /// Sees the run while it is in progress.
    fn observer(&self, plan: &Self::Plan, run: &RunFolder) -> Box<dyn Observer>;

    /// The world of a run.
    fn world<'w>(
        &'w self,
        plan: &'w Self::Plan,
        ready: &'w Self::Ready,
        ground: Ground<'w>,
    ) -> Result<Self::World<'w>, Failure>;

    /// These answers of a run that goes on do not hold any more.
    fn dropped(&self, _run: &RunFolder, _answers: &[Recorded]) -> Result<(), Failure> {
        Ok(())
    }

    /// Settles what a killed step left; gives the answers that hold.
    fn settle(&self, _world: &mut Self::World<'_>, past: &Past) -> Result<Vec<Recorded>, Failure> {
        Ok(past.answers.clone())
    }

    /// Runs the loop.
    fn lead(
        &self,
        plan: &Self::Plan,
        ready: &Self::Ready,
        harness: &mut Journaled<Self::World<'_>>,
    ) -> Result<Self::Ended, Stop<Self::Fault>>;

    /// After the end is on record.
    fn ended(&self, _ended: &Self::Ended, _world: &mut Self::World<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// After the run was stopped.
    fn stopped(&self, _world: &mut Self::World<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// What the end of a run holds for.
    fn holds_for(
        &self,
        _plan: &Self::Plan,
        run: &RunFolder,
        _outcome: &Outcome,
        interrupt: Interrupt<'_>,
    ) -> HoldsFor {
        let trusted = self.trusted();
        let own = run
            .path()
            .parent()
            .and_then(|runs| runs.strip_prefix(trusted.root()).ok());
        let own: Vec<String> = own
            .map(|own| own.display().to_string())
            .into_iter()
            .collect();
        let tree = verdict::tree(trusted.root(), trusted.surroundings().ok(), &own, interrupt);
        HoldsFor {
            tree,
            ..HoldsFor::default()
        }
    }

    /// The error for a run that was stopped, with its exit code and hint.
    fn fault(&self, fault: Self::Fault, run: &RunFolder) -> Failure {
        let name = records::name(run.path());
        Failure::new(Exit::Fault, fault).help(format!(
            "fix that, then continue: code-commit resume {name}"
        ))
    }

    /// What to do about a record of another run.
    fn unlike_recorded(&self, _run: &RunFolder) -> String {
        UNLIKE_RECORDED.to_owned()
    }

    /// The last words, for a person; gives what else the summary under `--json` has.
    fn tell(
        &self,
        plan: &Self::Plan,
        over: &Over<'_, Self::Ended>,
    ) -> Result<Map<String, Value>, Failure>;
}

/// What a loop returns: how it ended, and what its last words need besides.
pub trait Ending: AsRef<Outcome> + Sized {
    /// What the loop returned in a run that was over before; `None` if its record does not say.
    fn recorded(run: &RunFolder, past: &Past) -> Option<Self>;

    /// The exit code.
    fn exit(&self) -> Exit {
        Exit::from(self.as_ref())
    }
}

impl Ending for Outcome {
    fn recorded(_: &RunFolder, past: &Past) -> Option<Self> {
        past.outcome().cloned()
    }
}

/// A run that is over, for its last words.
#[derive(Debug)]
#[expect(missing_docs, reason = "those without are what their types say")]
pub struct Over<'o, E = Outcome> {
    pub run: &'o RunFolder,
    pub past: &'o Past,
    pub ended: &'o E,
    pub holds_for: &'o HoldsFor,
    /// What it changed.
    pub changes: &'o [FileChange],
    /// In numbers; `None` if its loop keeps a summary of its own.
    pub summary: Option<&'o Summary>,
    pub output: &'o Output,
}

/// A run that is over and was told of.
#[derive(Debug)]
#[expect(missing_docs, reason = "those without are what their types say")]
pub struct Finished<E = Outcome> {
    pub exit: Exit,
    pub ended: E,
    /// What it changed.
    pub changes: Vec<FileChange>,
    pub run: RunFolder,
    /// What its journal holds.
    pub past: Past,
    /// Whether it was over before: no model was called.
    pub from_record: bool,
}
