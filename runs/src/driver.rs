//! Runs, whatever their loop: answered from the record, gone on with, or begun; performed; closed.
//!
//! What is promised of a run is kept here and in the commands that find its loop in
//! [`Host::loops`](crate::Host). A loop gives data and a world.

mod earlier;
mod loop_trait;
mod summary;

use std::rc::Rc;

use anyhow::Context as _;
use code_commit_apply::Lock;
use code_commit_engine::{Event, Journaled, Stop};
use code_commit_logging::RunFolder;
use code_commit_perform::{Past, Record};
use code_commit_report::SUMMARY;
use code_commit_runner::Cancel;
use serde_json::json;

use self::earlier::Earlier;
pub(crate) use self::loop_trait::UNLIKE_RECORDED;
pub use self::loop_trait::{Asked, Context, Ending, Loop, Report, Resumed};
pub(crate) use self::summary::missing_summaries;
use self::summary::summary;
use crate::changes;
pub use crate::estimate::tell_of_agent as forecast;
use crate::exit::Failure;
pub use crate::kind::{InTree, LoopKind, Resume, TakesBack};
use crate::lock;
use crate::project::Project;
pub use crate::records::NewRun;
use crate::records::{self, Head, cannot_begin};
use crate::registry::Known;

impl LoopKind {
    /// A loop whose changes are kept as pre-images.
    pub const fn of<L: Loop>(name: &'static str, resume: Resume) -> Self {
        Self {
            name,
            step: "round",
            work: "query",
            newest_only: false,
            takes_back: TakesBack::PreImages,
            by_content: false,
            own_summary: None,
            goes_on: earlier::holds_something::<L>,
            resume,
            in_tree: |_, _| Some(InTree::AsRecorded),
        }
    }
}

/// A loop at work in a project, under its lock.
#[derive(Debug)]
pub struct Driver<'l, L> {
    of: &'l L,
    /// Held until the summary is written.
    lock: Rc<Lock>,
    /// Raised by Ctrl-C.
    cancel: Cancel,
}

impl<'l, L: Loop> Driver<'l, L> {
    /// At work under this lock; Ctrl-C raises `cancel`.
    pub fn new(of: &'l L, lock: Lock, cancel: Cancel) -> Self {
        let lock = lock.into();
        Self { of, lock, cancel }
    }

    fn project(&self) -> &'l Project<'l> {
        self.of.project()
    }

    fn folder(&self, known: &Known) -> RunFolder {
        RunFolder::open(known.path(&self.project().root), self.of.redactor().clone())
    }

    /// Answers the work from the record, goes on with its unfinished run, or begins it.
    pub fn start(&self, plan: L::Plan, asked: Asked<'_>) -> Result<Report<L::Ended>, Failure> {
        match earlier::look(self, &plan, asked)? {
            Earlier::None => self.begin(plan),
            Earlier::Unfinished(known, plan) => self.resume(&known, plan),
            Earlier::Finished(run, plan) => {
                self.say_finished(&run);
                self.close(&plan, &run, None)
            }
        }
    }

    /// Whether the work is answered from the record; says so.
    pub(crate) fn is_answered(&self, plan: &L::Plan, asked: Asked<'_>) -> Result<bool, Failure> {
        let Earlier::Finished(run, _) = earlier::look(self, plan, asked)? else {
            return Ok(false);
        };
        self.say_finished(&run);
        Ok(true)
    }

    fn say_finished(&self, run: &RunFolder) {
        let name = records::name(run.path());
        let again = if L::KIND.by_content {
            "; --new does it again"
        } else {
            ""
        };
        self.project().host.output.note(&format!(
            "{name} is already finished; no model was called{again}"
        ));
    }

    /// Begins a run.
    pub fn begin(&self, mut plan: L::Plan) -> Result<Report<L::Ended>, Failure> {
        let ready = self.of.ready(&mut plan, None)?;
        let plan = &plan;
        // From here on, whatever runs, git's configuration and rules are those that were read.
        let base = self.project().trusted.base();
        let new = self.of.new_run(plan)?.of(L::name(plan), base);
        let run = new.folder().clone();
        let stored = self.of.store(plan, &ready, &new)?;
        // Listed first: no kill leaves a record that no list knows.
        self.project().registry().add(run.path(), Some(stored))?;
        let record = new
            .record(self.of.observer(plan, &run))
            .map_err(cannot_begin)?;
        self.lead(plan, &ready, record, &Past::default())
    }

    /// Goes on with a run that was asked for by its name.
    pub fn go_on(&self, known: &Known) -> Result<Report<L::Ended>, Failure> {
        let run = self.folder(known);
        if L::KIND.newest_only {
            records::outcome_of(&run)?;
        }
        records::can_be_continued(run.path())?;
        let plan = self
            .of
            .load(&run, known)
            .map_err(|error| Failure::refused(error, "start a new run"))?;
        let past = Past::read_if_begun(run.path())
            .map_err(|error| Failure::refused(error, self.of.unlike_recorded(&run)))?;
        if L::kept(&past).is_none() {
            return Err(records::closed(&records::name(run.path()), "is finished"));
        }
        self.resume(known, plan)
    }

    /// Goes on where the journal ends: answers in it are not requested again.
    pub fn resume(&self, known: &Known, mut plan: L::Plan) -> Result<Report<L::Ended>, Failure> {
        let run = &self.folder(known);
        records::can_be_continued(run.path())?;
        let name = records::name(run.path());
        self.project().host.output.note(&format!("resuming {name}"));
        let past = Past::read_if_begun(run.path()).map_err(anyhow::Error::from)?;
        let ready = self.of.ready(&mut plan, Some((run, &past)))?;
        let then = Head::of(run).and_then(|head| head.trusted);
        let changed = then.and_then(|then| self.project().trusted.unlike(&then));
        changed
            .iter()
            .for_each(|warning| self.project().host.output.warn(warning));
        let (mut record, mut past) = Record::resume(run.clone(), self.of.observer(&plan, run))
            .map_err(|error| Failure::refused(error, self.of.unlike_recorded(run)))?;
        let kept = self.of.held(&plan, &past)?;
        if kept < past.answers.len() || past.outcome().is_some() {
            record
                .note(&Event::Resumed { kept })
                .map_err(anyhow::Error::from)?;
            let dropped = past.answers.split_off(kept);
            self.of.dropped(run, &dropped)?;
        }
        self.lead(&plan, &ready, record, &past)
    }

    fn lead(
        &self,
        plan: &L::Plan,
        ready: &L::Ready,
        record: Record,
        past: &Past,
    ) -> Result<Report<L::Ended>, Failure> {
        let (run, is_new) = (record.folder().clone(), past.lines.is_empty());
        let folder = run.clone();
        let context = Context {
            record: record.about(&self.project().root),
            past,
            lock: Rc::clone(&self.lock),
            cancel: self.cancel.clone(),
            holds_for: Box::new(move |outcome, interrupt| {
                self.of.holds_for(plan, &folder, outcome, interrupt)
            }),
        };
        // What agents may not change is settled by their own loop.
        if let (Some(tree), TakesBack::PreImages) =
            (self.project().trusted.tree(), L::KIND.takes_back)
        {
            lock::under_way(&self.lock, tree, run.path())?;
        }
        // A run that cannot take its first step leaves no record.
        let not_begun = |_: &Failure| {
            if is_new {
                records::discard(&run);
            }
        };
        let mut world = self.of.world(plan, ready, context).inspect_err(not_begun)?;
        let answers = self.of.settle(&mut world, past)?;
        let mut harness = Journaled::new(world, answers);
        match harness.run(|harness| self.of.lead(plan, ready, harness)) {
            Ok(ended) => {
                self.of.ended(&ended, harness.world())?;
                self.close(plan, &run, Some(ended))
            }
            Err(stop) => {
                self.of.stopped(harness.world())?;
                let unlike = self.of.unlike_recorded(&run);
                Err(failure(stop, unlike, |fault| {
                    let fault = self.of.fault(fault, &run);
                    fault.of_run(run.path(), L::KIND.step)
                }))
            }
        }
    }

    /// Stores the summary of a run and tells it. `now` is what its loop returned; a run that has ended before is
    /// answered from its record.
    pub(crate) fn close(
        &self,
        plan: &L::Plan,
        run: &RunFolder,
        now: Option<L::Ended>,
    ) -> Result<Report<L::Ended>, Failure> {
        let (root, output) = (&self.project().root, self.project().host.output);
        let changes = changes::of_run(root, run.path())?;
        let past = Past::read(run.path()).map_err(anyhow::Error::from)?;
        let steps = past.steps();
        let no_end = "the record of a finished run has no end";
        let holds_for = past.end().context(no_end)?.1.clone();
        let from_record = now.is_none();
        let recorded = || L::Ended::recorded(run, &past);
        let ended = now.or_else(recorded).context(no_end)?;
        let summary = summary(root, run, &L::KIND, &steps, &changes).context(no_end)?;
        if !from_record && L::KIND.own_summary.is_none() {
            run.store_json(SUMMARY, &summary)
                .map_err(anyhow::Error::from)?;
        }
        let report = Report {
            exit: ended.exit(),
            ended,
            holds_for,
            changes,
            summary,
            run: run.clone(),
            past,
            from_record,
        };
        self.of
            .last_words(plan, &report)
            .print(Some(&report.summary), output);
        self.of.refusal(&report)?;
        let mut line = self.of.members(plan, &report);
        line.insert("event".to_owned(), json!("summary"));
        if L::KIND.own_summary.is_none() {
            line.insert("summary".to_owned(), json!(report.summary));
        }
        if from_record {
            line.insert("from_record".to_owned(), json!(true));
        }
        output.object(&line.into());
        Ok(report)
    }
}

/// The error for a run that was stopped.
pub(crate) fn failure<F: std::error::Error + Send + Sync + 'static>(
    stop: Stop<F>,
    unlike_recorded: String,
    fault: impl FnOnce(F) -> Failure,
) -> Failure {
    match stop {
        Stop::Fault(error) => fault(error),
        stop @ (Stop::Differs(_) | Stop::Unreadable { .. }) => {
            Failure::refused(stop, unlike_recorded)
        }
    }
}
