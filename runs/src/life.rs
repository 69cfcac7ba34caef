//! One life of a run, whatever its loop: answered from the record, gone on with, or begun; performed; closed.
//!
//! What is promised of a run is kept here and in the commands that find its loop by its row in
//! [`Host::loops`](crate::Host). A loop gives data and a world.

mod close;
mod earlier;
mod summary;

use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use anyhow::Context as _;
use code_commit_apply::Lock;
use code_commit_dir::Interrupt;
use code_commit_engine::{HoldsFor, Journaled, Note, Outcome, Recorded, Stop, World};
use code_commit_logging::{Redactor, RunFolder, Stored};
use code_commit_perform::{HoldsNow, Observer, Past, Record};
use code_commit_runner::Cancel;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use self::close::{Finished, Over};
use self::earlier::Earlier;
pub(crate) use self::summary::{missing_summaries, short_log};
pub use crate::estimate::tell_of_agent as forecast;
use crate::exit::{Exit, Failure};
pub use crate::records::NewRun;
use crate::records::{self, cannot_begin};
use crate::registry::{Known, RUN_JSON};
pub use crate::row::{Facts, InTree, Replay, Resume, Row, TakesBack};
use crate::site::Site;
use crate::{lock, verdict};

/// What to do about a record of another run.
pub(crate) const UNLIKE_RECORDED: &str = "a record that was changed cannot be resumed: start a new run";

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
        f.debug_struct("Ground").field("record", &self.record).finish_non_exhaustive()
    }
}

/// A loop: its data, its world and its words. The value holds what its runs share, such as flags and settings.
pub trait Loop {
    /// Its row.
    const FACTS: Facts;
    /// What a run is to do, as `run.json` has it.
    type Plan: Serialize + DeserializeOwned;
    /// What is opened before the first step: a model, a guard.
    type Ready;
    /// Why a run was stopped from the outside.
    type Fault: std::error::Error + Send + Sync + 'static;
    /// Performs what the loop asks for.
    type World<'w>: World<Fault = Self::Fault>
    where
        Self: 'w;
    /// What the loop returns.
    type Ended: AsRef<Outcome>;

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
        let text = folder.read(RUN_JSON)?;
        known.check_plan(&text)?;
        let name = records::name(folder.path());
        serde_json::from_str(&text)
            .with_context(|| format!("{RUN_JSON} of {name} was written by another version"))
    }

    /// The root of the project.
    fn root(&self) -> &Path;

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
    fn still_holds(&self, plan: &Self::Plan, run: &RunFolder, past: &Past) -> Result<bool, Failure> {
        Ok(past.end().is_some_and(|(outcome, of)| {
            of.tree.is_some() && *of == self.holds_for(plan, run, outcome, code_commit_dir::NEVER)
        }))
    }

    /// Opens what a run needs, and may complete its plan. `run` is the folder of a run that goes on.
    fn ready(&self, plan: &mut Self::Plan, run: Option<&RunFolder>) -> Result<Self::Ready, Failure>;

    /// A folder for a new run.
    fn new_run(&self, plan: &Self::Plan) -> Result<NewRun, Failure>;

    /// Stores the plan, and what belongs to it.
    fn store(&self, plan: &Self::Plan, new: &NewRun) -> Result<Stored, Failure> {
        new.store(plan)
    }

    /// Sees the run while it is in progress.
    fn observer(&self, plan: &Self::Plan, run: &RunFolder) -> Box<dyn Observer>;

    /// The world of a run.
    fn world<'w>(
        &'w self,
        plan: &'w Self::Plan,
        ready: Self::Ready,
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
        harness: &mut Journaled<Self::World<'_>>,
    ) -> Result<Self::Ended, Stop<Self::Fault>>;

    /// After the end is on record.
    fn ended(&self, _ended: Self::Ended, _world: &mut Self::World<'_>) -> Result<(), Failure> {
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
        let root = self.root();
        let own = run.path().parent().and_then(|runs| runs.strip_prefix(root).ok());
        let own: Vec<String> = own.map(|own| own.display().to_string()).into_iter().collect();
        HoldsFor { tree: verdict::tree(root, &own, interrupt), ..HoldsFor::default() }
    }

    /// The error for a run that was stopped, with its exit code and hint.
    fn fault(&self, fault: Self::Fault, run: &RunFolder) -> Failure {
        let name = records::name(run.path());
        Failure::new(Exit::Fault, fault).help(format!("fix that, then continue: code-commit resume {name}"))
    }

    /// What to do about a record of another run.
    fn unlike_recorded(&self, _run: &RunFolder) -> String {
        UNLIKE_RECORDED.to_owned()
    }

    /// The last words, for a person; gives what else the summary under `--json` has.
    fn tell(&self, plan: &Self::Plan, over: &Over<'_>) -> Result<Map<String, Value>, Failure>;

    /// The exit code of a run that ended.
    fn exit(&self, over: &Over<'_>) -> Exit {
        Exit::from(over.outcome)
    }
}

impl Row {
    /// The row of a loop.
    pub const fn of<L: Loop>(resume: Resume, replay: Replay) -> Self {
        let in_tree = |_: &Known, _: &Site<'_>| Some(InTree::AsRecorded);
        Self { facts: L::FACTS, goes_on: earlier::holds_something::<L>, resume, replay, in_tree }
    }
}

/// A loop at work in a project, under its lock.
#[derive(Debug)]
pub struct Life<'l, L> {
    /// The loop.
    pub of: &'l L,
    /// The project.
    pub site: &'l Site<'l>,
    /// Held until the summary is written.
    pub lock: Rc<Lock>,
    /// Raised by Ctrl-C.
    pub cancel: Cancel,
    /// Redacts every key.
    pub redactor: Redactor,
}

impl<L: Loop> Life<'_, L> {
    /// Answers the work from the record, goes on with its unfinished run, or begins it.
    pub fn start(&self, plan: L::Plan, asked: Asked<'_>) -> Result<Finished, Failure> {
        match earlier::look(self, &plan, asked)? {
            Earlier::None => self.begin(plan),
            Earlier::Unfinished(known, plan) => self.resume(&known, plan),
            Earlier::Finished(run, plan) => {
                let name = records::name(run.path());
                self.site.host.output.note(&format!("{name} has done this already: nobody was asked"));
                self.close(&plan, &run, None)
            }
        }
    }

    /// Begins a run.
    pub fn begin(&self, mut plan: L::Plan) -> Result<Finished, Failure> {
        let ready = self.of.ready(&mut plan, None)?;
        self.begin_with(&plan, ready)
    }

    /// Begins a run with what was opened for it.
    pub fn begin_with(&self, plan: &L::Plan, ready: L::Ready) -> Result<Finished, Failure> {
        self.begin_in(self.of.new_run(plan)?, plan, ready)
    }

    /// Begins a run in a folder that was made for it.
    pub(crate) fn begin_in(&self, new: NewRun, plan: &L::Plan, ready: L::Ready) -> Result<Finished, Failure> {
        let run = new.folder().clone();
        let stored = self.of.store(plan, &new)?;
        // Listed first: no kill leaves a record that no list knows.
        self.site.registry().add(run.path(), Some(stored))?;
        let record = new.record(self.of.observer(plan, &run)).map_err(cannot_begin)?;
        self.lead(plan, ready, record, &Past::default())
    }

    /// Goes on with a run that was asked for by its name.
    pub fn go_on(&self, known: &Known) -> Result<Finished, Failure> {
        let run = RunFolder::open(known.path(&self.site.root), self.redactor.clone());
        if L::FACTS.newest_only {
            records::outcome_of(&run)?;
        }
        records::can_be_continued(run.path())?;
        let plan = self.of.load(&run, known).map_err(|error| Failure::refused(error, "start a new run"))?;
        let past = Past::read_if_begun(run.path())
            .map_err(|error| Failure::refused(error, self.of.unlike_recorded(&run)))?;
        if L::kept(&past).is_none() {
            return Err(records::closed(&records::name(run.path()), "is over"));
        }
        self.resume(known, plan)
    }

    /// Goes on where the journal ends: answers in it are not requested again.
    pub fn resume(&self, known: &Known, mut plan: L::Plan) -> Result<Finished, Failure> {
        let run = RunFolder::open(known.path(&self.site.root), self.redactor.clone());
        records::can_be_continued(run.path())?;
        let name = records::name(run.path());
        self.site.host.output.note(&format!("resuming {name}"));
        let ready = self.of.ready(&mut plan, Some(&run))?;
        self.resume_with(&run, &plan, ready)
    }

    /// Goes on with what was opened for it.
    pub(crate) fn resume_with(
        &self,
        run: &RunFolder,
        plan: &L::Plan,
        ready: L::Ready,
    ) -> Result<Finished, Failure> {
        let (mut record, mut past) = Record::resume(run.clone(), self.of.observer(plan, run))
            .map_err(|error| Failure::refused(error, self.of.unlike_recorded(run)))?;
        let kept = L::kept(&past).unwrap_or(past.answers.len());
        if kept < past.answers.len() || past.outcome().is_some() {
            record.note(&Note::Resumed { kept }).map_err(anyhow::Error::from)?;
            let dropped = past.answers.split_off(kept);
            self.of.dropped(run, &dropped)?;
        }
        self.lead(plan, ready, record, &past)
    }

    fn lead(
        &self,
        plan: &L::Plan,
        ready: L::Ready,
        record: Record,
        past: &Past,
    ) -> Result<Finished, Failure> {
        let (began, run, is_new) = (now(), record.folder().clone(), past.lines.is_empty());
        let folder = run.clone();
        let ground = Ground {
            record: record.about(&self.site.root),
            past,
            lock: Rc::clone(&self.lock),
            cancel: self.cancel.clone(),
            holds_for: Box::new(move |outcome, interrupt| {
                self.of.holds_for(plan, &folder, outcome, interrupt)
            }),
        };
        // What agents may not change is settled by their own loop.
        if let (Some(tree), TakesBack::PreImages) = (&self.site.tree, L::FACTS.takes_back) {
            lock::under_way(&self.lock, tree, run.path())?;
        }
        // A run that cannot take its first step leaves no record.
        let not_begun = |_: &Failure| {
            if is_new {
                records::discard(&run);
            }
        };
        let mut world = self.of.world(plan, ready, ground).inspect_err(not_begun)?;
        let answers = self.of.settle(&mut world, past)?;
        let mut harness = Journaled::new(world, answers);
        match harness.run(|harness| self.of.lead(plan, harness)) {
            Ok(ended) => {
                self.of.ended(ended, harness.world())?;
                self.close(plan, &run, Some(began.elapsed()))
            }
            Err(stop) => {
                self.of.stopped(harness.world())?;
                Err(failure(stop, &run, self.of.unlike_recorded(&run), |fault| self.of.fault(fault, &run)))
            }
        }
    }
}

/// The error for a run that was stopped.
pub(crate) fn failure<F: std::error::Error + Send + Sync + 'static>(
    stop: Stop<F>,
    run: &RunFolder,
    unlike_recorded: String,
    fault: impl FnOnce(F) -> Failure,
) -> Failure {
    match stop {
        Stop::Fault(error) => fault(error).of_run(run.path()),
        stop @ (Stop::Differs(_) | Stop::Unreadable { .. }) => Failure::refused(stop, unlike_recorded),
    }
}

#[expect(clippy::disallowed_methods, reason = "the summary says how long the run took")]
fn now() -> Instant {
    Instant::now()
}
