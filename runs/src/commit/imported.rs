//! A run that was made elsewhere begins anew here, with the answers that were paid for: its own rounds were those
//! of another tree.

use anyhow::anyhow;
use code_commit_logging::RunFolder;
use code_commit_perform::Paid;
use code_commit_repo::WorkTree;
use code_commit_report::phrases;
use code_commit_settings::{Keys, Settings};

use super::request::{Which, refused};
use super::run::{Commit, From};
use super::{begun, inputs, tree_checks};
use crate::commit::plan::{Plan, Task};
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::life::{Loop as _, UNLIKE_RECORDED};
use crate::records::{self, closed};
use crate::registry::Known;
use crate::site::Site;
use crate::{preflight, resume};

/// Uncommitted files named in a message.
const NAMED_FILES: usize = 5;

/// Begins it with the settings of the record, after the preflight of any run.
pub(super) fn begin(
    known: &Known,
    args: &resume::Request,
    site: &Site<'_>,
) -> Result<Exit, Failure> {
    let (
        tree,
        Host {
            environment,
            output,
            ..
        },
    ) = (site.tree()?, site.host);
    let root = tree.root();
    let keys = Keys::find(environment, root);
    let run = RunFolder::open(known.path(root), output.strike_out(keys.exposed()));
    let recorded =
        Plan::load(&run, known).map_err(|error| Failure::refused(error, "start a new run"))?;
    let past = records::intact(&run).map_err(|error| Failure::refused(error, UNLIKE_RECORDED))?;
    let name = records::name(run.path());
    if Commit::kept(&past).is_none() {
        return Err(closed(&name, "is over"));
    }
    let mut settings = crate::config::unpacked(&recorded.settings, root, environment);
    settings.put_flags(args.limits.clone());
    let which = which(&recorded.task);
    let own = preflight::own_or_absent(root).err();
    let missing: Vec<_> = own
        .into_iter()
        .chain(inputs::lacks(which, root, &settings, &keys, environment))
        .collect();
    if !missing.is_empty() {
        return Err(refused(missing));
    }
    let lock = site.lock()?;
    if !args.force {
        is_its_tree(&recorded, &name, tree)?;
    }
    let plan = anew(recorded, settings, tree)?;
    let paid = Paid::default();
    let answers = phrases::count(paid.add(&run, &past) as u64, "reply");
    output.note(&format!(
        "{name} was made elsewhere: begun here anew, with {answers} that need not be paid for again"
    ));
    let commit = Commit::new(site, &keys, From::Imported(&paid))?;
    commit.live(lock)?.begin(plan).map(|done| done.exit)
}

fn which(task: &Task) -> Which {
    match task {
        Task::Commit { .. } => Which::Commit,
        Task::Implement { .. } => Which::Implement,
    }
}

/// What was asked for, on this tree.
fn anew(recorded: Plan, settings: Settings, tree: &WorkTree) -> Result<Plan, Failure> {
    let Plan {
        version,
        settings,
        rounds,
        sealed,
        head,
        task,
        ..
    } = begun::plan(settings, tree, recorded.task.clone())?;
    Ok(Plan {
        version,
        settings,
        rounds,
        sealed,
        head,
        task,
        ..recorded
    })
}

/// Its prompts show the code of the tree that it began with.
fn is_its_tree(recorded: &Plan, name: &str, tree: &WorkTree) -> Result<(), Failure> {
    let short = |commit: &Option<String>| {
        let commit = commit.as_deref().unwrap_or("no commit");
        commit.get(..12).unwrap_or(commit).to_owned()
    };
    let head = tree.head()?;
    if recorded.head != head {
        let (then, now) = (short(&recorded.head), short(&head));
        let error = anyhow!("{name} began with {then}, and {now} is checked out here");
        let help = format!("check out {then}; or start its command here; or go on with --force");
        return Err(Failure::refused(error, help));
    }
    let dirty = tree_checks::uncommitted(tree, recorded.task.binds())?;
    if dirty.is_empty() {
        return Ok(());
    }
    let error = anyhow!(
        "{name} began with another tree: not committed here: {}",
        phrases::first(&dirty, NAMED_FILES)
    );
    Err(Failure::refused(
        error,
        "commit or stash these files; or start its command here; or go on with --force",
    ))
}
