//! `code-commit demo`: the real loop in a scratch project, with a scripted model on loopback.

use anyhow::Context as _;
use fixtures::demo::{BREAKS_THE_BUILD, FILES, MENDS_IT, TOUCHES_GIT};
use fixtures::project::Project;
use fixtures::server::{Script, Server, Step};
use llm::{ModelId, Secret};
use logging::Redactor;
use loop_commit::Inputs;
use runner::Cancel;

use crate::args::{DemoArgs, OnFailure, RunArgs};
use crate::commands::run::{Prepared, perform};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::keys::Keys;
use crate::output::{BAD, GOOD, Output, STRONG, printable};
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
    let model: ModelId = MODEL.parse().map_err(anyhow::Error::from)?;
    let model = crate::models::open(&model, Some(server.origin()), &keys, environment, None)?;
    let inputs = Inputs {
        query: project.read(QUERY).context("cannot read the demo's query")?.into(),
        codebase: String::from_utf8_lossy(&rollup.text).into(),
        protected: super::commit::protected_for_model(),
    };
    let lock = super::lock(&tree, output)?;
    let cancel = Cancel::new().context("cannot watch for Ctrl-C")?;
    crate::interrupt::watch(&cancel)?;
    let finished = perform(Prepared {
        tree: &tree,
        lock,
        inputs,
        model: &*model,
        args: &RunArgs { sandbox: args.sandbox, on_failure: OnFailure::Keep, ..RunArgs::plain() },
        environment,
        redactor,
        cancel,
        output,
        unconfined_if_need_be: true,
    })?;
    for change in &finished.changes {
        output.report(coloured(&change.diff(), output).trim_end());
    }
    let root = project.keep();
    output.report(&format!("the project is kept in {}; look around, then remove it", root.display()));
    Ok(finished.exit)
}

/// A unified diff in git's colours.
fn coloured(diff: &str, output: &Output) -> String {
    diff.lines()
        .map(|line| {
            let text = printable(line);
            match line.as_bytes().first() {
                Some(b'+') if !line.starts_with("+++") => output.paint(GOOD, &text) + "\n",
                Some(b'-') if !line.starts_with("---") => output.paint(BAD, &text) + "\n",
                Some(b'-' | b'+') => output.paint(STRONG, &text) + "\n",
                _ => text + "\n",
            }
        })
        .collect()
}
