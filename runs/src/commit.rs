//! The two commit loops: `code-commit` (S1) and `code-commit implement` (S0).

pub(crate) mod changed;
pub(crate) mod commits;
mod files;
mod inputs;
pub(crate) mod plan;
mod request;
pub mod rollup;
pub(crate) mod run;
mod tree_checks;

pub use self::commits::Message;
pub use self::inputs::SYSTEM_PROMPT;
pub(crate) use self::plan::Plan;
pub use self::plan::{Which, policy};
pub use self::request::{OnFailure, Query, Request, beside_or_above};
pub use self::run::leaves_tree_changed;
pub(crate) use self::run::{Commit, fault};

use std::path::Path;

use code_commit_settings::{Keys, Origin, Settings};

use self::inputs::Sources;
use crate::driver::Asked;
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::preflight;
use crate::project::Project;
use crate::registry::Known;
use crate::resume;

/// The default model of the first loop (S0 §Implementation Details).
const IMPLEMENT_MODEL: &str = "gemini-2.5-pro";

/// Runs the preflight checks, then the loop.
pub fn run(which: Which, args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let project = Project::here(host)?;
    let tree = project.tree()?;
    let keys = &Keys::find(host.environment, tree.root());
    let redactor = &host.output.strike_out(keys.exposed());
    let settings = settings(which, args, tree.root(), host)?;
    preflight::own_or_absent(tree.root())?;
    // What a killed run has left half written is restored before it is rolled up, and no other run is writing.
    let lock = project.lock()?;
    let ready = Sources {
        which,
        tree,
        query: &args.query,
        settings: &settings,
        keys,
        redactor,
        environment: host.environment,
    }
    .check()?;
    let message = args.commit.as_ref();
    let plan = Plan {
        query_from: Some(ready.query_from.clone()),
        chosen: ready.chosen(),
        restore_on_failure: args.on_failure == OnFailure::Restore,
        key: args.key.clone(),
        commit: message.map(|message| message.text(&ready.task.query.text, redactor)),
        parent: args.parent.clone(),
        ..Plan::new(settings, tree, ready.task.clone())?
    };
    if args.dry_run {
        let model = host.models.open(&plan.settings, keys, host)?;
        return plan.first().tell(&*model, &plan.settings, host.output);
    }
    let asked = Asked {
        key: args.key.as_deref(),
        new: args.new,
    };
    let commit = Commit {
        command: Some((args, &ready)),
        ..Commit::new(&project, keys)?
    };
    commit.live(lock)?.start(plan, asked).map(|done| done.exit)
}

/// Continues a run under its name.
pub(crate) fn resume(
    known: &Known,
    args: &resume::Request,
    project: &Project<'_>,
) -> Result<Exit, Failure> {
    let keys = Keys::find(project.host.environment, &project.root);
    let commit = Commit {
        force: args.force,
        limits: args.limits.clone(),
        ..Commit::new(project, &keys)?
    };
    commit
        .live(project.lock()?)?
        .go_on(known)
        .map(|done| done.exit)
}

fn settings(
    which: Which,
    args: &Request,
    root: &Path,
    host: Host<'_>,
) -> Result<Settings, Failure> {
    let mut settings = crate::config::load(root, &args.layer, host)?;
    if which == Which::Implement && settings.origin("model.name") == Origin::Default {
        let model: code_commit_llm::ModelId =
            IMPLEMENT_MODEL.parse().map_err(anyhow::Error::from)?;
        settings.options.model.name = Some(model.into());
    }
    Ok(settings)
}
