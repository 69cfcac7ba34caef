//! `code-commit resume`: a run that was killed or interrupted goes on where its journal ends.

use anyhow::anyhow;
use engine::{CallFact, Fact, outline_of};
use logging::RunFolder;
use repo::WorkTree;

use crate::args::ResumeArgs;
use crate::commands::order::{self, Recorded};
use crate::commands::registry::Known;
use crate::commands::run::{self, Prepared, UNLIKE_RECORDED, resume};
use crate::commands::wall::Otherwise;
use crate::commands::{runs, spec};
use crate::config::Origin;
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::keys::Keys;
use crate::models;
use crate::output::Output;
use crate::plan::Plan;

/// Finds the run, then goes on with it as its loop does.
pub fn run(args: &ResumeArgs, environment: &Environment, output: &Output) -> Result<Exit, Failure> {
    let tree = super::work_tree(&super::here()?)?;
    let known = runs::find_known(&tree, args.run.as_deref());
    if let Some(past) = spec::history::meant(&tree, args.run.as_deref(), &known) {
        return Err(spec::history::refuse_resume(&past));
    }
    let known = known?;
    if Recorded::is_in(&known.path(tree.root())) && !known.undone {
        return order::resume(&known, &args.limits, &tree, environment, output);
    }
    go_on(&known, args, &tree, environment, output)
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
    let lock = super::lock(tree, output)?;
    let folder = RunFolder::open(known.path(tree.root()), redactor.clone());
    let name = runs::name(folder.path());
    if known.undone {
        return Err(closed(&name, "was undone"));
    }
    let mut plan = Plan::load(&folder, known).map_err(|error| Failure::refused(error, "begin a new run"))?;
    let facts: Vec<Fact> = outline_of(&folder).map_err(|error| Failure::refused(error, UNLIKE_RECORDED))?;
    if !can_go_on(&facts) {
        return Err(closed(&name, "is over"));
    }
    plan.settings.put_limits(&args.limits.layer(), Origin::Flag);
    output.note(&format!("going on with {name}"));
    let cancel = crate::interrupt::watched()?;
    let client = models::open(&plan.settings, &keys, environment, tree)?;
    client.pass_over(facts.iter().filter(|fact| is_attempt(fact)).count());
    let guard = run::guard(tree, &plan)?;
    let (model, without_wall) = (&*client, Otherwise::Refuse);
    let prepared =
        Prepared { tree, lock, guard, plan, model, environment, redactor, cancel, output, without_wall };
    resume(prepared, &folder).map(|done| done.exit)
}

fn closed(name: &str, why: &str) -> Failure {
    let help = format!("begin a new run; what this one did: code-commit show {name}");
    Failure::refused(anyhow!("{name} {why}"), help)
}

fn is_attempt(fact: &Fact) -> bool {
    matches!(fact, Fact::Call(CallFact::Attempted { .. }))
}

/// A run that was killed goes on, and one that ended because the model gave no answer. One whose changes were taken back is over.
pub fn can_go_on(facts: &[Fact]) -> bool {
    match facts {
        [.., last, Fact::Ended { .. }] => matches!(last, Fact::Call(CallFact::Unanswered { .. })),
        _ => true,
    }
}
