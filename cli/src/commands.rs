//! One file per command.

mod apply;
mod completions;
mod config;
mod costs;
mod demo;
mod diff;
mod doctor;
mod doors;
mod guard;
mod init;
mod order_check;
mod order_template;
mod page;
mod parse;
pub mod phase;
mod rollup;
mod show;
mod spec;
mod trust;

use std::path::Path;

use code_commit_runs::commit::{self, Which};
use code_commit_runs::{Exit, Failure, Host, again, check, clean, lock, order, resume, undo};

use crate::args::order::OrderCommand;
use crate::args::{Cli, Command};

/// Runs the given command.
pub fn run(cli: &Cli, host: Host<'_>) -> Result<Exit, Failure> {
    recover_first(cli.command.as_ref(), host)?;
    perform(cli, host)
}

fn perform(cli: &Cli, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    match &cli.command {
        None => commit::run(Which::Commit, &cli.run.request()?, host),
        Some(Command::Run(args)) => commit::run(Which::Commit, &args.request()?, host),
        Some(Command::Implement(args)) => commit::run(Which::Implement, &args.request()?, host),
        Some(Command::Check(args)) => check::run(&args.settings.layer, args.of(), host),
        Some(Command::Runs(args)) => show::list(args, host),
        Some(Command::Show(args)) => show::show(args, host),
        Some(Command::Diff(args)) => diff::run(args.run.as_deref(), host),
        Some(Command::Page(args)) => page::run(args, host),
        Some(Command::Again(args)) => again::run(args.from.as_deref(), args.run.request()?, host),
        Some(Command::Resume(args)) => resume::run(&args.request(), host),
        Some(Command::Phase(args)) => phase::run(args, host),
        Some(Command::Spec(args)) => spec::run(args, host),
        Some(Command::Costs) => costs::run(host),
        Some(Command::Init(args)) => init::run(args, host),
        Some(Command::Rollup(args)) => rollup::run(args, host),
        Some(Command::Parse(args)) => parse::run(args, output),
        Some(Command::Guard(args)) => guard::run(args, host),
        Some(Command::Apply(args)) => apply::run(args, host),
        Some(Command::Undo(args)) => undo::run(&args.request(), host),
        Some(Command::Redo(args)) => undo::redo(args.run.as_deref(), args.force(), host),
        Some(Command::Clean(args)) => clean::run(&args.request(), host),
        Some(Command::Order(args)) => of_orders(&args.command, host),
        Some(Command::Acp(args)) => doors::acp(args, host),
        Some(Command::Mcp(args)) => doors::mcp(args, host),
        Some(Command::Demo(args)) => demo::run(args, host),
        Some(Command::Config(args)) => config::run(args, host),
        Some(Command::Trust(args)) => trust::run(args, host),
        Some(Command::Doctor(args)) => doctor::run(args, host),
        Some(Command::Completions(args)) => Ok(completions::completions(args, output)),
        Some(Command::Man(args)) => completions::man(args, output),
    }
}

fn of_orders(command: &OrderCommand, host: Host<'_>) -> Result<Exit, Failure> {
    match command {
        OrderCommand::Run(args) => order::run(&args.request(), host),
        OrderCommand::Check(args) => order_check::run(args, host),
        OrderCommand::New(args) => order_template::run(args, host.output),
    }
}

/// Cleans up after a killed run, before any command.
fn recover_first(command: Option<&Command>, host: Host<'_>) -> Result<(), Failure> {
    let folder = match command {
        // A server recovers a project when it begins to work there.
        Some(
            Command::Completions(_)
            | Command::Man(_)
            | Command::Parse(_)
            | Command::Acp(_)
            | Command::Mcp(_),
        ) => {
            return Ok(());
        }
        Some(Command::Guard(args)) => &args.root,
        Some(Command::Order(args)) => args.repo(),
        // So that a new command does, too.
        _ => Path::new("."),
    };
    lock::recover_in(folder, host)
}
