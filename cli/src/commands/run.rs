//! From everything prepared to an exit code: the run folder, the wall, the loop, the summary.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{Duration, Instant};

use apply::{ApplyError, Lock};
use engine::{
    Asking, BuildCommand, Fact, Fault, Outcome, Record, Rules, Workshop, drive, facts_of, undo_folders,
};
use guard::{Guard, Policy};
use llm::Model;
use logging::{Layout, Redactor, RunFolder, Stamp};
use loop_commit::{CommitLoop, Inputs, Limits, OnFailure};
use repo::WorkTree;
use runner::{Cancel, Confinement, Env, Mode, Walls};
use serde_json::json;

use crate::args::{self, RunArgs, Sandbox};
use crate::changes::{self, FileChange};
use crate::commands::runs::logs;
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::preflight::{AGENT_CONFIG, BUILD};
use crate::summary::Summary;
use crate::terminal::Terminal;

/// A build that prints more is stopped.
const BUILD_OUTPUT: u64 = 64 << 20;
const BUILD_TIMEOUT: Duration = Duration::from_mins(10);

/// A run that can begin.
pub struct Prepared<'r> {
    pub tree: &'r WorkTree,
    pub lock: Lock,
    pub inputs: Inputs,
    pub model: &'r dyn Model,
    pub args: &'r RunArgs,
    pub environment: &'r Environment,
    pub redactor: Redactor,
    pub cancel: Cancel,
    pub output: &'r Output,
    /// The demo's build is our own: it may run without a wall where none can be had.
    pub unconfined_if_need_be: bool,
}

/// A run that is over.
pub struct Finished {
    pub exit: Exit,
    pub changes: Vec<FileChange>,
}

/// Runs the default loop to its end and says what came of it.
pub fn perform(prepared: Prepared<'_>) -> Result<Finished, Failure> {
    let began = now();
    let Prepared { tree, output, args, model, .. } = prepared;
    let root = tree.root();
    let confinement = confine(&prepared)?;
    let guard = Guard::open(root, Policy::commit())
        .map_err(|error| Failure::refused(error, "see that the folder can be read"))?;
    let folder = RunFolder::create(
        &logs(root),
        &format!("{}-commit", Stamp::now().folder_name()),
        prepared.redactor.clone(),
    )
    .map_err(|error| Failure::refused(error, "see that the folder can be written"))?;
    let limits = Limits { on_failure: on_failure(args.on_failure), ..Limits::default() };
    write_run_json(&folder, &prepared, &confinement)?;

    let mut workshop = Workshop {
        rules: Rules { root: root.to_owned(), guard, lock: prepared.lock },
        model,
        asking: Asking { stream: !args.no_stream, temperature: args.temperature, timeout: args.timeout },
        build: BuildCommand {
            argv: vec![OsString::from(format!("./{BUILD}"))],
            env: build_env(prepared.environment),
            timeout: Some(args.build_timeout.unwrap_or(BUILD_TIMEOUT)),
            limits: runner::Limits { output_bytes: BUILD_OUTPUT, ..runner::Limits::default() },
            confinement,
            sealed: vec![BUILD.into()],
        },
        layout: Layout::NumberFirst,
        said_log: None,
        cancel: prepared.cancel,
    };
    let mut decide = CommitLoop::new(prepared.inputs, limits);
    let mut observer = observer(output, model.id().to_string(), limits.rounds);
    let mut record = Record::begin(folder.clone(), &mut *observer).map_err(|e| fault(e.into(), &folder))?;
    let outcome = drive(&mut decide, &mut workshop, &mut record).map_err(|error| fault(error, &folder))?;
    drop(record);
    drop(observer);
    finish(root, &folder, outcome, began.elapsed(), output)
}

/// Summary on the terminal and in the folder; the exit code.
fn finish(
    root: &Path,
    folder: &RunFolder,
    outcome: Outcome,
    elapsed: Duration,
    output: &Output,
) -> Result<Finished, Failure> {
    let changes = changes::of_run(root, &undo_folders(folder.path()))?;
    let facts: Vec<Fact> = facts_of(folder).map_err(anyhow::Error::from)?;
    let log = folder.path().strip_prefix(root).unwrap_or(folder.path()).display().to_string();
    let files = changes.iter().map(FileChange::stat).collect();
    let summary = Summary::of(&facts, outcome, files, elapsed, log);
    folder.store_json("summary.json", &summary).map_err(anyhow::Error::from)?;
    summary.print(output);
    output.object(&json!({ "event": "summary", "summary": summary }));
    Ok(Finished { exit: exit(&summary.outcome), changes })
}

fn exit(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Done { .. } => Exit::Done,
        Outcome::AttemptsUsedUp { .. } | Outcome::Stuck { .. } => Exit::Failed,
        Outcome::ModelUnavailable { .. } => Exit::ModelUnavailable,
    }
}

/// What stopped the run from the outside.
fn fault(error: Fault, folder: &RunFolder) -> Failure {
    let where_ = format!("what happened until then is in {}", folder.path().display());
    if matches!(error, Fault::KeyInPrompt { .. }) {
        return Failure::refused(error, "take the key out of the query and of the code roll-up");
    }
    let exit = if matches!(error, Fault::Interrupted) {
        Exit::Interrupted
    } else if matches!(error, Fault::Restore(_) | Fault::Apply(ApplyError::NotRolledBack { .. })) {
        Exit::TreeNotRestored
    } else {
        Exit::Fault
    };
    Failure::new(exit, error).help(where_)
}

/// What was asked, for whoever opens the folder later.
fn write_run_json(
    folder: &RunFolder,
    prepared: &Prepared<'_>,
    confinement: &Confinement,
) -> Result<(), Failure> {
    let run = json!({
        "loop": "commit",
        "version": env!("CARGO_PKG_VERSION"),
        "model": prepared.model.id().to_string(),
        "base_url": prepared.args.base_url,
        "temperature": prepared.args.temperature,
        "stream": !prepared.args.no_stream,
        "rounds": Limits::default().rounds,
        "head": prepared.tree.head(),
        "sandbox": confinement.rung,
        "query_sha256": logging::sha256_hex(prepared.inputs.query.as_bytes()),
        "codebase_sha256": logging::sha256_hex(prepared.inputs.codebase.as_bytes()),
    });
    folder.store_json("run.json", &run).map(drop).map_err(|e| anyhow::Error::from(e).into())
}

fn confine(prepared: &Prepared<'_>) -> Result<Confinement, Failure> {
    let Prepared { tree, args, environment, output, .. } = prepared;
    let mode = match args.sandbox {
        Sandbox::Auto => Mode::Auto,
        Sandbox::Bwrap => Mode::Bwrap,
        Sandbox::Landlock => Mode::Landlock,
        Sandbox::Docker => Mode::Docker,
        Sandbox::Off => Mode::Off,
    };
    let root = tree.root();
    let read_only = [".git", BUILD, ".gitignore", ".code-commit", "logs", "code-commit.toml"];
    let walls = Walls {
        read_only: read_only.into_iter().map(|name| root.join(name)).filter(|path| path.exists()).collect(),
        masked: vec![root.join(AGENT_CONFIG)],
        network: args.network,
        ..Walls::new(root, &build_env(environment))
    };
    let probed = match runner::probe(
        mode,
        environment.all().get(OsStr::new("DOCKER_HOST")).map(OsString::as_os_str),
    ) {
        Err(reason) if prepared.unconfined_if_need_be => {
            output.warn(&format!("no wall can be had here, the demo's own build runs without one: {reason}"));
            return Ok(Confinement::off());
        }
        Err(reason) => {
            return Err(Failure::refused(reason, "--sandbox off runs the build with all of your rights"));
        }
        Ok(probed) => probed,
    };
    output.note(&format!("sandbox: {}", probed.why));
    Ok(probed.confine(walls))
}

/// The build finds what builds need in its environment, and no key.
fn build_env(environment: &Environment) -> Env {
    Env::allowed(environment.all().clone(), &[])
}

fn on_failure(choice: args::OnFailure) -> OnFailure {
    match choice {
        args::OnFailure::Keep => OnFailure::Keep,
        args::OnFailure::Restore => OnFailure::Restore,
    }
}

fn observer(output: &Output, model: String, rounds: u32) -> Box<dyn engine::Observer> {
    if output.json {
        return Box::new(crate::ndjson::Ndjson::new(output.clone()));
    }
    Box::new(Terminal::new(output.clone(), model, rounds))
}

#[expect(clippy::disallowed_methods, reason = "the summary says how long the run took")]
fn now() -> Instant {
    Instant::now()
}
