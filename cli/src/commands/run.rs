//! From everything prepared to an exit code: the run folder, the loop, the summary.

mod fault;
mod files;
mod late;

pub use fault::leaves_tree_changed;
pub use late::summaries;

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use apply::Lock;
use guard::{Guard, OpenError};
use llm::{Day, Model};
use logging::{Redactor, RunFolder, Stamp};
use perform::{
    Asking, BuildCommand, CommitExecutor, Fact, Outcome, Record, Rules, Spending, drive, outline_of,
};
use repo::WorkTree;
use runner::{Cancel, Confinement};
use serde_json::json;

use self::fault::fault;
use crate::changes::{self, FileChange};
use crate::commands::registry;
use crate::commands::resume::can_go_on;
use crate::commands::runs::{discard, no_record};
use crate::commands::wall::{self, Otherwise};
use crate::config::Settings;
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::plan::{Decide, Plan};
use crate::summary::{SUMMARY, Summary};
use crate::terminal::Terminal;

/// What to do about a run whose record is not what it was.
pub const UNLIKE_RECORDED: &str = "only a record that is as it was can be gone on with: begin a new run";

/// A run that can begin, or go on.
pub struct Prepared<'r> {
    pub tree: &'r WorkTree,
    pub lock: Lock,
    pub guard: Guard,
    pub plan: Plan,
    pub model: &'r dyn Model,
    pub environment: &'r Environment,
    pub redactor: Redactor,
    pub cancel: Cancel,
    pub output: &'r Output,
    pub without_wall: Otherwise,
}

/// A run that is over.
pub struct Finished {
    pub exit: Exit,
    pub changes: Vec<FileChange>,
}

/// Begins a run and leads it to its end.
pub fn begin(prepared: Prepared<'_>) -> Result<Finished, Failure> {
    let Prepared { plan, tree, output, .. } = &prepared;
    let (tree, output) = (*tree, *output);
    let folder = files::record(&plan.task, tree, prepared.redactor.clone())?;
    let said_log = files::said_log(&plan.task, tree.root()).inspect_err(|_| discard(&folder))?;
    let keep_said = || said_log.iter().for_each(|said| files::keep_said_log(said, tree, output));
    let mut observer = observer(&prepared, &folder);
    let (confinement, record) = enter(&prepared, &folder, &mut *observer).inspect_err(|_| {
        discard(&folder);
        keep_said();
    })?;
    let decide = prepared.plan.decide();
    let finished = lead(prepared, confinement, decide, record, &[]);
    keep_said();
    finished
}

/// What has to be there before the first step. A run that cannot have it has not begun.
fn enter<'o>(
    prepared: &Prepared<'_>,
    folder: &RunFolder,
    observer: &'o mut dyn perform::Observer,
) -> Result<(Confinement, Record<'o>), Failure> {
    let plan = prepared.plan.store(folder).map_err(no_record)?;
    // The wall holds what is there, and hides the records that are listed.
    registry::add(prepared.tree, folder.path(), Some(plan))?;
    let confinement = confine(prepared)?;
    let record = Record::begin(folder.clone(), observer).map_err(no_record)?;
    Ok((confinement, record))
}

/// Goes on with a run where its journal ends; with one that had ended for want of an answer too. Answers that are in the journal are
/// not asked for again.
pub fn resume(prepared: Prepared<'_>, folder: &RunFolder) -> Result<Finished, Failure> {
    let (tree, output) = (prepared.tree, prepared.output);
    let said_log = files::said_log_again(&prepared.plan.task, tree.root())?;
    let resumed = go_on(prepared, folder);
    said_log.iter().for_each(|said| files::keep_said_log(said, tree, output));
    resumed
}

fn go_on(prepared: Prepared<'_>, folder: &RunFolder) -> Result<Finished, Failure> {
    let root = prepared.tree.root();
    let confinement = confine(&prepared)?;
    let mut decide = prepared.plan.decide();
    let mut observer = observer(&prepared, folder);
    let (mut record, facts) = Record::resume(folder.clone(), &mut *observer)
        .map_err(|error| Failure::refused(error, UNLIKE_RECORDED))?;
    for fact in &facts {
        decide.learn(fact);
    }
    if let Some(Fact::Ended { .. }) = facts.last() {
        record.note(&Fact::Resumed).map_err(|e| fault(e.into(), root, folder))?;
        decide.learn(&Fact::Resumed);
    }
    lead(prepared, confinement, decide, record, &facts)
}

fn confine(prepared: &Prepared<'_>) -> Result<Confinement, Failure> {
    let Prepared { tree, plan, without_wall, environment, output, .. } = prepared;
    wall::confine(tree, plan, *without_wall, environment, output)
}

fn lead(
    prepared: Prepared<'_>,
    confinement: Confinement,
    mut decide: Decide,
    mut record: Record<'_>,
    so_far: &[Fact],
) -> Result<Finished, Failure> {
    let began = now();
    let Prepared { tree, plan, output, .. } = &prepared;
    let (root, output, folder) = (tree.root(), *output, record.folder().clone());
    let asking = Asking { early_stop: plan.early_stop, ..asking(&plan.settings) };
    asking.spending.count(so_far, &plan.settings.model.value);
    let mut executor = CommitExecutor {
        build: build_command(plan, prepared.environment, confinement),
        asking,
        layout: plan.task.layout(),
        said_log: plan.task.said_log(root),
        rules: Rules { root: root.to_owned(), guard: prepared.guard, lock: prepared.lock },
        model: prepared.model,
        cancel: prepared.cancel,
    };
    let outcome =
        drive(&mut *decide, &mut executor, &mut record).map_err(|error| fault(error, root, &folder))?;
    drop(record);
    // The loop holds every answer; the summary needs none.
    drop(decide);
    finish(root, &folder, outcome, began.elapsed(), output)
}

/// The ignore rules as they stand now, and what the plan protects.
pub fn guard(tree: &WorkTree, plan: &Plan) -> Result<Guard, Failure> {
    Guard::open_in(tree.repository(), tree.root(), plan.policy(tree.root())).map_err(cannot_read)
}

/// The same on another thread than the tree's.
pub fn guard_apart(root: &Path, plan: &Plan) -> Result<Guard, Failure> {
    Guard::open(root, plan.policy(root)).map_err(cannot_read)
}

fn cannot_read(error: OpenError) -> Failure {
    Failure::refused(error, "see that the folder can be read")
}

/// How the model is asked.
pub fn asking(settings: &Settings) -> Asking {
    Asking {
        early_stop: false,
        stream: settings.stream.value,
        temperature: settings.temperature.value,
        timeout: Some(settings.timeout.value),
        spending: spending(settings),
    }
}

/// What a run under these settings may spend; its clock begins.
pub fn spending(settings: &Settings) -> Spending {
    Spending::new(settings.budget(), settings.prices(), today())
}

/// The day whose prices hold (UTC); none by a clock that is off by thousands of years.
pub fn today() -> Option<Day> {
    let now = Stamp::now().rfc3339();
    Day::try_from(now.split_once('T')?.0.to_owned()).ok()
}

/// The build that the plan asks for.
pub fn build_command(plan: &Plan, environment: &Environment, confinement: Confinement) -> BuildCommand {
    let settings = &plan.settings;
    BuildCommand {
        argv: settings.build.value.argv.iter().map(OsString::from).collect(),
        env: wall::build_env(settings, environment),
        timeout: Some(settings.build_timeout.value),
        limits: runner::Limits { output_bytes: settings.build_output.value, ..runner::Limits::default() },
        confinement,
        sealed: plan.sealed.clone(),
    }
}

/// Summary on the terminal and in the folder; the exit code.
fn finish(
    root: &Path,
    folder: &RunFolder,
    outcome: Outcome,
    elapsed: Duration,
    output: &Output,
) -> Result<Finished, Failure> {
    let changes = changes::of_run(root, folder.path())?;
    changes::note_left(folder.path(), &changes)?;
    let facts: Vec<Fact> = outline_of(folder).map_err(anyhow::Error::from)?;
    let summary = summarize(root, folder, &facts, &changes, outcome, elapsed)?;
    summary.print(output);
    output.object(&json!({ "event": "summary", "summary": summary }));
    if can_go_on(&facts) {
        output.note(&format!(
            "go on with the same settings: code-commit resume {}",
            super::runs::name(folder.path())
        ));
    }
    Ok(Finished { exit: exit(&summary.outcome), changes })
}

/// Writes the summary of a run that is over into its folder.
fn summarize(
    root: &Path,
    folder: &RunFolder,
    facts: &[Fact],
    changes: &[FileChange],
    outcome: Outcome,
    elapsed: Duration,
) -> anyhow::Result<Summary> {
    let log = shown_path(folder, root);
    let files = changes.iter().map(FileChange::stat).collect();
    let summary = Summary::of(facts, outcome, files, elapsed, log);
    folder.store_json(SUMMARY, &summary)?;
    Ok(summary)
}

/// The exit code of an outcome.
pub fn exit(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Done { .. } => Exit::Done,
        Outcome::AttemptsUsedUp { .. } | Outcome::Stuck { .. } => Exit::Failed,
        Outcome::ModelUnavailable { .. } => Exit::ModelUnavailable,
        Outcome::NeedsPerson { .. } => Exit::NeedsPerson,
    }
}

fn observer(prepared: &Prepared<'_>, folder: &RunFolder) -> Box<dyn perform::Observer> {
    let output = prepared.output.clone();
    if output.json {
        return Box::new(crate::ndjson::Ndjson::new(output));
    }
    let log = shown_path(folder, prepared.tree.root());
    Box::new(Terminal::new(output, prepared.model.id().to_string(), prepared.plan.rounds, log))
}

fn shown_path(folder: &RunFolder, root: &Path) -> String {
    folder.path().strip_prefix(root).unwrap_or(folder.path()).display().to_string()
}

#[expect(clippy::disallowed_methods, reason = "the summary says how long the run took")]
fn now() -> Instant {
    Instant::now()
}
