//! `code-commit clean`: removes the folders of old runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use code_commit_changes::BACKUP;
use code_commit_names::ours::STATE;
use code_commit_perform::JOURNAL;
use code_commit_report::{BAD, Output, phrases, printable};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::project::Project;
use crate::registry::{Known, RUN_JSON};
use crate::staging::Staging;
use crate::{caches, records, spec};

const DAY: Duration = Duration::from_hours(24);

/// Why a run with an unreadable journal stays.
const UNREADABLE: &str = "cannot tell whether it has ended: its journal is unreadable";

/// Which runs to remove. A run is removed only if both limits allow it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request {
    /// Keep the newest runs of each loop, this many.
    pub keep: Option<usize>,
    /// Keep runs written to within this many days.
    pub older_than: Option<u32>,
    /// Also remove what builds have written to the caches of tools.
    pub caches: bool,
    /// Report what would be removed, but remove nothing.
    pub dry_run: bool,
}

struct Run {
    path: PathBuf,
    /// Its loop; `keep` counts per loop.
    kind: String,
    /// Why it is never removed.
    stays: Option<String>,
}

/// Removes the requested runs, oldest first. Takes the lock, so that no active run is removed.
pub fn run(args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let project = Project::here(host)?;
    if project.trusted.tree().is_none() && !project.root.join(STATE).is_dir() {
        project.tree()?;
    }
    let _lock = project.lock()?;
    let all = all(&project)?;
    let count = all.len();
    let chosen = chosen(all, args, records::now());
    let mut tally = Tally::default();
    for run in &chosen {
        let bytes = caches::size_below(&run.path);
        let done = match &run.stays {
            Some(why) => Done::Stays(why),
            None if args.dry_run => Done::WouldGo,
            None => match Staging::take(&run.path) {
                Err(error) => Done::Failed(error),
                Ok(aside) => {
                    project.registry().forget(&run.path)?;
                    aside.remove().map_or_else(Done::Failed, |()| Done::Gone)
                }
            },
        };
        tally.count(&done, bytes);
        tell(run, &done, bytes, &project.root, output);
    }
    if args.caches {
        empty_caches(&project.state()?, args.dry_run, output)?;
    }
    tally.tell(count, args.dry_run, output);
    Ok(if tally.failed == 0 {
        Exit::Done
    } else {
        Exit::Failed
    })
}

fn empty_caches(state: &Path, dry_run: bool, output: &Output) -> Result<(), Failure> {
    let bytes = caches::size(state);
    if !dry_run {
        caches::remove(state).map_err(|error| caches::failed(state, &error))?;
    }
    let (code, done) = if dry_run {
        ("would-be-removed", "would remove  ")
    } else {
        ("removed", "removed       ")
    };
    output.object(&json!({ "caches": bytes, "done": code }));
    output.report(&format!("{done}caches of tools  {}", phrases::bytes(bytes)));
    Ok(())
}

/// Every run; the newest of each loop first.
fn all(project: &Project<'_>) -> Result<Vec<Run>, Failure> {
    let known = project.registry().all()?;
    let mut runs: Vec<Run> = known.iter().map(|known| listed(known, project)).collect();
    runs.extend(others(project));
    Ok(runs)
}

fn listed(known: &Known, project: &Project<'_>) -> Run {
    let path = known.path(&project.root);
    let needed = match project.is_over(known) {
        Some(true) => None,
        Some(false) => Some(format!(
            "not over: code-commit resume {}",
            records::name(&path)
        )),
        None => Some(UNREADABLE.to_owned()),
    };
    let stays = needed.or_else(|| is_no_record(&path));
    Run {
        path,
        kind: known.loop_name(&project.root),
        stays,
    }
}

/// Folders of agents that are no runs: audits, and talks about a plan; the newest of each kind first. None of them can be resumed; holding the lock means that they are over.
fn others(project: &Project<'_>) -> Vec<Run> {
    // A store that cannot be used holds none.
    let Ok(store) = spec::Store::of(project) else {
        return Vec::new();
    };
    let folders = |kind: &str, stays: fn(&Path) -> Option<String>| -> Vec<Run> {
        let all = store.folders_of(kind).into_iter();
        all.map(|path| Run {
            stays: stays(&path),
            path,
            kind: kind.to_owned(),
        })
        .collect()
    };
    let mut others = folders(spec::AUDIT, is_no_record);
    others.extend(folders(spec::PLAN, is_no_talk));
    others
}

/// A talk leaves only copies of files that it may not change but did.
fn is_no_talk(path: &Path) -> Option<String> {
    let entries: BTreeSet<_> = code_commit_dir::list(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    let is_talk = entries.iter().all(|name| name == BACKUP);
    if is_talk && fs::canonicalize(path).is_ok_and(|real| real == path) {
        None
    } else {
        is_no_record(path)
    }
}

/// The runs that both limits allow to remove, oldest first. None without a limit.
fn chosen(newest_first: Vec<Run>, args: &Request, now: SystemTime) -> Vec<Run> {
    if args.keep.is_none() && args.older_than.is_none() {
        return Vec::new();
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut chosen: Vec<(SystemTime, Run)> = Vec::new();
    for run in newest_first {
        let place = seen.entry(run.kind.clone()).or_default();
        *place += 1;
        let ended = records::last_written(&run.path);
        let age = now.duration_since(ended).unwrap_or_default();
        let is_old = args
            .older_than
            .is_none_or(|days| age > DAY.saturating_mul(days));
        if is_old && args.keep.is_none_or(|keep| *place > keep) {
            chosen.push((ended, run));
        }
    }
    // The sort is stable: runs with the same time stay oldest first.
    chosen.reverse();
    chosen.sort_by_key(|(ended, _)| *ended);
    chosen.into_iter().map(|(_, run)| run).collect()
}

/// The list says where a run was made, but something else may be there now, or the path may be a symlink.
fn is_no_record(run: &Path) -> Option<String> {
    let is_there = fs::canonicalize(run).is_ok_and(|real| real == run);
    let is_record = [JOURNAL, BACKUP, RUN_JSON]
        .iter()
        .any(|name| run.join(name).exists())
        || code_commit_dir::list(run).is_ok_and(|mut entries| entries.next().is_none());
    let why = if is_there {
        "it is not a run folder"
    } else {
        "a symlink leads there"
    };
    (!is_there || !is_record).then(|| format!("{why}; remove it by hand"))
}

/// The result for one run.
enum Done<'r> {
    Gone,
    WouldGo,
    Stays(&'r str),
    Failed(io::Error),
}

fn tell(run: &Run, done: &Done<'_>, bytes: u64, root: &Path, output: &Output) {
    let (code, why) = match done {
        Done::Gone => ("removed", None),
        Done::WouldGo => ("would-be-removed", None),
        Done::Stays(why) => ("stays", Some((*why).to_owned())),
        Done::Failed(error) => ("failed", Some(error.to_string())),
    };
    output.object(&json!({
        "run": records::name(&run.path), "loop": run.kind, "folder": run.path.to_string_lossy(), "bytes": bytes, "done": code, "why": why,
    }));
    let folder = printable(
        &run.path
            .strip_prefix(root)
            .unwrap_or(&run.path)
            .display()
            .to_string(),
    );
    let size = phrases::bytes(bytes);
    match done {
        Done::Gone => output.report(&format!("removed       {folder}  {size}")),
        Done::WouldGo => output.report(&format!("would remove  {folder}  {size}")),
        Done::Stays(why) => output.report(&format!(
            "stays         {folder}  {size}, {}",
            printable(why)
        )),
        Done::Failed(error) => {
            let head = output.paint_note(BAD, "error:");
            output.error_block(&format!(
                "{head} cannot remove {folder}: {error}\n help: remove it by hand"
            ));
        }
    }
}

#[derive(Default)]
struct Tally {
    gone: usize,
    bytes: u64,
    failed: usize,
}

impl Tally {
    fn count(&mut self, done: &Done<'_>, bytes: u64) {
        match done {
            Done::Gone | Done::WouldGo => {
                self.gone += 1;
                self.bytes += bytes;
            }
            Done::Failed(_) => self.failed += 1,
            Done::Stays(_) => {}
        }
    }

    fn tell(&self, all: usize, dry_run: bool, output: &Output) {
        let Self {
            gone,
            bytes,
            failed,
        } = *self;
        let stay = all - gone;
        output.object(&json!({
            "event": "cleaned", "removed": gone, "bytes": bytes, "stay": stay, "failed": failed, "dry_run": dry_run,
        }));
        let what = if dry_run {
            "would be removed"
        } else {
            "removed"
        };
        let (runs, size) = (phrases::count(gone as u64, "run"), phrases::bytes(bytes));
        output.report(&format!("{runs} {what}, {size}; {stay} left"));
    }
}
