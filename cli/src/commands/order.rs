//! `code-commit order`: work orders (S2).

mod access;
mod act;
mod batch;
mod check;
mod files;
mod plan;
pub mod preflight;
mod prepare;
pub mod recorded;
mod replay;
mod resume;
mod runs;
mod setting;
mod settle;
mod show;
mod startable;
mod template;
mod unfinished;

use report::Output;
use settings::Environment;

use crate::args::order::{OrderArgs, OrderCommand};
use crate::exit::{Exit, Failure};

pub use replay::run as replay;
pub use resume::run as resume;
pub use runs::is_done_with as is_over;
pub use show::{list, show};

/// Runs orders, checks one, or writes a first one.
pub fn run(args: &OrderArgs, environment: &Environment, output: &Output) -> Result<Exit, Failure> {
    match &args.command {
        OrderCommand::Run(args) => batch::run(args, environment, output),
        OrderCommand::Check(args) => check::run(args, environment, output),
        OrderCommand::New(args) => template::run(args, output),
    }
}
