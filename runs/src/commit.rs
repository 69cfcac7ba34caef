//! The two commit loops: `code-commit` (S1) and `code-commit implement` (S0).

pub(crate) mod changed;
mod edit;
mod fault;
mod files;
mod imported;
mod inputs;
pub(crate) mod paid;
pub(crate) mod plan;
mod query;
pub mod rollup;
pub(crate) mod run;
mod tree_checks;

pub(crate) use self::fault::fault;
pub use self::fault::leaves_tree_changed;
pub use self::inputs::SYSTEM_PROMPT;
pub use self::plan::{Plan, Task, form, policy};
pub use self::query::Query;
pub(crate) use self::run::Commit;
pub use self::run::{Opened, begin, guard};

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ::code_commit_guard::Guard;
use anyhow::anyhow;
use code_commit_loop_commit::{COMMIT_ROUNDS, IMPLEMENT_ROUNDS};
pub use code_commit_loop_commit::{OnFailure, OnUnfit};
use code_commit_names::ours::AGENT_CONFIG;
use code_commit_names::{Binds, Writer};
use code_commit_repo::WorkTree;
use code_commit_settings::{Keys, Layer, Origin, Settings};

use self::inputs::Sources;
use self::run::From;
use crate::deciders;
use crate::estimate::First;
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::life::Asked;
use crate::preflight::{self, Missing, QUERY};
use crate::registry::Known;
use crate::site::Site;
use crate::{resume, sandbox};

/// The default model of the first loop (S0 §Implementation Details).
const IMPLEMENT_MODEL: &str = "gemini-2.5-pro";

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// S1.
    Commit,
    /// S0.
    Implement,
}

/// What a run is asked for, besides its settings.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Request {
    /// Settings that override those of all files.
    pub layer: Layer,
    /// Where the query comes from.
    pub query: Query,
    /// Refuse to start if there are uncommitted changes.
    pub require_clean: bool,
    /// What to do with the changes if the run fails.
    pub on_failure: OnFailure,
    /// End a streamed reply as soon as it names a path that is certain to be refused.
    pub early_stop: bool,
    /// Give up after this many rounds in a row with the same failure.
    pub same_failures: Option<u32>,
    /// What to do if the machine lacks what the build needs.
    pub on_unfit: OnUnfit,
    /// The supervisor's name for this work: a finished run is answered from the record.
    pub key: Option<String>,
    /// Begin a new run, whatever is recorded.
    pub new: bool,
    /// Tell what the first prompt takes, and send nothing.
    pub dry_run: bool,
}

/// Runs the preflight checks, then the loop.
pub fn run(which: Which, args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let Host { environment, output, .. } = host;
    let site = Site::here(host)?;
    let tree = site.tree()?;
    let keys = Keys::find(environment, tree.root());
    let redactor = output.strike_out(keys.exposed());
    let settings = settings(which, args, tree.root(), host)?;
    if which == Which::Implement && settings.cache_order.origin == Origin::Flag {
        let error = anyhow!("--cache-order: the prompts of implement only grow, so they need no other order");
        return Err(Failure::new(Exit::Usage, error).help("drop the flag"));
    }
    preflight::own_or_absent(tree.root()).map_err(|missing| refused(vec![missing]))?;
    if matches!(args.query, Query::Edited) {
        edit_query(which, tree, &settings, host, &keys)?;
    }
    let (keys, query, redactor, settings) = (&keys, &args.query, &redactor, settings);
    // What a killed run has left half written is restored before it is rolled up, and no other run is writing.
    let lock = site.lock()?;
    let ready = Sources { which, tree, query, settings: &settings, keys, redactor, environment }.check()?;
    let plan = Plan {
        query_from: Some(ready.query_from.clone()),
        chosen: ready.chosen(),
        same_failures: args.same_failures,
        restore_on_failure: args.on_failure == OnFailure::Restore,
        early_stop: args.early_stop,
        no_check: args.on_unfit == OnUnfit::GoOn,
        key: args.key.clone(),
        ..plan(settings, tree, ready.task.clone())?
    };
    if args.dry_run {
        let model = host.models.open(&plan.settings, keys, tree, host)?;
        return first(&plan).tell(&*model, &plan.settings, output);
    }
    let asked = Asked { key: args.key.as_deref(), new: args.new };
    let commit = Commit::new(&site, keys, From::Command(args, &ready))?;
    commit.live(lock)?.start(plan, asked).map(|done| done.exit)
}

/// Continues a run under its name; one that was made elsewhere begins anew.
pub(crate) fn resume(known: &Known, args: &resume::Request, site: &Site<'_>) -> Result<Exit, Failure> {
    if known.is_imported() {
        return imported::begin(known, args, site);
    }
    let keys = Keys::find(site.host.environment, &site.root);
    let from = From::Record { force: args.force, limits: &args.limits };
    let commit = Commit::new(site, &keys, from)?;
    commit.live(site.lock()?)?.go_on(known).map(|done| done.exit)
}

fn first(plan: &Plan) -> First<'_> {
    let files = code_commit_prompt::rollup::files(plan.task.codebase());
    First {
        prompt: plan.first_prompt(),
        schema: None,
        files: files.map(|(path, content)| (path, content.len())).collect(),
        remedy: "show the model less, with --budget TOKENS or --exclude PATTERN of code-commit rollup",
    }
}

/// Adds everything that no build may change in this tree.
pub(crate) fn seal(tree: &WorkTree, guard: &Guard, plan: &mut Plan) -> Result<(), Failure> {
    // In this order: a sandbox protects the first of them.
    let protected = sandbox::protected(tree, guard, &plan.settings)?;
    let mut known: HashSet<PathBuf> = plan.sealed.iter().cloned().collect();
    // Git's errors about the tree were already reported.
    let dot_gits = sandbox::sealed_dot_gits(tree, plan.settings.sandbox.value).unwrap_or_default();
    let more = dot_gits.into_iter().chain(protected).chain(guard.protected_anywhere().map(PathBuf::from));
    plan.sealed.extend(more.filter(|path| known.insert(path.clone())));
    Ok(())
}

fn settings(which: Which, args: &Request, root: &Path, host: Host<'_>) -> Result<Settings, Failure> {
    let mut settings = crate::config::load(root, args.layer.clone(), host)?;
    if which == Which::Implement && settings.model.origin == Origin::Default {
        let model: code_commit_llm::ModelId = IMPLEMENT_MODEL.parse().map_err(anyhow::Error::from)?;
        settings.model.value = model.into();
    }
    Ok(settings)
}

/// Lets the supervisor write the query; refuses if it would be committed with the project (S1 §Safety).
fn edit_query(
    which: Which,
    tree: &WorkTree,
    settings: &Settings,
    host: Host<'_>,
    keys: &Keys,
) -> Result<(), Failure> {
    let (root, environment) = (tree.root(), host.environment);
    match which {
        Which::Commit => {
            let ignored = preflight::agent_config_is_ignored(root);
            ignored.map_err(|missing| refused(vec![preflight::project_above(tree).unwrap_or(missing)]))?;
            edit::open(root, QUERY, settings, environment, keys)
        }
        Which::Implement => edit::open(root, &beside_or_above(root, QUERY), settings, environment, keys),
    }
}

/// A run of this task under these settings.
pub fn plan(settings: Settings, tree: &WorkTree, task: Task) -> Result<Plan, Failure> {
    let most = match &task {
        Task::Commit { .. } => COMMIT_ROUNDS,
        Task::Implement { .. } => IMPLEMENT_ROUNDS,
    };
    let head = tree.head()?;
    Ok(Plan {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        rounds: settings.rounds(most),
        query_from: None,
        chosen: Vec::new(),
        same_failures: None,
        restore_on_failure: false,
        early_stop: false,
        no_check: false,
        key: None,
        sealed: sealed(&settings, tree.root(), task.binds()),
        head,
        task,
        settings,
    })
}

/// The build script and what else no build may write (S1 §Safety), whether it exists or not, whatever the
/// configuration protects.
fn sealed(settings: &Settings, root: &Path, binds: Binds) -> Vec<PathBuf> {
    let files = code_commit_names::protected(binds)
        .filter(|row| !row.is_folder() && row.writer() != Some(Writer::Build));
    let mut sealed: Vec<PathBuf> = files.map(|row| PathBuf::from(row.at_root())).collect();
    let deciders = deciders::find(root, settings).into_iter().filter(|decider| !decider.is_builds);
    for path in deciders.map(|decider| PathBuf::from(decider.path)) {
        if !sealed.contains(&path) {
            sealed.push(path);
        }
    }
    sealed
}

/// S0 keeps its inputs at the root, but `agent-config/` takes precedence.
pub fn beside_or_above(root: &Path, path: &str) -> String {
    let above = path.strip_prefix(AGENT_CONFIG).map_or(path, |rest| rest.trim_start_matches('/'));
    let found = if !root.join(path).exists() && root.join(above).exists() { above } else { path };
    found.to_owned()
}

fn refused(missing: Vec<Missing>) -> Failure {
    let what: Vec<String> = missing.iter().map(|m| m.what.clone()).collect();
    let hints: Vec<String> = missing.into_iter().map(|m| m.hint).collect();
    Failure::refused(anyhow!("{}", what.join("\n       ")), hints.join("\n       "))
}

/// The protected set as the prompt lists it (S1 §Parsing the Response), plus what the configuration adds.
pub fn protected_for_model(settings: &Settings, root: &Path) -> Vec<String> {
    let names = code_commit_names::protected(Binds::Commit).map(|name| {
        let path = name.pattern.trim_start_matches("**").trim_start_matches('/');
        match path.strip_suffix('/') {
            Some(folder) => format!("anything in the {folder} folder"),
            None if name.pattern.starts_with('/') => path.to_owned(),
            None => format!("any file named {path}"),
        }
    });
    let general = ["anything in a .git folder", "anything that .gitignore names"].map(str::to_owned);
    let configured = settings.protect.iter().flat_map(|list| list.value.iter().cloned());
    let graders = if settings.protect_grader.value { deciders::graders(root, settings) } else { Vec::new() };
    let deciders = deciders::find(root, settings).into_iter().map(|decider| decider.path);
    names.chain(deciders).chain(graders).chain(general).chain(configured).collect()
}
