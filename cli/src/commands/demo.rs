//! `code-commit demo`: the real loop in a scratch project, with a scripted model on loopback.

use std::io;

use anyhow::Context as _;
use code_commit_fixtures::demo::{BREAKS_THE_BUILD, FILES, MENDS_IT, QUERY, TOUCHES_GIT};
use code_commit_fixtures::project;
use code_commit_fixtures::server::{Script, Server, Step};
use code_commit_runs::commit::{self, Query, Which};
use code_commit_runs::{Exit, Failure, Host, Project, changes, sandbox};
use code_commit_settings::{Environment, Options, Sandbox};

use crate::args::DemoArgs;

/// A fake key, to show that the record hides it.
const KEY: &str = "demo-key-that-opens-nothing-42";
const MODEL: &str = "gemini/demo";

/// Creates the project, starts the server, runs the loop, shows the result.
pub fn run(args: &DemoArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let project =
        project::Project::with_git(host.trusted().program("git")?, &FILES).map_err(no_project)?;
    let server = Server::start(Script::new(
        [TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT].map(Step::text),
    ))
    .context("cannot start a server on 127.0.0.1")?;
    output.report(&format!(
        "A shell project whose test fails, and a scripted model at {} that makes two mistakes. Its query:\n  {}",
        server.origin(),
        QUERY.trim(),
    ));
    let environment = environment(host.environment);
    let host = Host {
        folder: Ok(project.root()),
        environment: &environment,
        ..host
    };
    let request = commit::Request {
        layer: flags(args, &server, host)?,
        query: Query::given(QUERY)?,
        ..commit::Request::default()
    };
    let exit = commit::run(Which::Commit, &request, host)?;
    let here = Project::here(host)?;
    let run = here.registry().find(None)?.path(&here.root);
    for change in changes::of_run(&here.root, &run)? {
        output.report(changes::coloured(&change.diff(), output).trim_end());
    }
    let root = project.keep();
    output.object(&serde_json::json!({ "event": "kept", "folder": root.to_string_lossy() }));
    output.report(&format!(
        "the project is kept in {}; inspect it, then remove it",
        root.display()
    ));
    Ok(exit)
}

/// The error if the folder, or git's part of the project, could not be created.
fn no_project(error: io::Error) -> Failure {
    let error = anyhow::Error::from(error).context("cannot make the demo's project");
    Failure::refused(
        error,
        "check that TMPDIR or /tmp is writable and that the disk has space",
    )
}

/// The user's, with the demo's key, and without configuration: the demo is the same on every machine.
fn environment(of_user: &Environment) -> Environment {
    let own = [("GEMINI_API_KEY", KEY), ("XDG_CONFIG_HOME", "/nonexistent")];
    let own = own.map(|(name, value)| (name.into(), value.into()));
    Environment::of(of_user.all().clone().into_iter().chain(own))
}

/// The demo's build is ours: where no sandbox works, it runs without one.
fn flags(args: &DemoArgs, server: &Server, host: Host<'_>) -> Result<Options, Failure> {
    let mut flags = Options::default();
    flags.model.name = Some(MODEL.parse().map_err(anyhow::Error::msg)?);
    flags.model.base_url = Some(server.origin().parse().map_err(anyhow::Error::msg)?);
    flags.sandbox.mode = Some(args.sandbox);
    if args.sandbox == Sandbox::Auto
        && let Err(reason) = code_commit_runner::probe(sandbox::mode(args.sandbox), None)
    {
        host.output.warn(&format!(
            "no sandbox works here, so this build runs without one: {reason}"
        ));
        flags.sandbox.mode = Some(Sandbox::Off);
    }
    // A call to this machine costs nothing.
    let free = serde_json::json!([{ "prefix": "demo", "input": 0, "output": 0 }]);
    flags.price = serde_json::from_value(free).context("cannot read the demo's price")?;
    Ok(flags)
}
