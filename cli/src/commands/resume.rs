//! `code-commit resume`: a run that was killed or interrupted goes on where its journal ends.

use std::path::Path;

use anyhow::anyhow;
use logging::{Redactor, RunFolder};
use perform::{JOURNAL, Past};
use repo::WorkTree;
use report::{Output, phrases};
use settings::{Environment, Keys};

use crate::args::ResumeArgs;
use crate::commands::order;
use crate::commands::order::recorded::Recorded;
use crate::commands::registry::{self, Known};
use crate::commands::run::{self, Prepared, UNLIKE_RECORDED, can_go_on, resume};
use crate::commands::sandbox::Otherwise;
use crate::commands::{runs, spec};
use crate::exit::{Exit, Failure};
use crate::lock;
use crate::models;
use crate::place;
use crate::plan::Plan;
use crate::preflight;

/// Finds the run, then goes on with it as its loop does.
pub fn run(args: &ResumeArgs, environment: &Environment, output: &Output) -> Result<Exit, Failure> {
    let tree = place::work_tree(&place::here()?)?;
    meant(args, &tree, environment, output).map_err(|failure| {
        let older = if args.run.is_none() { older_unfinished(&tree) } else { None };
        match older {
            Some(older) if failure.exit == Exit::NothingToDo => failure.help(older),
            Some(_) | None => failure,
        }
    })
}

/// The run of that name, or the newest: an older one is not meant, whose prompt is stale by now and whose changes may be committed.
fn meant(
    args: &ResumeArgs,
    tree: &WorkTree,
    environment: &Environment,
    output: &Output,
) -> Result<Exit, Failure> {
    let known = runs::find_known(tree, args.run.as_deref());
    if let Some(past) = spec::history::meant(tree, args.run.as_deref(), &known) {
        let limits = args.limits.layer.limits.clone();
        return spec::history::resume(&past, tree.root(), limits, environment, output);
    }
    let known = known?;
    if Recorded::is_in(&known.path(tree.root())) && !known.undone {
        return order::resume(&known, &args.limits, tree, environment, output);
    }
    go_on(&known, args, tree, environment, output)
}

/// The runs that could be gone on with by their names, for a person.
fn older_unfinished(tree: &WorkTree) -> Option<String> {
    let (state, now) = (place::state(tree).ok()?, runs::now());
    let unfinished = |known: &Known| !known.undone && is_over(known, tree, &state) == Some(false);
    let line = |known: Known| {
        let path = known.path(tree.root());
        let age = now.duration_since(runs::last_written(&path)).unwrap_or_default();
        format!("{} ({})", runs::name(&path), phrases::ago(age))
    };
    let older: Vec<String> = registry::all(tree).ok()?.into_iter().filter(unfinished).map(line).collect();
    let named = (!older.is_empty()).then(|| phrases::first(&older, runs::NAMED_RUNS))?;
    Some(format!("older unfinished runs: {named}; to continue one: code-commit resume RUN"))
}

/// Whether nothing is left to do in a run that is listed; none if its journal cannot be read.
pub fn is_over(known: &Known, tree: &WorkTree, state: &Path) -> Option<bool> {
    let folder = RunFolder::open(known.path(tree.root()), Redactor::default());
    if Recorded::is_in(folder.path()) {
        return order::is_over(&folder, state);
    }
    if known.undone || !folder.path().join(JOURNAL).exists() {
        return Some(true);
    }
    let past = Past::read(folder.path()).ok()?;
    Some(past.lines.is_empty() || !can_go_on(&past))
}

/// Reads the plan and the facts of a commit loop, then goes on.
fn go_on(
    known: &Known,
    args: &ResumeArgs,
    tree: &WorkTree,
    environment: &Environment,
    output: &Output,
) -> Result<Exit, Failure> {
    let keys = Keys::find(environment, tree.root());
    let redactor = output.strike_out(keys.exposed());
    let lock = lock::take(tree, output)?;
    let folder = RunFolder::open(known.path(tree.root()), redactor.clone());
    let name = runs::name(folder.path());
    if known.undone {
        return Err(closed(&name, "was undone"));
    }
    let exit = if known.has_plan() { Exit::Refused } else { Exit::NothingToDo };
    let mut plan =
        Plan::load(&folder, known).map_err(|error| Failure::new(exit, error).help("start a new run"))?;
    let past = Past::read(folder.path()).map_err(|error| Failure::refused(error, UNLIKE_RECORDED))?;
    if !can_go_on(&past) {
        return Err(closed(&name, "is over"));
    }
    if !args.force {
        run::changed::refuse(tree, &plan, &folder, environment)?;
    }
    // A build that is not found fails every round, and each repair would be paid for.
    preflight::build_command(tree.root(), &plan.settings.build.value, environment)
        .map_err(|missing| Failure::refused(anyhow!(missing.what), missing.hint))?;
    plan.settings.put_flags(args.limits.layer.clone());
    output.note(&format!("resuming {name}"));
    let cancel = crate::interrupt::watched()?;
    preflight::price(&plan.settings)?;
    let client = models::open(&plan.settings, &keys, environment, tree, output)?;
    client.pass_over(runs::answers_used(&past.lines));
    let guard = run::guard(tree, &plan)?;
    let (model, without_sandbox) = (&*client, Otherwise::Refuse);
    let prepared =
        Prepared { tree, lock, guard, plan, model, environment, redactor, cancel, output, without_sandbox };
    resume(prepared, &folder).map(|done| done.exit)
}

fn closed(name: &str, why: &str) -> Failure {
    let help = format!("start a new run; to see what this one did: code-commit show {name}");
    Failure::nothing_to_do(anyhow!("{name} {why}"), help)
}
