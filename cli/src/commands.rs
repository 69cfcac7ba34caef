//! One file a command.

mod agents;
mod apply;
mod clean;
mod commit;
mod completions;
mod config;
mod costs;
mod demo;
pub mod doctor;
mod guard;
mod init;
pub mod order;
mod parse;
pub mod phase;
pub mod registry;
mod replay;
mod resume;
mod rollup;
pub mod run;
pub mod runs;
mod sandbox;
mod show;
pub mod spec;
mod text;
mod trust;
mod undo;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::apply::{Lock, LockError};
use anyhow::Context as _;
use repo::{OpenError, WorkTree};
use runner::{Containers, Orphans};
use settings::Environment;

use crate::args::{Cli, Command};
use crate::commands::commit::Which;
use crate::exit::{Exit, Failure};
use crate::output::{Output, printable, printable_name};

/// Runs the command that was given.
pub fn run(cli: &Cli, environment: &Environment, output: &Output) -> Result<Exit, Failure> {
    recover_first(cli.command.as_ref(), output)?;
    match &cli.command {
        None => commit::run(Which::Commit, &cli.run, environment, output),
        Some(Command::Implement(args)) => commit::run(Which::Implement, args, environment, output),
        Some(Command::Runs) => show::list(output),
        Some(Command::Show(args)) => show::show(args, output),
        Some(Command::Replay(args)) => replay::run(args, environment, output),
        Some(Command::Resume(args)) => resume::run(args, environment, output),
        Some(Command::Phase(args)) => phase::run(args, environment, output),
        Some(Command::Spec(args)) => spec::run(args, environment, output),
        Some(Command::Costs) => costs::run(environment, output),
        Some(Command::Init(args)) => init::run(args, output),
        Some(Command::Rollup(args)) => rollup::run(args, environment, output),
        Some(Command::Parse(args)) => parse::run(args, output),
        Some(Command::Guard(args)) => guard::run(args, environment, output),
        Some(Command::Apply(args)) => apply::run(args, environment, output),
        Some(Command::Undo(args)) => undo::run(args, output),
        Some(Command::Clean(args)) => clean::run(args, output),
        Some(Command::Order(args)) => order::run(args, environment, output),
        Some(Command::Demo(args)) => demo::run(args, environment, output),
        Some(Command::Config(args)) => config::run(args, environment, output),
        Some(Command::Trust(args)) => trust::run(args, environment, output),
        Some(Command::Doctor(args)) => doctor::run(args, environment, output),
        Some(Command::Completions(args)) => Ok(completions::completions(args, output)),
        Some(Command::Man(args)) => completions::man(args, output),
    }
}

/// The work tree of `folder`, or why there is none.
fn work_tree(folder: &Path) -> Result<WorkTree, Failure> {
    WorkTree::at(folder).map_err(|error| {
        let help = if matches!(error, OpenError::NotARepository { .. }) {
            "run code-commit init here, or change to the project's folder".to_owned()
        } else if matches!(error, OpenError::Bare { .. }) {
            "run it in a clone that has files".to_owned()
        } else if let OpenError::ForeignOwner { top, .. } = &error {
            format!("if you trust it: git config --global --add safe.directory {}", top.display())
        } else {
            "run git status there".to_owned()
        };
        Failure::refused(error, help)
    })
}

/// Puts right what a killed run has left, whatever the command: no process of it goes on writing, and the tree is the old one or the new
/// one. Where another run is at work, both are that run's.
fn recover_first(command: Option<&Command>, output: &Output) -> Result<(), Failure> {
    let folder = match command {
        Some(Command::Completions(_) | Command::Man(_) | Command::Parse(_)) => return Ok(()),
        Some(Command::Guard(args)) => &args.root,
        Some(Command::Order(args)) => args.repo(),
        None
        | Some(
            Command::Implement(_)
            | Command::Phase(_)
            | Command::Spec(_)
            | Command::Costs
            | Command::Runs
            | Command::Show(_)
            | Command::Resume(_)
            | Command::Replay(_)
            | Command::Init(_)
            | Command::Rollup(_)
            | Command::Apply(_)
            | Command::Undo(_)
            | Command::Clean(_)
            | Command::Demo(_)
            | Command::Config(_)
            | Command::Trust(_)
            | Command::Doctor(_),
        ) => Path::new("."),
    };
    if ![::apply::TXN_FOLDER, ::apply::LOCK].iter().any(|name| repo::may_hold_state(folder, name)) {
        return Ok(());
    }
    let tree = WorkTree::at(folder).ok();
    let state = match &tree {
        Some(tree) => state(tree)?,
        // Agents work in folders without a repository, too. Transactions are found by the command that looks for one.
        None if folder.join(names::ours::STATE).is_dir() => state_of(folder)?,
        None => return Ok(()),
    };
    let lock = match acquire(&state) {
        Ok(lock) => lock,
        Err(LockError::Held { .. }) => return Ok(()),
        Err(error) => return Err(no_lock(error)),
    };
    end_orphans_of(&lock, output);
    tree.map_or(Ok(()), |tree| recover(&lock, &tree, output))
}

/// Takes the lock of a work tree and puts right what a killed run has left.
fn lock(tree: &WorkTree, output: &Output) -> Result<Lock, Failure> {
    let lock = lock_state(&state(tree)?, output)?;
    recover(&lock, tree, output)?;
    Ok(lock)
}

/// Takes the lock that lies in this folder, and ends what a killed run has left running.
fn lock_state(state: &Path, output: &Output) -> Result<Lock, Failure> {
    let lock = acquire(state).map_err(no_lock)?;
    end_orphans_of(&lock, output);
    Ok(lock)
}

/// Ends what the last holder of a lock has left running, if it was killed: without a sandbox an agent outlives its harness, and goes on
/// writing.
fn end_orphans_of(lock: &Lock, output: &Output) {
    if lock.was_abandoned() {
        end_orphans(output);
    }
}

fn state(tree: &WorkTree) -> Result<PathBuf, Failure> {
    Ok(tree.state_dir()?)
}

/// The same of a folder that need not be in a work tree.
fn state_of(root: &Path) -> Result<PathBuf, Failure> {
    let state = match WorkTree::at(root) {
        Ok(tree) => tree.state_dir(),
        Err(_) => repo::state_dir_in_tree(root),
    };
    Ok(state?)
}

/// What a harness that was killed has left running, in containers or without.
fn end_orphans(output: &Output) {
    let Orphans { processes, containers } = runner::remove_orphans(crate::environment().docker_host());
    // Where no daemon answers there is none that could still run anything.
    let Containers { removed, left } = containers.unwrap_or_default();
    if processes + removed > 0 {
        output.note(&format!(
            "ended what a killed run left behind; processes: {processes}, containers: {removed}"
        ));
    }
    if !left.is_empty() {
        let names = left.join(" ");
        output.warn(&format!(
            "a killed run left containers that docker does not remove; docker rm --force {names}"
        ));
    }
}

fn recover(lock: &Lock, tree: &WorkTree, output: &Output) -> Result<(), Failure> {
    let state = state(tree)?;
    let recovery = ::apply::recover(lock, tree.root()).map_err(|error| {
        let waits = state.join(::apply::TXN_FOLDER);
        let way = if matches!(error, ::apply::RecoverError::OtherVersion { .. }) {
            "try again with that version"
        } else {
            "fix that and try again"
        };
        let help = format!("{way}, or move {} away to keep the files as they are", waits.display());
        Failure::new(Exit::TreeNotRestored, error).help(help)
    })?;
    match recovery {
        ::apply::Recovery::Nothing => {}
        ::apply::Recovery::RolledBack(back) => {
            output.warn("an earlier run was killed while it wrote files; its unfinished changes were undone");
            if !back.left.is_empty() {
                output.warn(&left_alone(&back));
            }
        }
        ::apply::Recovery::Finished { applied, .. } => {
            output.warn("an earlier run was killed right after it wrote files; they are complete");
            applied.warnings.iter().for_each(|warning| output.warn(&printable(&warning.to_string())));
        }
    }
    if lock.was_abandoned()
        && let Err(error) = run::summaries(tree)
    {
        output.warn(&format!("{error:#}"));
    }
    Ok(())
}

/// The files that somebody has changed since the run was killed, and where they are as they were before it.
fn left_alone(back: &::apply::RolledBack) -> String {
    let kept = back.left_in.as_ref().map(|folder| format!("; as they were: {}", folder.display()));
    format!(
        "changed since, so left alone: {}{}",
        printable_name(&back.left.join(", ")),
        kept.unwrap_or_default()
    )
}

/// What to do where the lock cannot be had.
fn no_lock(error: LockError) -> Failure {
    let help = error.hint();
    Failure::refused(error, help)
}

/// The lock. A process that was killed while it started a build leaves its lock to the half-started child for a moment: a holder that is
/// gone is waited for.
fn acquire(state: &Path) -> Result<Lock, LockError> {
    let is_gone = |error: &LockError| matches!(error, LockError::Held { pid, .. } if !Path::new(&format!("/proc/{pid}")).exists());
    for _ in 0..20 {
        match Lock::acquire(state, "code-commit") {
            Err(error) if is_gone(&error) => std::thread::sleep(Duration::from_millis(50)),
            taken => return taken,
        }
    }
    Lock::acquire(state, "code-commit")
}

/// The current folder.
fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .context("cannot determine the current folder")
        .map_err(|error| Failure::refused(error, "change to a folder that exists"))
}

/// The root of the project for commands that need no repository: the current folder, links resolved.
fn root() -> Result<PathBuf, Failure> {
    Ok(here()?.canonicalize().context("cannot determine the current folder")?)
}

/// A file's bytes, or those of standard input for `-`.
fn read_input(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
        return Ok(bytes);
    }
    std::fs::read(file)
        .with_context(|| format!("cannot read {}", file.display()))
        .map_err(|error| Failure::refused(error, "name a readable file, or - for standard input"))
}
