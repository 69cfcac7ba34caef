//! `code-commit spec`: plan, implement and review until the specs are met (S4).

mod setup;
mod status;

use code_commit_runs::{Exit, Failure, Host, Site, spec};

use crate::args::spec::{Action, SpecArgs};

/// Runs the subcommand in the current folder.
pub fn run(args: &SpecArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let root = host.root()?;
    match &args.action {
        Action::Setup => setup::run(&root, output),
        Action::Plan(args) => spec::plan(&root, &args.options(), host),
        Action::Run(args) => spec::run(&root, &args.request(), host),
        Action::Watch(args) => spec::watch(&root, &args.on(None), host),
        Action::Audit(args) => spec::audit(&root, &args.options(), host),
        Action::Review(args) => {
            spec::review(&root, &args.file, &args.work.on(args.focus.as_ref()), host)
        }
        Action::Status => Ok(status::run(&Site::at(&root, host)?)),
    }
}
