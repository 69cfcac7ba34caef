//! `code-commit order`: work orders (S2).

pub mod args;
mod batch;
mod check;
mod perform;
mod preflight;
mod runs;
mod template;
mod unfinished;
mod watch;

use args::{OrderArgs, OrderCommand};

use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Runs orders, checks one, or writes a first one.
pub fn run(args: &OrderArgs, environment: &Environment, output: &Output) -> Result<Exit, Failure> {
    match &args.command {
        OrderCommand::Run(args) => batch::run(args, environment, output),
        OrderCommand::Check(args) => check::run(args, environment, output),
        OrderCommand::New(args) => template::run(args, output),
    }
}
