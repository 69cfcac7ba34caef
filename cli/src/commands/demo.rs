//! `code-commit demo`: the real loop in a scratch project, with a scripted model on loopback.

use std::io;

use anyhow::Context as _;
use code_commit_fixtures::demo::{BREAKS_THE_BUILD, FILES, MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::project::Project;
use code_commit_fixtures::server::{Script, Server, Step};
use code_commit_llm::Secret;
use code_commit_logging::Redactor;
use code_commit_repo::WorkTree;
use code_commit_runs::commit::{self, Plan, Task, begin};
use code_commit_runs::preflight::QUERY;
use code_commit_runs::sandbox::Otherwise;
use code_commit_runs::{Exit, Failure, Host, Site, changes, place, rollup};
use code_commit_settings::{Keys, Layer, Settings};

use crate::args::DemoArgs;

/// A fake key, to show that the record hides it.
const KEY: &str = "demo-key-that-opens-nothing-42";
const MODEL: &str = "gemini/demo";

/// Creates the project, starts the server, runs the loop, shows the result.
pub fn run(args: &DemoArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let Host {
        environment,
        output,
        ..
    } = host;
    let project = Project::with_git(host.trusted().program("git")?, &FILES).map_err(no_project)?;
    let tree = place::work_tree(project.root())?;
    let no_keys = Redactor::default();
    let sources = rollup::Sources {
        tree: &tree,
        environment,
        redactor: &no_keys,
        query: "",
    };
    let rollup = rollup::make(sources, &rollup::Options::default())?;
    rollup
        .keep(project.root(), &rollup::Options::default())
        .context("cannot write the demo's roll-up")?;
    let server = Server::start(Script::new(
        [TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT].map(Step::text),
    ))
    .context("cannot start a server on 127.0.0.1")?;
    let redactor = output.strike_out([KEY]);
    output.report(&format!(
        "A shell project whose test fails, and a scripted model at {} that makes two mistakes. Its query:\n  {}",
        server.origin(),
        code_commit_fixtures::demo::QUERY.trim(),
    ));

    let settings = settings(args, &server)?;
    let client = host
        .models
        .open(&settings, &Keys::just(Secret::new(KEY)), host)?;
    let plan = plan(settings, &project, &tree, rollup.text)?;
    let site = Site::of(&tree, host);
    let finished = begin(&site, plan, client.into(), redactor, Otherwise::GoWithout)?;
    for change in &finished.changes {
        output.report(changes::coloured(&change.diff(), output).trim_end());
    }
    let root = project.keep();
    output.object(&serde_json::json!({ "event": "kept", "folder": root.to_string_lossy() }));
    output.report(&format!(
        "the project is kept in {}; look around, then remove it",
        root.display()
    ));
    Ok(finished.exit)
}

/// The error if the folder, or git's part of the project, could not be created.
fn no_project(error: io::Error) -> Failure {
    let error = anyhow::Error::from(error).context("cannot make the demo's project");
    Failure::refused(
        error,
        "check that TMPDIR or /tmp is writable and that the disk has space",
    )
}

/// Ignores the user's configuration: the demo is the same on every machine.
fn settings(args: &DemoArgs, server: &Server) -> Result<Settings, Failure> {
    let mut flags = Layer::default();
    flags.model.name = Some(MODEL.parse().map_err(anyhow::Error::msg)?);
    flags.model.base_url = Some(server.origin().parse().map_err(anyhow::Error::msg)?);
    flags.sandbox.mode = Some(args.sandbox);
    // A call to this machine costs nothing.
    let free = serde_json::json!([{ "prefix": "demo", "input": 0, "output": 0 }]);
    flags.price = serde_json::from_value(free).context("cannot read the demo's price")?;
    Ok(Settings::of_flags(flags))
}

fn plan(
    settings: Settings,
    project: &Project,
    tree: &WorkTree,
    code: String,
) -> Result<Plan, Failure> {
    let query = project
        .read(QUERY)
        .context("cannot read the demo's query")?;
    let protected = commit::protected_for_model(&settings, tree);
    let task = Task::commit(query, code, protected, &settings);
    commit::plan(settings, tree, task)
}
