//! `code-commit spec`: plan, implement and review until the specs are met (S4).

mod act;
mod audit;
mod config;
mod events;
mod failures;
pub mod history;
mod lines;
mod mending;
mod plan;
mod project;
mod setup;
mod start;
mod status;
mod uuid;
mod watch;
mod workspace;

pub use self::project::RUNS;
use report::Output;
use settings::Environment;

use crate::args::spec::{Action, SpecArgs};
use crate::exit::{Exit, Failure};
use crate::place;

/// Does what was asked for in the current folder.
pub fn run(args: &SpecArgs, environment: &Environment, output: &Output) -> Result<Exit, Failure> {
    let root = place::root()?;
    match &args.action {
        Action::Setup => setup::run(&root, output),
        Action::Plan(args) => plan::run(&root, args, environment, output),
        Action::Run(args) => start::run(&root, args, environment, output),
        Action::Watch(args) => watch::run(&root, args, environment, output),
        Action::Audit(args) => audit::run(&root, args, environment, output),
        Action::Review(args) => start::review(&root, args, environment, output),
        Action::Status => Ok(status::run(&root, output)),
    }
}
