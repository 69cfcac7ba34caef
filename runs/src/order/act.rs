//! One order from its file to its verdict.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use code_commit_engine::{Journaled, Outcome, Stop};
use code_commit_guard::Policy;
use code_commit_logging::{Redactor, RunFolder};
use code_commit_loop_order::{
    Finished, Inputs, RunSummary, SUMMARY, Stage, VERIFY_SCRIPT, Verdict, proposal_schema,
};
use code_commit_names::Binds;
use code_commit_perform::{Account, Asking, CommandSettings, Fault, Observer, OrderWorld, Paid, Past, Rules};
use code_commit_repo::WorkTree;
use code_commit_report::{Counts, Output, phrases, printable};
use code_commit_settings::{Byproducts, Settings};

use crate::changes::{self, FileChange};
use crate::commit::run::UNLIKE_RECORDED;
use crate::config;
use crate::exit::{Exit, Failure};
use crate::lock;
use crate::model::asking;
use crate::observer;
use crate::order::folder::{self, Start};
use crate::order::plan::Shown;
use crate::order::preflight::Read;
use crate::order::prepare::{self, Ready};
use crate::order::recorded::{self, Beginning, Recorded};
use crate::order::setting::{Setting, not_restored, spending_of};
use crate::order::settle::Answer;
use crate::order::unfinished::Unfinished;
use crate::records::{self, Head, cannot_begin};
use crate::registry::{self, Known};
use crate::sandbox;
use crate::verdict;

pub(super) struct Done {
    pub exit: Exit,
    pub summary: RunSummary,
    /// The path of `run_summary.json`.
    pub path: PathBuf,
    pub changes: Vec<FileChange>,
    /// A hint, if the exit code is not enough.
    pub help: Option<String>,
    /// It was done before: nobody was asked.
    pub from_record: bool,
}

impl Done {
    /// An earlier run that is over, from its journal.
    pub(super) fn before(answer: Answer, tree: &WorkTree) -> Result<Self, Failure> {
        let Answer { recorded, past, summary } = answer;
        let path = recorded.folder.path();
        let cannot = || format!("cannot read {SUMMARY} of {}", path.display());
        let outcome = past.outcome().with_context(cannot)?;
        let failed = match summary.verdict {
            Verdict::Pass => None,
            Verdict::Fail => Some(Stage::named(&summary.ended_stage).with_context(cannot)?),
        };
        let (exit, changes) = (exit(failed, outcome), changes::of_run(tree.root(), path)?);
        Ok(Self { exit, summary, path: path.join(SUMMARY), changes, help: None, from_record: true })
    }
}

pub(super) fn order(read: Read, setting: &Setting<'_>) -> Result<Done, Failure> {
    let mut ready = prepare::ready(read, setting)?;
    let (start, claim) = folder::folder(&ready.unfinished.run, &ready.tree, setting)?;
    start.folder().path().clone_into(&mut ready.unfinished.run);
    let (folder, is_new, note) =
        (start.folder().clone(), matches!(start, Start::New { .. }), ready.state.clone());
    let take_back = || {
        if is_new {
            Unfinished::take_back(&note, folder.path());
        }
    };
    if let Start::Resumed(folder) = &start {
        ready.inputs.form = recorded::form(folder).unwrap_or(ready.inputs.form);
    }
    if is_new {
        prepare::first(&ready.inputs).check(setting.model, setting.settings)?;
    }
    enter(&mut ready, &folder, setting).inspect_err(|_| take_back())?;
    let Ready { read, tree, lock, state, guard, baseline, unfinished, mut inputs, confinement, sealed } =
        ready;
    let asking = asking(setting.settings);
    if let Start::New { of_another, .. } = &start {
        let imported = imported(&unfinished, &tree, setting.redactor)?;
        let others = of_another.iter().chain(&imported).filter(|_| !setting.new);
        others.for_each(|other| use_again(other, &asking.paid, setting.host.output));
    }
    let mut observer = observer(setting, &folder);
    // An error here is one of the record, before the first step.
    let (record, past) = start.record(&mut *observer).inspect_err(|_| take_back())?;
    drop(claim);
    recorded::as_summarized(&mut inputs, &folder, &past);
    records::pass_over(&past.lines, setting.model);
    // The order's own cost limit applies if it is lower than that of the settings.
    let spending = spending_of(read.order.max_cost, setting.settings);
    let asking = Asking { spending, ..asking };
    asking.spending.count(&past.lines, setting.settings.model.value.first());
    lock::under_way(&lock, &tree, folder.path())?;
    let account = account(&inputs, setting.settings, tree.root(), folder.path());
    let account = sandbox::in_view(account, &tree, &confinement)?;
    let (root, run, asked) = (tree.root().to_owned(), folder.path().to_owned(), inputs.order.clone());
    let holds_for = |_: &Outcome, interrupt: code_commit_dir::Interrupt<'_>| {
        verdict::of_order(&root, &run, &asked, interrupt)
    };
    let world = OrderWorld {
        record: record.about(tree.root()),
        verify_script: VERIFY_SCRIPT,
        rules: Rules { root: tree.root().to_owned(), guard, lock },
        model: setting.model,
        asking,
        schema: proposal_schema(inputs.form),
        commands: CommandSettings {
            env: sandbox::build_env(setting.settings, setting.host.environment),
            timeout: Duration::from_secs(setting.terms.timeout_seconds),
            limits: sandbox::limits(setting.settings),
            confinement,
            sealed,
        },
        account,
        baseline,
        holds_for: &holds_for,
        cancel: setting.cancel.clone(),
    };
    let mut harness = Journaled::new(world, past.answers);
    match harness.run(|harness| code_commit_loop_order::order(harness, &inputs)) {
        Ok(finished) => {
            let changes = changes::of_run(tree.root(), folder.path())?;
            // Without the note, the journal alone says that the run has committed.
            harness.world().record.sync().context("cannot keep a record")?;
            Unfinished::forget(&state)?;
            finish(finished, &folder, changes)
        }
        Err(stop) => {
            put_back(harness.world(), &folder, unfinished, &state, setting.host.output)?;
            Err(stopped(stop, folder.path()))
        }
    }
}

/// The records of the same run that were made elsewhere.
fn imported(run: &Unfinished, tree: &WorkTree, redactor: &Redactor) -> Result<Vec<RunFolder>, Failure> {
    let all = registry::with_imported(tree)?.into_iter().filter(Known::is_imported);
    let open = |known: &Known| RunFolder::open(known.path(tree.root()), redactor.clone());
    let is_same = |known: &Known| {
        Recorded::load(known, open(known)).is_ok_and(|recorded| {
            let plan = &recorded.plan;
            (&plan.work_order_hash, &plan.config_hash, &plan.repo_tree_hash_before)
                == (&run.work_order_hash, &run.config_hash, &run.tree_hash_before)
        })
    };
    Ok(all.filter(is_same).map(|known| open(&known)).collect())
}

/// Lets the run use the answers of a record that another clone made.
fn use_again(other: &RunFolder, paid: &Paid, output: &Output) {
    // A record that cannot be read has no answers to use.
    let found = records::intact(other).map_or(0, |past| paid.add(other, &past));
    if found > 0 {
        let answers = phrases::count(found as u64, "answer");
        output.note(&format!("{answers} in {} need not be paid for again", other.path().display()));
    }
}

/// Records the plan, and that the tree is in the middle of this run.
fn enter(ready: &mut Ready, folder: &RunFolder, setting: &Setting<'_>) -> Result<(), Failure> {
    record_plan(ready, folder, setting)?;
    ready.unfinished.restored = false;
    ready.unfinished.write(&ready.state).map_err(Failure::no_record)
}

/// In the run folder and in the list of runs.
fn record_plan(ready: &Ready, folder: &RunFolder, setting: &Setting<'_>) -> Result<(), Failure> {
    let begun_utc = Head::of(folder)
        .and_then(|head| head.begun_utc)
        .unwrap_or_else(|| code_commit_logging::Stamp::now().rfc3339());
    let settings = config::carried(setting.settings, ready.tree.root(), setting.host.environment);
    let beginning = Beginning {
        read: &ready.read,
        begun_utc: &begun_utc,
        run: &ready.unfinished,
        shown: &Shown::of(&ready.inputs),
        terms: setting.terms,
        settings: &settings,
        key: setting.key,
        sandbox: ready.confinement.rung,
    };
    let plan = beginning.store(folder).map_err(cannot_begin)?;
    registry::add(&ready.tree, folder.path(), Some(plan))
}

/// The run was stopped: restores the tree; the run can be resumed.
fn put_back(
    world: &mut OrderWorld<'_, '_>,
    folder: &RunFolder,
    mut unfinished: Unfinished,
    state: &Path,
    output: &Output,
) -> Result<(), Failure> {
    let warnings = world.put_back().map_err(|error| not_restored(error, folder.path()))?;
    warnings.iter().for_each(|warning| output.warn(&printable(&warning.message)));
    unfinished.restored = true;
    Ok(unfinished.write(state)?)
}

/// Restores what commands change besides the order's files when it passes, unless the configuration keeps it.
fn account(inputs: &Inputs, settings: &Settings, root: &Path, run: &Path) -> Account {
    let own = verdict::out_in_tree(root, run)
        .into_iter()
        .chain([PathBuf::from(code_commit_names::ours::STATE)])
        .collect();
    let may_change = match settings.byproducts.value {
        Byproducts::Restore => Policy::scoped(inputs.order.allowed_files.iter().cloned()),
        Byproducts::Keep => Policy::build(Binds::Always),
    };
    Account::new("a command", may_change, own).unnoted()
}

fn finish(finished: Finished, folder: &RunFolder, changes: Vec<FileChange>) -> Result<Done, Failure> {
    let Finished { outcome, summary, failed_stage, not_committed } = finished;
    if let Some(why) = not_committed {
        let error = anyhow!("{}", printable(&why))
            .context("the order has passed and its changes are in place, but they could not be committed");
        return Err(error.into());
    }
    let (exit, help) = (exit(failed_stage, &outcome), help(&outcome, folder)?);
    Ok(Done { exit, path: folder.path().join(SUMMARY), summary, changes, help, from_record: false })
}

/// The hint if the model gave no answer.
fn help(outcome: &Outcome, folder: &RunFolder) -> Result<Option<String>, Failure> {
    let Outcome::ModelUnavailable { cause, .. } = outcome else { return Ok(None) };
    let past = Past::read(folder.path()).context("cannot read the record")?;
    let again = (!folder::is_over(&past))
        .then(|| format!("code-commit resume {} asks again", crate::records::name(folder.path())));
    let parts: Vec<String> = cause.remedy.clone().into_iter().chain(again).collect();
    Ok(Some(parts.join("; ")).filter(|help| !help.is_empty()))
}

fn exit(failed: Option<Stage>, outcome: &Outcome) -> Exit {
    match (failed, outcome) {
        (None, _) => Exit::Done,
        (Some(_), Outcome::ModelUnavailable { .. }) => Exit::ModelUnavailable,
        (Some(Stage::Preflight), _) => Exit::Refused,
        (Some(Stage::Exception), _) => Exit::Fault,
        (
            Some(
                Stage::LlmOutputInvalid
                | Stage::WriteScopeViolation
                | Stage::StaleContext
                | Stage::WriteFailed
                | Stage::VerifyFailed
                | Stage::AcceptanceFailed,
            ),
            _,
        ) => Exit::Failed,
    }
}

fn observer(setting: &Setting<'_>, folder: &RunFolder) -> Box<dyn Observer> {
    let (counts, log) = (Counts::Attempts(setting.terms.max_attempts), folder.path().display().to_string());
    observer::observer(setting.host.output, setting.model.id(), counts, folder, log)
}

/// The tree is restored, and the run can be resumed.
fn stopped(stop: Stop<Fault>, run: &Path) -> Failure {
    let fault = match stop {
        Stop::Fault(fault) => fault,
        stop @ (Stop::Differs(_) | Stop::Unreadable { .. }) => {
            return Failure::refused(stop, UNLIKE_RECORDED);
        }
    };
    let is_over = matches!(fault, Fault::NoTimeLeft(_));
    let exit = [
        (matches!(fault, Fault::KeyInPrompt { .. }), Exit::Refused),
        (matches!(fault, Fault::Interrupted), Exit::Interrupted),
        (is_over, Exit::ModelUnavailable),
    ];
    let exit = exit.into_iter().find(|(is, _)| *is).map_or(Exit::Fault, |(_, exit)| exit);
    let first = if is_over { "raise --max-time; " } else { "" };
    let name = crate::records::name(run);
    let help = format!(
        "{first}the tree is as it was; code-commit resume {name} goes on with {}, and so does the same command",
        run.display()
    );
    Failure::new(exit, fault).help(help).of_run(run)
}
