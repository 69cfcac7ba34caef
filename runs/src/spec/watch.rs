//! `spec watch`: works through the backlog until Ctrl-C.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use code_commit_engine::Outcome;
use code_commit_llm::ErrorCode::{self, BadKey, Billing, DailyQuota, NoPermission, RateLimited};
use code_commit_logging::millis;
use code_commit_loop_spec::watch::{
    Act, Auditing, End, Fate, Item, SETTLE_MS, Watch, WatchEvent, edited,
};
use code_commit_perform::AgentFault;
use code_commit_runner::Cancel;

use crate::driver::{Loop as _, Report};
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::project::Project;
use crate::records;
use crate::registry::Known;
use crate::spec::run::{self, Request};
use crate::spec::workspace::Spec;

/// The folders are looked at so often.
const LOOK: Duration = Duration::from_secs(1);
/// And during an audit, which Ctrl-C ends, too.
const TICK: Duration = Duration::from_millis(200);
/// Why a verdict does not count.
const OTHER_TREE: &str = "the files of the project changed before the verdict on it was acted on";
/// A key or a quota that is missing says nothing of the task: the whole backlog would be parked.
const OUT_OF_REACH: [ErrorCode; 5] = [BadKey, NoPermission, DailyQuota, Billing, RateLimited];

/// Works until Ctrl-C.
pub fn watch(root: &Path, request: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let project = Project::at(root, host)?;
    let mut spec = Spec::open(project, request.agent.clone(), &request.limits)?;
    // Nobody is there to start it again.
    spec.patience = spec
        .workspace
        .settings
        .model
        .wait
        .map_or(Duration::MAX, Duration::from);
    let _only = spec.lock_watch()?;
    let auditing = if spec.workspace.config.audit {
        Auditing::On
    } else {
        Auditing::Off
    };
    spec.work(&mut Watch::new(SETTLE_MS, auditing))
}

impl Spec<'_> {
    fn work(&self, watch: &mut Watch) -> Result<Exit, Failure> {
        let (began, mut known) = (now(), Vec::new());
        while !self.cancel.is_set() {
            self.workspace.store.make_folders()?;
            let (listing, passed_over) = self.workspace.store.scan();
            // Said once of each, until it is another.
            for one in passed_over.iter().filter(|one| !known.contains(*one)) {
                let (filename, reason) = one.clone();
                self.lines
                    .watch(&WatchEvent::ItemParked { filename, reason });
            }
            known = passed_over;
            let now_ms = millis(began.elapsed());
            let (events, act) = watch.look(now_ms, &listing);
            events.iter().for_each(|event| self.lines.watch(event));
            match act {
                Act::Wait { until_ms } => {
                    let left = until_ms.map(|until| until.saturating_sub(now_ms));
                    let left = left.map_or(LOOK, Duration::from_millis);
                    self.cancel.wait(left.min(LOOK));
                }
                Act::Audit => self.audit_until_work()?,
                Act::Work(item) => {
                    let Some(end) = self.item(&item)? else { break };
                    self.settle_item(watch, millis(began.elapsed()), &item, end)?;
                }
            }
        }
        Err(
            Failure::new(Exit::Interrupted, anyhow!("the watch was ended"))
                .help("the same command continues it"),
        )
    }

    /// Runs the loop on a file; none when Ctrl-C ended it.
    fn item(&self, item: &Item) -> Result<Option<End>, Failure> {
        match self.run_item(item) {
            Ok(Some(finished)) => self.end(item, &finished).map(Some),
            Ok(None) => Ok(Some(End::Stale)),
            Err(failure) if failure.exit == Exit::Interrupted => Ok(None),
            Err(failure) => {
                let fault = failure.error.downcast_ref();
                let is_of_task = matches!(fault, Some(AgentFault::KeyInPrompt { .. }));
                let why = failure.error.to_string();
                self.unusable(failure)?;
                let times = || self.note_failure(item, &why);
                Ok(Some(if is_of_task {
                    End::Failed { times: times()? }
                } else {
                    End::Unusable
                }))
            }
        }
    }

    /// None if the file is not as it was listed. A run on the same content that was cut off goes on.
    fn run_item(&self, item: &Item) -> Result<Option<Report>, Failure> {
        let project = &self.workspace.project;
        let driver = self.live()?;
        let is_cut_off = |known: &Known| project.is_over(known) == Some(false);
        if let Some((known, plan)) = run::all(project).next()
            && plan.item.as_ref() == Some(item)
            && is_cut_off(&known)
            // What an agent may have written is not resumed.
            && self.load(&records::open(&known.path(&project.root)), &known).is_ok()
        {
            return driver.resume(&known, plan).map(Some);
        }
        let Some(focus) = run::focus_of_task(&project.root, item)? else {
            return Ok(None);
        };
        let mut plan = self.plan(focus);
        plan.item = Some(item.clone());
        driver.begin(plan).map(Some)
    }

    /// A file is deleted only for a verdict about its content and about the tree that is on disk. Without one it is
    /// worked on again, but not forever: each time is paid for.
    fn end(&self, item: &Item, finished: &Report) -> Result<End, Failure> {
        let is_stale = || !run::is_about(&finished.run, item, self.workspace.tree().as_deref());
        let end = match &finished.ended {
            Outcome::Unfit { .. } => return Ok(End::Unusable),
            Outcome::ModelUnavailable { cause, .. } => {
                let mut codes = OUT_OF_REACH.iter();
                if codes.any(|code| code.as_str() == cause.code) {
                    return Ok(End::Unusable);
                }
                let times = self.note_failure(item, &cause.message)?;
                return Ok(End::Failed { times });
            }
            Outcome::Done { .. } | Outcome::AttemptsUsedUp { .. } if is_stale() => {
                let times = self.note_failure(item, OTHER_TREE)?;
                return Ok(End::OtherTree { times });
            }
            Outcome::Done { .. } => End::Approved,
            Outcome::AttemptsUsedUp { .. } => End::UsedUp,
            Outcome::NeedsPerson { .. } => End::SpecIssue,
        };
        let noted = self.workspace.store.note_failure(item, None);
        noted.context("cannot record that a task has ended")?;
        Ok(end)
    }

    fn note_failure(&self, item: &Item, why: &str) -> anyhow::Result<u32> {
        let noted = self.workspace.store.note_failure(item, Some(why));
        noted.context("cannot note that a task has failed")
    }

    /// What fails today may work in an hour: a watch goes on. Not on a tree with changes that no agent may make: the next run would take
    /// them for the person's.
    fn unusable(&self, failure: Failure) -> Result<(), Failure> {
        if failure.exit == Exit::TreeNotRestored {
            return Err(failure);
        }
        failure.tell(self.workspace.project.host.output);
        Ok(())
    }

    /// Deletes the file if it is still what was worked on.
    fn settle_item(
        &self,
        watch: &mut Watch,
        now_ms: u64,
        item: &Item,
        end: End,
    ) -> Result<(), Failure> {
        let store = &self.workspace.store;
        store.make_folders()?;
        let (mut event, fate) = watch.worked(now_ms, item, end, store.hash(&item.name).as_deref());
        if fate == Fate::Delete {
            let deleted = store.delete_unchanged(item);
            if !deleted.with_context(|| format!("cannot remove {}", item.name))? {
                event = edited(item);
            }
        }
        self.lines.watch(&event);
        Ok(())
    }

    /// An audit that ends as soon as work arrives.
    fn audit_until_work(&self) -> Result<(), Failure> {
        let workspace = &self.workspace;
        let stop = &Cancel::new().map_err(anyhow::Error::from)?;
        let audited = std::thread::scope(|scope| {
            let (over, is_over) = channel::<()>();
            let (store, cancel) = (workspace.store.clone(), self.cancel.clone());
            scope.spawn(move || {
                while is_over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    if cancel.is_set() || store.scan().0.is_work() {
                        return stop.set();
                    }
                }
            });
            let audited = workspace.project.lock().and_then(|_lock| self.audit(stop));
            drop(over);
            audited
        });
        match audited {
            Err(failure) if failure.exit == Exit::Interrupted => {}
            Err(failure) if failure.exit == Exit::ModelUnavailable => {
                let why = failure.error.to_string();
                workspace.project.host.output.warn(&why);
            }
            Err(failure) => self.unusable(failure)?,
            Ok(()) => {}
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "changes settle by the monotonic clock"
)]
fn now() -> Instant {
    Instant::now()
}
