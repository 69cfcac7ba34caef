//! From a prepared run to an exit code: the run folder, the loop, the summary.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use code_commit_apply::Lock;
use code_commit_engine::{Journaled, Line, Note, Outcome};
use code_commit_guard::{Guard, OpenError};
use code_commit_llm::Model;
use code_commit_logging::{Redactor, RunFolder};
use code_commit_loop_commit::still_holds;
use code_commit_perform::{Account, Asking, BuildCommand, CommitWorld, Paid, Past, Record, Rules};
use code_commit_repo::WorkTree;
use code_commit_report::{Counts, Output, SUMMARY, Summary};
use code_commit_runner::{Cancel, Confinement};
use serde_json::json;

use code_commit_settings::Environment;

use crate::changes::{self, FileChange};
use crate::commit::fault::{fault, stopped};
use crate::commit::files;
use crate::commit::paid;
use crate::commit::plan::Plan;
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::lock;
use crate::model::asking;
use crate::observer;
use crate::records::{self, NewRun};
use crate::registry;
use crate::sandbox::{self, Otherwise};
use crate::verdict;

pub(crate) const UNLIKE_RECORDED: &str = "a record that was changed cannot be resumed: start a new run";

/// A run that can begin or be resumed.
#[expect(missing_docs, reason = "those without are what their types say")]
pub struct Prepared<'r> {
    pub tree: &'r WorkTree,
    /// Held until the summary is written.
    pub lock: Lock,
    /// What the model may write.
    pub guard: Guard,
    pub plan: Plan,
    pub model: &'r dyn Model,
    /// Redacts every key.
    pub redactor: Redactor,
    /// Set by Ctrl-C.
    pub cancel: Cancel,
    pub host: Host<'r>,
    /// What to do if no sandbox works.
    pub without_sandbox: Otherwise,
}

/// A run that is over.
pub struct Finished {
    /// The exit code.
    pub exit: Exit,
    /// What it changed.
    pub changes: Vec<FileChange>,
}

/// Begins a run, and runs its loop to the end.
pub fn begin(prepared: Prepared<'_>) -> Result<Finished, Failure> {
    begin_again(prepared, Paid::default())
}

/// The same for a run whose prompts may have been answered before.
pub(crate) fn begin_again(prepared: Prepared<'_>, paid: Paid) -> Result<Finished, Failure> {
    let Prepared { plan, tree, host, .. } = &prepared;
    let (tree, output) = (*tree, host.output);
    let new = files::record(&plan.task, tree, prepared.redactor.clone())?;
    let said_log = files::said_log(&plan.task, tree.root())?;
    let keep_said = || said_log.iter().for_each(|said| files::keep_said_log(said, tree, output));
    let mut observer = observer(&prepared, new.folder());
    let (confinement, record) = enter(&prepared, new, &mut *observer).inspect_err(|_| keep_said())?;
    let finished = lead(prepared, confinement, record, Past::default(), paid);
    keep_said();
    finished
}

/// What must exist before the first step. If this fails, the run has not begun.
fn enter<'o>(
    prepared: &Prepared<'_>,
    new: NewRun,
    observer: &'o mut dyn code_commit_perform::Observer,
) -> Result<(Confinement, Record<'o>), Failure> {
    let Prepared { plan, tree, host, .. } = prepared;
    let settings = crate::config::carried(&plan.settings, tree.root(), host.environment);
    new.store_first(&plan.task.layout().query(1), &plan.first_prompt())?;
    let plan = new.store(&Plan { settings, ..plan.clone() })?;
    // Listed first: no kill leaves a record that no list knows.
    let folder = new.folder().clone();
    registry::add(prepared.tree, folder.path(), Some(plan))?;
    let record = new.record(observer).map_err(Failure::no_record)?;
    // The sandbox protects what exists, and hides the listed records.
    let confinement = confine(prepared).inspect_err(|_| records::discard(&folder))?;
    Ok((confinement, record))
}

/// Resumes a run where its journal ends, even one that ended for lack of an answer. Answers in the journal
/// are not requested again.
pub(crate) fn resume(prepared: Prepared<'_>, folder: &RunFolder) -> Result<Finished, Failure> {
    let (tree, output) = (prepared.tree, prepared.host.output);
    let said_log = files::said_log_again(&prepared.plan.task, tree.root())?;
    let resumed = go_on(prepared, folder);
    said_log.iter().for_each(|said| files::keep_said_log(said, tree, output));
    resumed
}

fn go_on(prepared: Prepared<'_>, folder: &RunFolder) -> Result<Finished, Failure> {
    let root = prepared.tree.root();
    let confinement = confine(&prepared)?;
    let mut observer = observer(&prepared, folder);
    let (mut record, mut past) = Record::resume(folder.clone(), &mut *observer)
        .map_err(|error| Failure::refused(error, UNLIKE_RECORDED))?;
    let kept = still_holds(&past.answers, past.outcome());
    if kept < past.answers.len() {
        past.answers.truncate(kept);
        record.note(&Note::Resumed { kept }).map_err(|e| fault(e.into(), root, folder))?;
    }
    let paid = paid::elsewhere(&prepared.plan, prepared.tree, &prepared.redactor, &past, prepared.host)?;
    lead(prepared, confinement, record, past, paid)
}

fn confine(prepared: &Prepared<'_>) -> Result<Confinement, Failure> {
    let Prepared { tree, plan, without_sandbox, host, .. } = prepared;
    sandbox::confine(tree, plan, *without_sandbox, *host)
}

fn lead(
    prepared: Prepared<'_>,
    confinement: Confinement,
    record: Record<'_>,
    past: Past,
    paid: Paid,
) -> Result<Finished, Failure> {
    let began = now();
    let Prepared { tree, lock, guard, plan, model, cancel, host, .. } = prepared;
    let (root, folder) = (tree.root(), record.folder().clone());
    lock::under_way(&lock, tree, folder.path())?;
    let asking = Asking { early_stop: plan.early_stop, paid, ..asking(&plan.settings) };
    asking.spending.count(&past.lines, plan.settings.model.value.first());
    let account = account(&plan, tree, &confinement)?;
    let holds_for =
        |_: &Outcome, interrupt: code_commit_dir::Interrupt<'_>| verdict::of_commit(root, &plan, interrupt);
    let world = CommitWorld {
        record: record.about(root),
        build: build_command(&plan, host.environment, confinement),
        account,
        asking,
        code: plan.task.code(),
        layout: plan.task.layout(),
        said_log: plan.task.said_log(root),
        rules: Rules { root: root.to_owned(), guard, lock },
        holds_for: &holds_for,
        model,
        cancel,
    };
    // Its lock is held until the summary is written.
    let mut harness = Journaled::new(world, past.answers);
    let outcome = harness.run(|harness| plan.run(harness)).map_err(|stop| stopped(stop, root, &folder))?;
    finish(root, &folder, outcome, began.elapsed(), host.output)
}

/// What builds may change, in a view of the tree if possible.
pub(crate) fn account(plan: &Plan, tree: &WorkTree, confinement: &Confinement) -> Result<Account, Failure> {
    sandbox::in_view(plan.account(tree.root()), tree, confinement)
}

/// The guard for the current ignore rules and what the plan protects.
pub fn guard(tree: &WorkTree, plan: &Plan) -> Result<Guard, Failure> {
    Guard::open_in(tree.repository(), tree.root(), plan.policy(tree.root())).map_err(cannot_read)
}

/// The same, on another thread.
pub(crate) fn guard_apart(root: &Path, plan: &Plan) -> Result<Guard, Failure> {
    Guard::open(root, plan.policy(root)).map_err(cannot_read)
}

fn cannot_read(error: OpenError) -> Failure {
    Failure::refused(error, "make the folder readable")
}

pub(crate) fn build_command(
    plan: &Plan,
    environment: &Environment,
    confinement: Confinement,
) -> BuildCommand {
    let settings = &plan.settings;
    BuildCommand {
        argv: settings.build.value.argv.iter().map(OsString::from).collect(),
        env: sandbox::build_env(settings, environment),
        timeout: Some(settings.build_timeout.value),
        limits: sandbox::limits(settings),
        confinement,
        sealed: plan.sealed.clone(),
    }
}

/// Prints and stores the summary; gives the exit code.
fn finish(
    root: &Path,
    folder: &RunFolder,
    outcome: Outcome,
    elapsed: Duration,
    output: &Output,
) -> Result<Finished, Failure> {
    let changes = changes::of_run(root, folder.path())?;
    let past = Past::read(folder.path()).map_err(anyhow::Error::from)?;
    let summary = summarize(root, folder, &past.lines, &changes, outcome, elapsed)?;
    summary.print(output);
    output.object(&json!({ "event": "summary", "summary": summary }));
    if can_go_on(&past) {
        output.note(&format!(
            "go on with the same settings: code-commit resume {}",
            records::name(folder.path())
        ));
    }
    Ok(Finished { exit: Exit::from(&summary.outcome), changes })
}

/// Writes the summary of a finished run into its folder.
pub(crate) fn summarize(
    root: &Path,
    folder: &RunFolder,
    lines: &[Line],
    changes: &[FileChange],
    outcome: Outcome,
    elapsed: Duration,
) -> anyhow::Result<Summary> {
    let log = shown_path(folder, root);
    let files = changes.iter().map(FileChange::stat).collect();
    let summary = Summary::of(lines, outcome, files, elapsed, log);
    folder.store_json(SUMMARY, &summary)?;
    Ok(summary)
}

fn observer(prepared: &Prepared<'_>, folder: &RunFolder) -> Box<dyn code_commit_perform::Observer> {
    let log = shown_path(folder, prepared.tree.root());
    let counts = Counts::Rounds(prepared.plan.rounds);
    observer::observer(prepared.host.output, prepared.model.id(), counts, folder, log)
}

/// Whether a run can be resumed: it was killed, or ended because the model gave no answer or the machine was
/// unfit, and its changes were not reverted.
pub(crate) fn can_go_on(past: &Past) -> bool {
    past.outcome().is_none() || still_holds(&past.answers, past.outcome()) < past.answers.len()
}

/// Whether a run that can go on holds anything: an answer, or a question that may have been paid for.
pub(crate) fn holds_something(past: &Past) -> bool {
    let answers = still_holds(&past.answers, past.outcome());
    can_go_on(past) && (answers > 0 || (past.outcome().is_none() && !past.lines.is_empty()))
}

fn shown_path(folder: &RunFolder, root: &Path) -> String {
    folder.path().strip_prefix(root).unwrap_or(folder.path()).display().to_string()
}

#[expect(clippy::disallowed_methods, reason = "the summary says how long the run took")]
fn now() -> Instant {
    Instant::now()
}
