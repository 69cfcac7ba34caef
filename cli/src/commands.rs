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

use std::path::Path;

use report::Output;
use settings::Environment;

use crate::args::{Cli, Command};
use crate::commands::commit::Which;
use crate::exit::{Exit, Failure};
use crate::lock;

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

/// Puts right what a killed run has left, whatever the command.
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
    lock::recover_in(folder, output)
}
