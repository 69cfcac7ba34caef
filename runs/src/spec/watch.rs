//! `spec watch`: works through the backlog until Ctrl-C.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use code_commit_engine::Outcome;
use code_commit_llm::ErrorCode::{self, BadKey, Billing, DailyQuota, NoPermission, RateLimited};
use code_commit_logging::{RunFolder, millis};
use code_commit_loop_spec::watch::{
    Act, Auditing, End, Fate, Item, SETTLE_MS, Watch, WatchEvent, edited,
};
use code_commit_loop_spec::{BACKLOG, ISSUES};
use code_commit_perform::AgentFault;
use code_commit_report::Output;
use code_commit_runner::Cancel;
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::life::{Finished, Loop as _};
use crate::records;
use crate::registry::Known;
use crate::site::Site;
use crate::spec::act::{Begun, Spec};
use crate::spec::audit::{self, Audited};
use crate::spec::lines::Lines;
use crate::spec::start::{self, Request};
use crate::spec::workspace::Workspace;
use crate::spec::{act, failures, project};

/// How soon a change is looked at.
const TICK: Duration = Duration::from_millis(200);
/// The folders are looked at so often even where nobody tells of changes: file systems over a network.
const LOOK_ANYWAY: Duration = Duration::from_secs(5);
/// Why a verdict does not count.
const OTHER_TREE: &str = "the files of the project changed before the verdict on it was acted on";

/// Works until Ctrl-C.
pub fn run(root: &Path, request: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let mut workspace = Workspace::open(
        &Site::at(root, host)?,
        &request.agent,
        request.limits.clone(),
    )?;
    // Nobody is there to start it again.
    workspace.patience = workspace.settings.wait.value.unwrap_or(Duration::MAX);
    let _only = workspace.lock_watch()?;
    let auditing = if workspace.config.audit {
        Auditing::On
    } else {
        Auditing::Off
    };
    let lines = Lines::new(output.clone(), &workspace.config.specs);
    let watching = Watching {
        folders: Folders::new(root, output),
        lines,
        workspace,
    };
    watching.work(&mut Watch::new(SETTLE_MS, auditing))
}

struct Watching<'w> {
    workspace: Workspace<'w>,
    lines: Lines,
    folders: Folders,
}

impl Watching<'_> {
    fn work(&self, watch: &mut Watch) -> Result<Exit, Failure> {
        let (began, mut passed_over) = (now(), Vec::new());
        while !self.workspace.cancel.is_set() {
            project::make_folders(&self.workspace.root)?;
            self.pass_over(&mut passed_over);
            let listing = project::listing(&self.workspace.root);
            let (events, act) = watch.look(millis(began.elapsed()), &listing);
            events.iter().for_each(|event| self.tell(event));
            match act {
                Act::Wait { until_ms } => {
                    self.folders.wait(&self.workspace.cancel, began, until_ms);
                }
                Act::Audit => self.audit()?,
                Act::Work(item) => {
                    let Some(end) = self.item(&item)? else { break };
                    self.settle(watch, millis(began.elapsed()), &item, end)?;
                }
            }
        }
        Err(
            Failure::new(Exit::Interrupted, anyhow!("the watch was ended"))
                .help("the same command continues it"),
        )
    }

    /// Said once of each, until it is another.
    fn pass_over(&self, known: &mut Vec<(String, &'static str)>) {
        let now = project::no_tasks(&self.workspace.root);
        for (name, reason) in now.iter().filter(|one| !known.contains(one)) {
            self.lines.watch(&WatchEvent::ItemParked {
                filename: name.clone(),
                reason,
            });
        }
        *known = now;
    }

    fn tell(&self, event: &WatchEvent) {
        if matches!(event, WatchEvent::SpecIssueWaiting { .. }) {
            self.call_person();
        }
        self.lines.watch(event);
    }

    /// Runs the loop on a file; none when Ctrl-C ended it. A run on the same content that was cut off goes on.
    fn item(&self, item: &Item) -> Result<Option<End>, Failure> {
        match self.run(item) {
            Err(failure) if failure.exit == Exit::Interrupted => Ok(None),
            Err(failure)
                if matches!(
                    failure.error.downcast_ref(),
                    Some(AgentFault::KeyInPrompt { .. })
                ) =>
            {
                failure.tell(self.workspace.host.output);
                Ok(Some(End::Failed {
                    times: self.counted(item, &failure.error.to_string())?,
                }))
            }
            Err(failure) => self.unusable(failure).map(Some),
            Ok(None) => Ok(Some(End::Stale)),
            Ok(Some(Finished { ended, run, .. })) => self.end(item, &ended, &run).map(Some),
        }
    }

    /// None if the file is not as it was listed.
    fn run(&self, item: &Item) -> Result<Option<Finished>, Failure> {
        let (workspace, site) = (&self.workspace, self.workspace.site());
        let spec = Spec::new(&site, workspace, &self.lines);
        let life = spec.live()?;
        let is_cut_off = |known: &Known| site.is_over(known) == Some(false);
        if let Some((known, begun)) = act::newest(&site)
            && begun.item.as_ref() == Some(item)
            && is_cut_off(&known)
            // What an agent may have written is not resumed.
            && spec.load(&records::open(&known.path(&workspace.root)), &known).is_ok()
        {
            return life.resume(&known, begun).map(Some);
        }
        let Some(focus) = start::focus_of_task(&workspace.root, item)? else {
            return Ok(None);
        };
        let inputs = act::inputs(workspace, focus)?;
        life.begin(Begun::new(workspace, inputs, Some(item.clone()), None))
            .map(Some)
    }

    /// A file is deleted only for a verdict about its content and about the tree that is on disk. Without one it is
    /// worked on again, but not forever: each time is paid for.
    fn end(&self, item: &Item, outcome: &Outcome, folder: &RunFolder) -> Result<End, Failure> {
        let root = &self.workspace.root;
        let end = end(outcome);
        let is_stale = || !act::is_about(folder, item, self.workspace.tree().as_deref());
        match outcome {
            Outcome::ModelUnavailable { cause, .. } if matches!(end, End::Failed { .. }) => {
                Ok(End::Failed {
                    times: self.counted(item, &cause.message)?,
                })
            }
            Outcome::ModelUnavailable { .. } | Outcome::Unfit { .. } => Ok(end),
            Outcome::Done { .. } | Outcome::AttemptsUsedUp { .. } if is_stale() => {
                Ok(End::OtherTree {
                    times: self.counted(item, OTHER_TREE)?,
                })
            }
            Outcome::Done { .. } | Outcome::AttemptsUsedUp { .. } | Outcome::NeedsPerson { .. } => {
                failures::forget(root, item).context("cannot note that a task is over")?;
                Ok(end)
            }
        }
    }

    fn counted(&self, item: &Item, why: &str) -> Result<u32, Failure> {
        Ok(failures::count(&self.workspace.root, item, why)
            .context("cannot note that a task has failed")?)
    }

    /// What fails today may work in an hour: a watch goes on. Not on a tree with changes that no agent may make: the next run would take
    /// them for the person's.
    fn unusable(&self, failure: Failure) -> Result<End, Failure> {
        if failure.exit == Exit::TreeNotRestored {
            self.call_person();
            return Err(failure);
        }
        failure.tell(self.workspace.host.output);
        Ok(End::Unusable)
    }

    /// Deletes the file if it is still what was worked on.
    fn settle(&self, watch: &mut Watch, now_ms: u64, item: &Item, end: End) -> Result<(), Failure> {
        let root = &self.workspace.root;
        project::make_folders(root)?;
        let (event, fate) = watch.worked(
            now_ms,
            item,
            end,
            project::hash(root, &item.name).as_deref(),
        );
        let delete = || project::delete_unchanged(root, item);
        let event = match fate {
            Fate::Delete
                if !delete().with_context(|| format!("cannot remove {}", item.name))? =>
            {
                edited(item)
            }
            Fate::Delete | Fate::Keep => event,
        };
        self.tell(&event);
        match end {
            End::Unusable | End::Failed { .. } | End::OtherTree { .. } => self.call_person(),
            End::Approved | End::UsedUp | End::SpecIssue | End::Stale => {}
        }
        Ok(())
    }

    /// Ends as soon as work arrives.
    fn audit(&self) -> Result<(), Failure> {
        let workspace = &self.workspace;
        let stop = Cancel::new().map_err(anyhow::Error::from)?;
        let audited = std::thread::scope(|scope| {
            let (over, is_over) = channel::<()>();
            let (stop, cancel, root) = (&stop, &workspace.cancel, &workspace.root);
            scope.spawn(move || {
                let mut arrivals = project::Arrivals::default();
                while is_over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    if cancel.is_set() || arrivals.look(root) {
                        return stop.set();
                    }
                }
            });
            let audited = match workspace.site().lock() {
                Ok(_lock) => audit::perform(workspace, stop, &self.lines),
                Err(failure) => Err(failure),
            };
            drop(over);
            audited
        });
        match audited {
            Err(failure) => {
                self.unusable(failure)?;
                self.tell(&WatchEvent::AuditEnded);
            }
            Ok(audited) => {
                if let Audited::Failed(why) = &audited {
                    workspace.host.output.warn(why);
                }
                self.tell(&audited.event());
            }
        }
        Ok(())
    }

    /// A bell.
    fn call_person(&self) {
        let output = self.workspace.host.output;
        if output.live {
            output.note("\u{7}");
        }
    }
}

/// A key or a quota that is missing says nothing of the task.
const OUT_OF_REACH: [ErrorCode; 5] = [BadKey, NoPermission, DailyQuota, Billing, RateLimited];

/// What an outcome alone says of the task; how often it has failed is counted elsewhere.
fn end(outcome: &Outcome) -> End {
    match outcome {
        Outcome::Done { .. } => End::Approved,
        Outcome::AttemptsUsedUp { .. } => End::UsedUp,
        Outcome::NeedsPerson { .. } => End::SpecIssue,
        Outcome::Unfit { .. } => End::Unusable,
        // Neither says anything of the task: the whole backlog would be parked.
        Outcome::ModelUnavailable { cause, .. }
            if OUT_OF_REACH.iter().any(|code| code.as_str() == cause.code) =>
        {
            End::Unusable
        }
        Outcome::ModelUnavailable { .. } => End::Failed { times: 0 },
    }
}

/// Tells when a folder has changed.
struct Folders {
    changed: Arc<AtomicBool>,
    _watcher: Option<RecommendedWatcher>,
}

impl Folders {
    fn new(root: &Path, output: &Output) -> Self {
        let changed = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&changed);
        let watcher = notify::recommended_watcher(move |_| flag.store(true, Ordering::SeqCst))
            .and_then(|mut watcher| {
                for name in [BACKLOG, ISSUES] {
                    watcher.watch(&project::folder(root, name), RecursiveMode::NonRecursive)?;
                }
                Ok(watcher)
            });
        if let Err(error) = &watcher {
            output.warn(&format!(
                "changes are looked for every {} seconds: {error}",
                LOOK_ANYWAY.as_secs()
            ));
        }
        Self {
            changed,
            _watcher: watcher.ok(),
        }
    }

    /// Returns at a change, at Ctrl-C, at the moment asked for, and every few seconds.
    fn wait(&self, cancel: &Cancel, began: Instant, until_ms: Option<u64>) {
        let entered = now();
        let is_time = || until_ms.is_some_and(|until| millis(began.elapsed()) >= until);
        while !is_time()
            && entered.elapsed() < LOOK_ANYWAY
            && !self.changed.swap(false, Ordering::SeqCst)
        {
            if cancel.wait(TICK) {
                return;
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "changes settle by the monotonic clock"
)]
fn now() -> Instant {
    Instant::now()
}
