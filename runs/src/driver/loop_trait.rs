//! What a loop gives to the driver of its runs.

use std::rc::Rc;

use code_commit_apply::Lock;
use code_commit_dir::Interrupt;
use code_commit_engine::{HoldsFor, Journaled, Outcome, Recorded, Stop, Stored, World};
use code_commit_logging::{Redactor, RunFolder, Stamp};
use code_commit_loop_commit::on_screen;
use code_commit_perform::{HoldsNow, Observer, Past, Record, Silent, output_text};
use code_commit_report::{LastWords, Summary};
use code_commit_runner::Cancel;
use code_commit_timeline::Reason;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::changes::FileChange;
use crate::exit::{Exit, Failure};
use crate::kind::LoopKind;
use crate::project::Project;
use crate::records::{self, NewRun};
use crate::registry::Known;
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

/// What is there of a run that goes on: its folder, and what its journal holds.
pub type Resumed<'r> = (&'r RunFolder, &'r Past);

/// What the driver gives to a world.
pub struct Context<'w> {
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

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

/// A loop: its data, its world and its words. The value holds what its runs share, such as flags and settings.
pub trait Loop {
    /// The loop as data.
    const KIND: LoopKind;
    /// What a run has reached that is done.
    const GOAL: &'static str = "the build passes";
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
    fn name(_plan: &Self::Plan) -> &'static str {
        Self::KIND.name
    }

    /// The phase that a run is about, where only the newest of each can go on.
    fn phase(_plan: &Self::Plan) -> Option<u32> {
        None
    }

    /// The plan of a recorded run. Refuses one that differs from the plan that the run began with.
    fn load(&self, folder: &RunFolder, known: &Known) -> anyhow::Result<Self::Plan> {
        known.plan(folder)
    }

    /// The project.
    fn project(&self) -> &Project<'_>;

    /// Redacts every key.
    fn redactor(&self) -> &Redactor;

    /// Whether both are the same work.
    fn is_same(&self, asked: &Self::Plan, recorded: &Self::Plan) -> bool;

    /// How many recorded answers hold if the run goes on; `None` if it is over.
    fn kept(past: &Past) -> Option<usize> {
        past.outcome().is_none().then_some(past.answers.len())
    }

    /// How many recorded answers of a run that goes on hold, by what is on disk.
    fn held(&self, _plan: &Self::Plan, past: &Past) -> Result<usize, Failure> {
        Ok(Self::kept(past).unwrap_or(past.answers.len()))
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

    /// Opens what a run needs, and may complete its plan. `recorded` is there for a run that goes on.
    fn ready(
        &self,
        plan: &mut Self::Plan,
        recorded: Option<Resumed<'_>>,
    ) -> Result<Self::Ready, Failure>;

    /// A folder for a new run; by default among those of the default loop.
    fn new_run(&self, plan: &Self::Plan) -> Result<NewRun, Failure> {
        let name = format!("{}-{}", Stamp::now().folder_name(), Self::name(plan));
        let (logs, redactor) = (records::logs(&self.project().root), self.redactor().clone());
        NewRun::create(&logs, &name, redactor, "make the folder writable")
    }

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
    fn observer(&self, _plan: &Self::Plan, _run: &RunFolder) -> Box<dyn Observer> {
        Box::new(Silent)
    }

    /// The world of a run.
    fn world<'w>(
        &'w self,
        plan: &'w Self::Plan,
        ready: &'w Self::Ready,
        ground: Context<'w>,
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
        let trusted = &self.project().trusted;
        let own = run
            .path()
            .parent()
            .and_then(|runs| runs.strip_prefix(trusted.root()).ok());
        let own: Vec<String> = own
            .map(|own| own.display().to_string())
            .into_iter()
            .collect();
        let tree = verdict::tree(trusted, &own, interrupt);
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

    /// The last words, for a person.
    fn last_words(&self, _plan: &Self::Plan, report: &Report<Self::Ended>) -> LastWords {
        report.last_words(Self::KIND.step, Self::GOAL)
    }

    /// What else the summary under `--json` has.
    fn members(&self, _plan: &Self::Plan, _report: &Report<Self::Ended>) -> Map<String, Value> {
        Map::new()
    }

    /// The error of a command whose run has ended, but whose work is not complete.
    fn refusal(&self, _report: &Report<Self::Ended>) -> Result<(), Failure> {
        Ok(())
    }
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

/// A run that is over.
#[derive(Debug)]
#[expect(missing_docs, reason = "those without are what their types say")]
pub struct Report<E = Outcome> {
    pub exit: Exit,
    pub ended: E,
    pub holds_for: HoldsFor,
    /// What it changed.
    pub changes: Vec<FileChange>,
    /// In numbers.
    pub summary: Summary,
    pub run: RunFolder,
    /// What its journal holds.
    pub past: Past,
    /// Whether it was over before: no model was called.
    pub from_record: bool,
}

impl<E: Ending> Report<E> {
    pub(crate) fn last_words(&self, step: &str, goal: &str) -> LastWords {
        LastWords::of(self.ended.as_ref(), self.reason(), step, goal)
    }

    /// Why it did not reach its goal.
    pub(crate) fn reason(&self) -> Option<Reason> {
        self.past.steps().reason(&|file| shown(&self.run, file))
    }
}

/// A file of the record with what a terminal would show of it.
fn shown(run: &RunFolder, file: &str) -> Option<String> {
    let text = output_text(run, file).ok()?;
    Some(on_screen(text.as_str()).into_owned())
}
