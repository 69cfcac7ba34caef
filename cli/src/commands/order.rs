//! `code-commit order`: work orders (S2).

mod check;
mod template;

use code_commit_runs::{Exit, Failure, Host};

use crate::args::order::{OrderArgs, OrderCommand};

/// Runs orders, checks one, or writes a template.
pub fn run(args: &OrderArgs, host: Host<'_>) -> Result<Exit, Failure> {
    match &args.command {
        OrderCommand::Run(args) => code_commit_runs::order::run(&args.request(), host),
        OrderCommand::Check(args) => check::run(args, host),
        OrderCommand::New(args) => template::run(args, host.output),
    }
}
