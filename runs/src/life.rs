//! One life of a run, whatever its loop: answered from the record, gone on with, or begun; performed; closed.
//!
//! What is promised of a run is kept here and in the commands that find its loop by its row in
//! [`Host::loops`](crate::Host). A loop gives data and a world.

mod earlier;
mod loop_trait;
mod summary;

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use code_commit_apply::Lock;
use code_commit_engine::{Journaled, Note, Stop};
use code_commit_logging::{Redactor, RunFolder};
use code_commit_perform::{Past, Record};
use code_commit_report::SUMMARY;
use code_commit_runner::Cancel;
use serde_json::json;

use self::earlier::Earlier;
pub(crate) use self::loop_trait::UNLIKE_RECORDED;
pub use self::loop_trait::{Asked, Ending, Finished, Ground, Loop, Over};
use self::summary::{elapsed, summary};
pub(crate) use self::summary::{missing_summaries, short_log};
use crate::changes;
pub use crate::estimate::tell_of_agent as forecast;
use crate::exit::Failure;
use crate::lock;
pub use crate::records::NewRun;
use crate::records::{self, Head, cannot_begin};
use crate::registry::Known;
pub use crate::row::{Facts, InTree, Resume, Row, TakesBack};
use crate::site::Site;

impl Row {
    /// The row of a loop.
    pub const fn of<L: Loop>(resume: Resume) -> Self {
        let in_tree = |_: &Known, _: &Site<'_>| Some(InTree::AsRecorded);
        Self {
            facts: L::FACTS,
            goes_on: earlier::holds_something::<L>,
            resume,
            in_tree,
        }
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
    pub fn start(&self, plan: L::Plan, asked: Asked<'_>) -> Result<Finished<L::Ended>, Failure> {
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
        let again = if L::FACTS.by_content {
            "; --new does it again"
        } else {
            ""
        };
        self.site.host.output.note(&format!(
            "{name} is already finished; no model was called{again}"
        ));
    }

    /// Begins a run.
    pub fn begin(&self, mut plan: L::Plan) -> Result<Finished<L::Ended>, Failure> {
        let ready = self.of.ready(&mut plan, None)?;
        let plan = &plan;
        // From here on, whatever runs, git's configuration and rules are those that were read.
        let new = self.of.new_run(plan)?.trusting(self.of.trusted().base());
        let run = new.folder().clone();
        let stored = self.of.store(plan, &ready, &new)?;
        // Listed first: no kill leaves a record that no list knows.
        self.site.registry().add(run.path(), Some(stored))?;
        let record = new
            .record(self.of.observer(plan, &run))
            .map_err(cannot_begin)?;
        self.lead(plan, &ready, record, &Past::default())
    }

    /// Goes on with a run that was asked for by its name.
    pub fn go_on(&self, known: &Known) -> Result<Finished<L::Ended>, Failure> {
        let run = RunFolder::open(known.path(&self.site.root), self.redactor.clone());
        if L::FACTS.newest_only {
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
            return Err(records::closed(&records::name(run.path()), "is over"));
        }
        self.resume(known, plan)
    }

    /// Goes on where the journal ends: answers in it are not requested again.
    pub fn resume(&self, known: &Known, mut plan: L::Plan) -> Result<Finished<L::Ended>, Failure> {
        let run = &RunFolder::open(known.path(&self.site.root), self.redactor.clone());
        records::can_be_continued(run.path())?;
        let name = records::name(run.path());
        self.site.host.output.note(&format!("resuming {name}"));
        let ready = self.of.ready(&mut plan, Some(run))?;
        let then = Head::of(run).and_then(|head| head.trusted);
        let changed = then.and_then(|then| self.of.trusted().unlike(&then));
        changed
            .iter()
            .for_each(|warning| self.site.host.output.warn(warning));
        let (mut record, mut past) = Record::resume(run.clone(), self.of.observer(&plan, run))
            .map_err(|error| Failure::refused(error, self.of.unlike_recorded(run)))?;
        let kept = L::kept(&past).unwrap_or(past.answers.len());
        if kept < past.answers.len() || past.outcome().is_some() {
            record
                .note(&Note::Resumed { kept })
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
    ) -> Result<Finished<L::Ended>, Failure> {
        let began = now();
        let (run, is_new) = (record.folder().clone(), past.lines.is_empty());
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
        if let (Some(tree), TakesBack::PreImages) = (self.site.trusted.tree(), L::FACTS.takes_back)
        {
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
        match harness.run(|harness| self.of.lead(plan, ready, harness)) {
            Ok(ended) => {
                self.of.ended(&ended, harness.world())?;
                self.close(plan, &run, Some((ended, began.elapsed())))
            }
            Err(stop) => {
                self.of.stopped(harness.world())?;
                Err(failure(
                    stop,
                    &run,
                    self.of.unlike_recorded(&run),
                    |fault| self.of.fault(fault, &run),
                ))
            }
        }
    }

    /// Stores the summary of a run and tells it. `now` is what its loop returned and how long it took; a run that
    /// was over before is answered from its record.
    pub(crate) fn close(
        &self,
        plan: &L::Plan,
        run: &RunFolder,
        now: Option<(L::Ended, Duration)>,
    ) -> Result<Finished<L::Ended>, Failure> {
        let (root, output) = (&self.site.root, self.site.host.output);
        let changes = changes::of_run(root, run.path())?;
        let past = Past::read(run.path()).map_err(anyhow::Error::from)?;
        let no_end = "the record of a finished run has no end";
        let (_, holds_for) = past.end().context(no_end)?;
        let from_record = now.is_none();
        let recorded = || Some((L::Ended::recorded(run, &past)?, elapsed(&past)));
        let (ended, took) = now.or_else(recorded).context(no_end)?;
        let summary = if L::FACTS.own_summary {
            None
        } else {
            summary(root, run, &past, &changes, took)
        };
        if let Some(summary) = summary.as_ref().filter(|_| !from_record) {
            run.store_json(SUMMARY, summary)
                .map_err(anyhow::Error::from)?;
        }
        let summary = summary.as_ref();
        let over = Over {
            run,
            past: &past,
            ended: &ended,
            holds_for,
            changes: &changes,
            summary,
            output,
        };
        let mut line = self.of.tell(plan, &over)?;
        line.insert("event".to_owned(), json!("summary"));
        line.entry("summary").or_insert_with(|| json!(summary));
        if from_record {
            line.insert("from_record".to_owned(), json!(true));
        }
        output.object(&line.into());
        let exit = ended.exit();
        Ok(Finished {
            exit,
            ended,
            changes,
            run: run.clone(),
            past,
            from_record,
        })
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
        stop @ (Stop::Differs(_) | Stop::Unreadable { .. }) => {
            Failure::refused(stop, unlike_recorded)
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the summary says how long the run took"
)]
fn now() -> Instant {
    Instant::now()
}
