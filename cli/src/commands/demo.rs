//! `code-commit demo`: the real loop in a scratch project, with a scripted model on loopback.

use anyhow::Context as _;
use fixtures::demo::{BREAKS_THE_BUILD, FILES, MENDS_IT, TOUCHES_GIT};
use fixtures::project::Project;
use fixtures::server::{Script, Server, Step};
use llm::Secret;
use logging::Redactor;
use runner::Cancel;

use crate::args::{DemoArgs, SettingArgs};
use crate::changes;
use crate::commands::run::{self, Prepared, begin};
use crate::commands::wall::Otherwise;
use crate::config::Settings;
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::keys::Keys;
use crate::output::Output;
use crate::plan::Task;
use crate::preflight::{CODE_ROLLUP, QUERY};

/// Nobody's: it exists so that the record can be seen to hide it.
const KEY: &str = "demo-key-that-opens-nothing-42";
const MODEL: &str = "gemini/demo";

/// Makes the project, starts the server, runs the loop, shows what came of it.
pub fn run(args: &DemoArgs, environment: &Environment, output: &Output) -> Result<Exit, Failure> {
    let project = Project::with(&FILES).context("cannot make the demo's project (is git installed?)")?;
    let tree = super::work_tree(project.root())?;
    let rollup = super::rollup::roll_up(&tree)?;
    project.write(CODE_ROLLUP, &rollup.text).context("cannot write the demo's roll-up")?;
    let server = Server::start(Script::new([TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT].map(Step::text)))
        .context("cannot start a server on 127.0.0.1")?;
    let redactor = Redactor::new([KEY]);
    output.strike_out(redactor.clone());
    output.report(&format!(
        "A shell project whose test fails, and a scripted model at {} that errs twice. Its query:\n  {}",
        server.origin(),
        fixtures::demo::QUERY.trim(),
    ));

    let keys = Keys::just(Secret::new(KEY));
    // Nobody's configuration counts here: the demo is the same on every machine.
    let flags = SettingArgs {
        model: Some(MODEL.parse().map_err(anyhow::Error::msg)?),
        base_url: Some(server.origin().parse().map_err(anyhow::Error::msg)?),
        sandbox: Some(args.sandbox),
        ..SettingArgs::default()
    };
    let settings = Settings::of_flags(flags.layer());
    let client = crate::models::open(&settings, &keys, environment, &tree)?;
    let task = Task::commit(
        project.read(QUERY).context("cannot read the demo's query")?,
        String::from_utf8_lossy(&rollup.text).into_owned(),
        super::commit::protected_for_model(&settings),
    );
    let plan = super::commit::plan(settings, &tree, task)?;
    let lock = super::lock(&tree, output)?;
    let cancel = Cancel::new().context("cannot watch for Ctrl-C")?;
    crate::interrupt::watch(&cancel)?;
    let guard = run::guard(tree.root(), &plan)?;
    let without_wall = Otherwise::GoWithout;
    let model = &*client;
    let finished = begin(Prepared {
        tree: &tree,
        lock,
        guard,
        plan,
        model,
        environment,
        redactor,
        cancel,
        output,
        without_wall,
    })?;
    for change in &finished.changes {
        output.report(changes::coloured(&change.diff(), output).trim_end());
    }
    let root = project.keep();
    output.report(&format!("the project is kept in {}; look around, then remove it", root.display()));
    Ok(finished.exit)
}
