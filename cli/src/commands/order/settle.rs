//! Orders whose harness was killed, before anything else is done: the tree is put back, or a run that has committed is brought to its end. And
//! the runs that are done with, so that the same command pays for none of them again.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use logging::{Redactor, RunFolder};
use perform::{Facts as _, Loop as _, Next, OrderFact, OrderStep, Record, Silent, outline_of};
use repo::{Git, WorkTree};

use crate::commands::order::recorded::Recorded;
use crate::commands::order::unfinished::Unfinished;
use crate::commands::order::{preflight, runs};
use crate::commands::registry::{self, Known};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::Output;

/// Deals with what a killed run has left. Takes the lock for as long.
pub fn recover(tree: &WorkTree, environment: &Environment, output: &Output) -> Result<(), Failure> {
    let lock = super::super::lock(tree, output)?;
    let state = crate::commands::state(tree)?;
    runs::clear_up(&state, tree, &preflight::git(tree, environment), &lock, output).map(drop)
}

/// Notes the commit of a run that was killed before its journal said so, and that the run is over. False where it has made none.
pub fn settle(run: &Unfinished, tree: &WorkTree, git: &Git) -> Result<bool, Failure> {
    let known = registry::all(tree)?.into_iter().find(|known| known.path(tree.root()) == run.run);
    let folder = RunFolder::open(run.run.clone(), Redactor::default());
    let Some(recorded) = known.and_then(|known| Recorded::load(&known, folder).ok()) else {
        return Ok(false);
    };
    let kept = "cannot keep a record";
    let mut decide = recorded.decide()?;
    let mut silent = Silent;
    let (mut record, facts) = Record::resume(recorded.folder, &mut silent).context(kept)?;
    facts.iter().for_each(|fact| decide.learn(fact));
    if let Next::Do(OrderStep::Commit { message }) = decide.next() {
        // The message's last line names the run; git may have tidied the others.
        let line = message.lines().next_back().unwrap_or_default();
        let Some(commit) = git.commit_upon(&run.commit, line)? else { return Ok(false) };
        let fact = OrderFact::Committed { commit: Some(commit) };
        record.note(&fact).context(kept)?;
        decide.learn(&fact);
    }
    match decide.next() {
        Next::Stop(outcome) if decide.failed_stage().is_none() => {
            record.note(&OrderFact::ended(outcome)).context(kept)?;
            Ok(true)
        }
        Next::Stop(_) | Next::Do(_) => Ok(false),
    }
}

/// The runs whose commits are the newest ones, with nothing in between: what an earlier call got done before it was stopped.
pub fn committed(tree: &WorkTree, git: &Git) -> Result<Vec<Recorded>, Failure> {
    let runs = registry::all(tree)?.into_iter().filter(|run| !run.undone);
    let commits = runs.filter_map(|run| Some((commit_of(&run.path(tree.root()))?, run)));
    let mut by_commit: HashMap<String, Known> = commits.collect();
    let (mut made, mut name) = (Vec::new(), "HEAD".to_owned());
    while let Some(commit) = git.commit_of(&name)?
        && let Some(run) = by_commit.remove(&commit)
    {
        let folder = RunFolder::open(run.path(tree.root()), Redactor::default());
        made.extend(Recorded::load(&run, folder));
        name = format!("{commit}~1");
    }
    Ok(made)
}

fn commit_of(run: &Path) -> Option<String> {
    let folder = Recorded::is_in(run).then(|| RunFolder::open(run.to_owned(), Redactor::default()))?;
    let facts: Vec<OrderFact> = outline_of(&folder).ok()?;
    facts.into_iter().find_map(|fact| if let OrderFact::Committed { commit } = fact { commit } else { None })
}
