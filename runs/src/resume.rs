//! `code-commit resume`: continues a killed or interrupted run where its journal ends.

use std::path::Path;

use anyhow::anyhow;
use code_commit_apply::Lock;
use code_commit_logging::RunFolder;
use code_commit_perform::{JOURNAL, Past};
use code_commit_repo::WorkTree;
use code_commit_report::phrases;
use code_commit_settings::{Keys, Layer};

use crate::commit;
use crate::commit::changed;
use crate::commit::plan::Plan;
use crate::commit::run::{self, Prepared, UNLIKE_RECORDED, can_go_on, holds_something, resume};
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::lock;
use crate::order;
use crate::order::recorded::Recorded;
use crate::place;
use crate::preflight;
use crate::registry::{self, Known};
use crate::sandbox::Otherwise;
use crate::{records, spec};

/// Which run to resume, and how.
#[derive(Debug, Default)]
pub struct Request {
    /// The run, by the name of its folder or by its path; the newest if not named.
    pub run: Option<String>,
    /// Resume even if files have changed since the run was stopped.
    pub force: bool,
    /// Limits that replace the original ones.
    pub limits: Layer,
}

/// Finds the run, then resumes it with its loop.
pub fn run(args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let tree = place::work_tree(place::here(host)?)?;
    meant(args, &tree, host).map_err(|failure| {
        let older = if args.run.is_none() { older_unfinished(&tree) } else { None };
        match older {
            Some(older) if failure.exit == Exit::NothingToDo => failure.help(older),
            Some(_) | None => failure,
        }
    })
}

/// The named run, or the newest: an older one has a stale prompt, and its changes may be committed.
fn meant(args: &Request, tree: &WorkTree, host: Host<'_>) -> Result<Exit, Failure> {
    // Also one that has not asked yet: it is what was asked for last.
    let newest = || Some(registry::all(tree).ok()?.first()?.path(tree.root()).display().to_string());
    let known = records::find_known(tree, args.run.clone().or_else(newest).as_deref());
    if let Some(past) = spec::history::meant(tree, args.run.as_deref(), &known) {
        let limits = args.limits.limits.clone();
        return spec::history::resume(&past, tree.root(), limits, host);
    }
    let known = known?;
    believed(&known, tree.root())?;
    if Recorded::is_in(&known.path(tree.root())) && !known.undone {
        return order::resume(&known, &args.limits, tree, host);
    }
    if known.is_imported() {
        return commit::begin_imported(&known, args, tree, host);
    }
    go_on(&known, args, tree, lock::take(tree, host)?, host)
}

/// The names of runs that could be resumed, for the user.
fn older_unfinished(tree: &WorkTree) -> Option<String> {
    let (state, now) = (place::state(tree).ok()?, records::now());
    let unfinished = |known: &Known| !known.undone && is_over(known, tree, &state) == Some(false);
    let line = |known: Known| {
        let path = known.path(tree.root());
        let age = now.duration_since(records::last_written(&path)).unwrap_or_default();
        format!("{} ({})", records::name(&path), phrases::ago(age))
    };
    let older: Vec<String> = registry::all(tree).ok()?.into_iter().filter(unfinished).map(line).collect();
    let named = (!older.is_empty()).then(|| phrases::first(&older, records::NAMED_RUNS))?;
    Some(format!("older unfinished runs: {named}; to continue one: code-commit resume RUN"))
}

/// Whether a listed run is over, or holds nothing that a resumed run could use; `None` if its journal cannot be read.
pub fn is_over(known: &Known, tree: &WorkTree, state: &Path) -> Option<bool> {
    // What was made elsewhere is not in the middle of anything here.
    if known.is_imported() {
        return Some(true);
    }
    let folder = records::open(&known.path(tree.root()));
    if Recorded::is_in(folder.path()) {
        return order::is_over(&folder, state);
    }
    if known.undone || !folder.path().join(JOURNAL).exists() {
        return Some(true);
    }
    let past = Past::read(folder.path()).ok()?;
    Some(!holds_something(&past))
}

/// What a plan that nobody vouches for says about the sandbox and the model does not count.
fn believed(known: &Known, root: &Path) -> Result<(), Failure> {
    if known.is_believed() {
        return Ok(());
    }
    let name = records::name(&known.path(root));
    let error = anyhow!("{name} was made elsewhere, and nobody whom you trust vouches for it");
    Err(Failure::refused(
        error,
        "start its command here: the answers of an unfinished run are used again; or import it with --trust, or with --allowed-signers",
    ))
}

/// Reads the plan and the facts of a commit loop, then resumes it.
pub(crate) fn go_on(
    known: &Known,
    args: &Request,
    tree: &WorkTree,
    lock: Lock,
    host: Host<'_>,
) -> Result<Exit, Failure> {
    let Host { environment, output, .. } = host;
    let keys = Keys::find(environment, tree.root());
    let redactor = output.strike_out(keys.exposed());
    let folder = RunFolder::open(known.path(tree.root()), redactor.clone());
    let name = records::name(folder.path());
    if known.undone {
        return Err(closed(&name, "was undone"));
    }
    records::can_be_continued(folder.path())?;
    let exit = if known.has_plan() { Exit::Refused } else { Exit::NothingToDo };
    let mut plan =
        Plan::load(&folder, known).map_err(|error| Failure::new(exit, error).help("start a new run"))?;
    let past =
        Past::read_if_begun(folder.path()).map_err(|error| Failure::refused(error, UNLIKE_RECORDED))?;
    if !can_go_on(&past) {
        return Err(closed(&name, "is over"));
    }
    if !args.force {
        changed::refuse(tree, &plan, &folder, environment)?;
    }
    // A missing build would fail every round, and each repair would be paid for.
    preflight::build_command(tree.root(), &plan.settings.build.value, environment)
        .map_err(|missing| Failure::refused(anyhow!(missing.what), missing.hint))?;
    plan.settings = crate::config::unpacked(&plan.settings, tree.root(), environment);
    plan.settings.put_flags(args.limits.clone());
    output.note(&format!("resuming {name}"));
    let cancel = crate::interrupt::watched()?;
    preflight::price(&plan.settings)?;
    let client = host.models.open(&plan.settings, &keys, tree, host)?;
    records::pass_over(&past.lines, &*client);
    let guard = run::guard(tree, &plan)?;
    let (model, without_sandbox) = (&*client, Otherwise::Refuse);
    let prepared = Prepared { tree, lock, guard, plan, model, redactor, cancel, host, without_sandbox };
    resume(prepared, &folder).map(|done| done.exit)
}

pub(crate) fn closed(name: &str, why: &str) -> Failure {
    let help = format!("start a new run; to see what this one did: code-commit show {name}");
    Failure::nothing_to_do(anyhow!("{name} {why}"), help)
}
