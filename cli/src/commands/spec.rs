//! `code-commit spec`: plan, implement and review until the specs are met (S4).

mod setup;
mod status;

use code_commit_runs::{Exit, Failure, Host, Project, spec};

use crate::args::spec::{Action, SpecArgs};

/// Runs the subcommand in the current folder.
pub fn run(args: &SpecArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let root = host.root()?;
    match &args.action {
        Action::Setup => setup::run(&Project::at(&root, host)?),
        Action::Plan(options) => spec::plan(&root, options, host),
        Action::Run(args) => spec::run(&root, &args.request(), host),
        Action::Watch(args) => spec::watch(&root, &args.request(), host),
        Action::Audit(options) => spec::audit(&root, options, host),
        Action::Review(args) => spec::run(&root, &args.request(), host),
        Action::Status => status::run(&Project::at(&root, host)?),
    }
}
