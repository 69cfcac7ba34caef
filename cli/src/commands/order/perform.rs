//! One order from its file to its verdict.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use apply::Lock;
use engine::{
    Asking, Baseline, CommandSettings, Fault, Observer, OrderFact, OrderShop, Outcome, Purse, Rules, drive,
    undo_folders,
};
use guard::Guard;
use llm::{Model, Money};
use logging::{Redactor, RunFolder};
use loop_order::{Inputs, OrderLoop, RunSummary, SUMMARY, Verdict, config_hash, proposal_schema, run_id};
use repo::{Git, WorkTree};
use runner::{Cancel, Confinement, Limits, Walls};
use serde_json::json;

use crate::changes::{self, FileChange};
use crate::commands::order::args::RunOrderArgs;
use crate::commands::order::preflight::{self, Read};
use crate::commands::order::runs::{self, Start};
use crate::commands::order::unfinished::Unfinished;
use crate::commands::order::watch::OrderTerminal;
use crate::commands::run::purse;
use crate::commands::wall;
use crate::config::{PROJECT_FILE, Settings};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::ndjson::Ndjson;
use crate::output::Output;
use crate::preflight::AGENT_CONFIG;

/// What commands may read but not change.
const READ_ONLY: [&str; 4] = [".git", "scripts/verify.sh", ".code-commit", PROJECT_FILE];

/// What is the same for all orders of one call.
pub struct Setting<'s> {
    pub args: &'s RunOrderArgs,
    pub environment: &'s Environment,
    pub output: &'s Output,
    pub cancel: &'s Cancel,
    pub settings: &'s Settings,
    pub model: &'s dyn Model,
    pub redactor: &'s Redactor,
}

/// A run that is over.
pub struct Done {
    pub exit: Exit,
    pub summary: RunSummary,
    /// Where `run_summary.json` is.
    pub path: PathBuf,
    /// What the run has changed.
    pub changes: Vec<FileChange>,
}

/// Carries one order out.
pub fn order(file: &Path, setting: &Setting<'_>) -> Result<Done, Failure> {
    let Setting { args, environment, output, .. } = setting;
    let read = preflight::read(file)?;
    let tree = preflight::repository(&args.repo)?;
    let out = preflight::out(&args.out, tree.root())?;
    let git = preflight::git(&tree, environment);
    let state = tree.state_dir().map_err(|error| Failure::refused(error, "see who owns it"))?;
    let lock = super::super::lock(&tree, output)?;
    let config_hash =
        config_hash(&args.llm_model, args.llm_temperature, args.max_attempts, args.timeout_seconds);
    let known = runs::clear_up(&state, &tree, &git, &lock, output)?;
    let known = known.filter(|run| run.is_of(&read.order.hash, &config_hash, &out));
    preflight::clean(&tree, &git)?;
    if args.commit {
        preflight::identity(&git)?;
    }
    let guard = preflight::guard(tree.root(), &read, setting.settings)?;
    let baseline = baseline(&tree, &git)?;
    let unfinished = match known {
        Some(known) => known,
        None => {
            let tree_hash = repo::stable_hash(tree.root())
                .map_err(|error| Failure::refused(error, "every file of the repository must be readable"))?;
            let id = run_id(&read.order.hash, &tree_hash, &config_hash);
            Unfinished::new(out.join(id), &read.order.hash, &config_hash, tree_hash, &baseline)
        }
    };
    let inputs = inputs(&read, &tree, &unfinished, args.max_attempts)?;
    let decide = OrderLoop::new(inputs);
    if setting.redactor.finds_key(&decide.first_prompt()) {
        let error = anyhow!("the order or one of its context files holds an API key; nothing was sent");
        return Err(Failure::refused(error, "take the key out of it"));
    }
    let confinement = confine(&tree, &git, setting)?;
    let start = runs::folder(&unfinished.run, setting.redactor)?;
    let ready = Ready { read, tree, lock, git, state, guard, baseline, unfinished, confinement };
    ready.carry_out(decide, start, setting)
}

/// Everything that a run needs.
struct Ready {
    read: Read,
    tree: WorkTree,
    lock: Lock,
    git: Git,
    state: PathBuf,
    guard: Guard,
    baseline: Baseline,
    unfinished: Unfinished,
    confinement: Confinement,
}

impl Ready {
    fn carry_out(self, mut decide: OrderLoop, start: Start, setting: &Setting<'_>) -> Result<Done, Failure> {
        let Self { read, tree, lock, git, state, guard, baseline, mut unfinished, confinement } = self;
        let folder = start.folder().clone();
        write_run_json(&folder, &unfinished, &confinement, setting)?;
        folder
            .store("work_order.json", &String::from_utf8_lossy(&read.bytes), logging::Durability::Written)
            .map_err(anyhow::Error::from)?;
        crate::commands::registry::add(&tree, folder.path(), None)?;
        unfinished.restored = false;
        unfinished.write(&state)?;
        let mut shop = OrderShop {
            rules: Rules { root: tree.root().to_owned(), guard, lock },
            model: setting.model,
            asking: Asking {
                stream: setting.settings.stream.value,
                temperature: setting.settings.temperature.value,
                timeout: Some(setting.settings.timeout.value),
                purse: purse_of(read.order.max_cost, setting.settings),
                ..Asking::default()
            },
            schema: proposal_schema(),
            commands: CommandSettings {
                env: wall::build_env(setting.settings, setting.environment),
                timeout: Duration::from_secs(setting.args.timeout_seconds),
                limits: Limits { output_bytes: setting.settings.build_output.value, ..Limits::default() },
                confinement,
            },
            baseline,
            cancel: setting.cancel.clone(),
        };
        let mut observer = observer(setting);
        let mut record = start.record(&mut decide, &shop, &mut *observer)?;
        let driven = drive(&mut decide, &mut shop, &mut record);
        drop(record);
        drop(observer);
        match driven {
            Ok(outcome) => {
                Unfinished::forget(&state)?;
                finish(&decide, &outcome, &folder, &tree, &git, setting)
            }
            Err(fault) => {
                let OrderShop { rules, baseline, .. } = shop;
                baseline
                    .restore(&rules.lock, &rules.root, folder.path())
                    .map_err(|error| not_restored(error, folder.path()))?;
                unfinished.restored = true;
                unfinished.write(&state)?;
                Err(stopped(fault, folder.path()))
            }
        }
    }
}

/// What the order may cost: its own limit or that of the settings, whichever is less.
fn purse_of(max_cost: Option<f64>, settings: &Settings) -> Purse {
    let mut settings = settings.clone();
    let own = max_cost.and_then(|cost| Money::from_usd(cost).ok());
    settings.max_cost.value = [settings.max_cost.value, own].into_iter().flatten().min();
    purse(&settings)
}

fn finish(
    decide: &OrderLoop,
    outcome: &Outcome,
    folder: &RunFolder,
    tree: &WorkTree,
    git: &Git,
    setting: &Setting<'_>,
) -> Result<Done, Failure> {
    let summary = decide.summary();
    let changes = changes::of_run(tree.root(), &undo_folders(folder.path()))?;
    if summary.verdict == Verdict::Pass && setting.args.commit {
        let paths: Vec<String> = changes.iter().map(|change| change.path.clone()).collect();
        if !paths.is_empty() {
            git.commit_paths(&paths, &decide.commit_message(), None).context(
                "the order has passed and its changes are in place, but they could not be committed",
            )?;
        }
    }
    let exit = exit(&summary, outcome);
    Ok(Done { exit, path: folder.path().join(SUMMARY), summary, changes })
}

fn exit(summary: &RunSummary, outcome: &Outcome) -> Exit {
    match (summary.verdict, outcome) {
        (Verdict::Pass, _) => Exit::Done,
        (Verdict::Fail, Outcome::ModelUnavailable { .. }) => Exit::ModelUnavailable,
        (Verdict::Fail, _) => match summary.ended_stage.as_str() {
            "preflight" => Exit::Refused,
            "exception" => Exit::Fault,
            _ => Exit::Failed,
        },
    }
}

fn baseline(tree: &WorkTree, git: &Git) -> Result<Baseline, Failure> {
    let refused = |error| Failure::refused(error, "see what git status says");
    let commit = git.commit_of("HEAD").map_err(refused)?.ok_or_else(|| {
        Failure::refused(anyhow!("the repository has no commit yet"), "commit what is there first")
    })?;
    let empty_folders = repo::empty_folders(tree.root())
        .map_err(|error| Failure::refused(error, "every folder of the repository must be readable"))?;
    Ok(Baseline { git: git.clone(), commit, head: git.head().map_err(refused)?, empty_folders })
}

fn inputs(read: &Read, tree: &WorkTree, run: &Unfinished, max_attempts: u32) -> Result<Inputs, Failure> {
    let files = preflight::files(tree.root(), &read.order)
        .map_err(|problems| preflight::refused(&read.path, &problems))?;
    Ok(Inputs {
        order: read.order.clone(),
        work_order_path: read.path.display().to_string(),
        repo_path: tree.root().display().to_string(),
        baseline_commit: run.commit.clone(),
        tree_hash_before: run.tree_hash_before.clone(),
        run_id: run.id(),
        max_attempts,
        allowed: files.allowed,
        context: files.context,
    })
}

/// The commands see the tree, and of git's own data and of the verification script no more than they can read.
fn confine(tree: &WorkTree, git: &Git, setting: &Setting<'_>) -> Result<Confinement, Failure> {
    let Setting { settings, environment, output, .. } = setting;
    let root = tree.root();
    let common = git.common_dir().map_err(|error| Failure::refused(error, "see what git status says"))?;
    let elsewhere = [tree.git_dir().to_owned(), common].into_iter().filter(|path| !path.starts_with(root));
    let readable = settings.readable.iter().map(|place| place.value.clone());
    let walls = Walls {
        read_only: READ_ONLY.into_iter().map(|name| root.join(name)).filter(|path| path.exists()).collect(),
        masked: vec![root.join(AGENT_CONFIG)],
        writable: settings.writable.iter().map(|place| place.value.clone()).collect(),
        readable: readable.chain(elsewhere).collect(),
        network: settings.network.value,
        ..Walls::new(root, &wall::build_env(settings, environment))
    };
    let docker = environment.all().get(OsStr::new("DOCKER_HOST")).map(OsString::as_os_str);
    let probed = runner::probe(wall::mode(settings.sandbox.value), docker).map_err(|reason| {
        Failure::refused(reason, "--sandbox off runs the commands with all of your rights")
    })?;
    output.note(&format!("sandbox: {}", probed.why));
    Ok(probed.confine(walls))
}

/// What was asked, for whoever opens the folder later.
fn write_run_json(
    folder: &RunFolder,
    run: &Unfinished,
    confinement: &Confinement,
    setting: &Setting<'_>,
) -> Result<(), Failure> {
    let args = setting.args;
    let asked = json!({
        "loop": "order",
        "version": env!("CARGO_PKG_VERSION"),
        "model": setting.model.id().to_string(),
        "base_url": setting.settings.base_url.value,
        "temperature": args.llm_temperature,
        "max_attempts": args.max_attempts,
        "timeout_seconds": args.timeout_seconds,
        "sandbox": confinement.rung,
        "network": setting.settings.network.value,
        "work_order_hash": run.work_order_hash,
        "config_hash": run.config_hash,
        "repo_tree_hash_before": run.tree_hash_before,
        "repo_baseline_commit": run.commit,
        "branch": run.branch,
    });
    folder.store_json("run.json", &asked).map(drop).map_err(|error| anyhow::Error::from(error).into())
}

fn observer(setting: &Setting<'_>) -> Box<dyn Observer<OrderFact>> {
    let output = setting.output.clone();
    if output.json {
        return Box::new(Ndjson::new(output));
    }
    Box::new(OrderTerminal::new(output, setting.model.id().to_string(), setting.args.max_attempts))
}

/// The tree is as it was, and the run can go on.
fn stopped(fault: Fault, run: &Path) -> Failure {
    let other = if matches!(fault, Fault::KeyInPrompt { .. }) { Exit::Refused } else { Exit::Fault };
    let exit = if matches!(fault, Fault::Interrupted) { Exit::Interrupted } else { other };
    let help = format!("the tree is as it was; the same command goes on with {}", run.display());
    Failure::new(exit, fault).help(help)
}

pub fn not_restored(fault: Fault, run: &Path) -> Failure {
    let help = format!("look at git status; what the run has done is in {}", run.display());
    Failure::new(Exit::TreeNotRestored, fault).help(help)
}
