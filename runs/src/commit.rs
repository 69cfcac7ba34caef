//! The two commit loops: `code-commit` (S1) and `code-commit implement` (S0).

mod begun;
pub(crate) mod changed;
pub(crate) mod commits;
mod edit;
mod fault;
mod files;
mod inputs;
pub(crate) mod plan;
mod query;
mod request;
pub mod rollup;
pub(crate) mod run;
mod task;
mod tree_checks;

pub(crate) use self::begun::guard;
pub(crate) use self::begun::seal;
pub use self::begun::{plan, protected_for_model};
pub use self::commits::Message;
pub(crate) use self::fault::fault;
pub use self::fault::leaves_tree_changed;
pub use self::inputs::SYSTEM_PROMPT;
pub use self::plan::{Plan, Task, form, policy};
pub use self::query::Query;
pub(crate) use self::request::refused;
pub use self::request::{OnFailure, Request, Which, beside_or_above};
pub(crate) use self::run::Commit;
pub use self::run::begin;

use std::path::Path;

use code_commit_settings::{Keys, Origin, Settings};

use self::begun::first;
use self::inputs::Sources;
use self::run::From;
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::life::Asked;
use crate::preflight::{self, QUERY};
use crate::registry::Known;
use crate::resume;
use crate::site::Site;

/// The default model of the first loop (S0 §Implementation Details).
const IMPLEMENT_MODEL: &str = "gemini-2.5-pro";

/// Runs the preflight checks, then the loop.
pub fn run(which: Which, args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let Host {
        environment,
        output,
        ..
    } = host;
    let site = Site::here(host)?;
    let tree = site.tree()?;
    let keys = Keys::find(environment, tree.root());
    let redactor = output.strike_out(keys.exposed());
    let settings = settings(which, args, tree.root(), host)?;
    preflight::own_or_absent(tree.root()).map_err(|missing| refused(vec![missing]))?;
    if matches!(args.query, Query::Edited) {
        edit_query(which, &site, &settings, &keys)?;
    }
    let (keys, query, redactor, settings) = (&keys, &args.query, &redactor, settings);
    // What a killed run has left half written is restored before it is rolled up, and no other run is writing.
    let lock = site.lock()?;
    let ready = Sources {
        which,
        tree,
        query,
        settings: &settings,
        keys,
        redactor,
        environment,
    }
    .check()?;
    let plan = Plan {
        query_from: Some(ready.query_from.clone()),
        chosen: ready.chosen(),
        restore_on_failure: args.on_failure == OnFailure::Restore,
        key: args.key.clone(),
        commit: args
            .commit
            .as_ref()
            .map(|message| message.text(ready.task.query(), redactor)),
        parent: args.parent.clone(),
        ..plan(settings, tree, ready.task.clone())?
    };
    if args.dry_run {
        let model = host.models.open(&plan.settings, keys, host)?;
        return first(&plan).tell(&*model, &plan.settings, output);
    }
    let asked = Asked {
        key: args.key.as_deref(),
        new: args.new,
    };
    let commit = Commit::new(&site, keys, From::Command(args, &ready))?;
    commit.live(lock)?.start(plan, asked).map(|done| done.exit)
}

/// Continues a run under its name.
pub(crate) fn resume(
    known: &Known,
    args: &resume::Request,
    site: &Site<'_>,
) -> Result<Exit, Failure> {
    let keys = Keys::find(site.host.environment, &site.root);
    let from = From::Record {
        force: args.force,
        limits: &args.limits,
    };
    let commit = Commit::new(site, &keys, from)?;
    commit
        .live(site.lock()?)?
        .go_on(known)
        .map(|done| done.exit)
}

fn settings(
    which: Which,
    args: &Request,
    root: &Path,
    host: Host<'_>,
) -> Result<Settings, Failure> {
    let mut settings = crate::config::load(root, args.layer.clone(), host)?;
    if which == Which::Implement && settings.model.origin == Origin::Default {
        let model: code_commit_llm::ModelId =
            IMPLEMENT_MODEL.parse().map_err(anyhow::Error::from)?;
        settings.model.value = model.into();
    }
    Ok(settings)
}

/// Lets the supervisor write the query, unless the project is in a folder above.
fn edit_query(
    which: Which,
    site: &Site<'_>,
    settings: &Settings,
    keys: &Keys,
) -> Result<(), Failure> {
    let Site {
        root,
        trusted,
        host: Host { environment, .. },
    } = site;
    let query = match which {
        Which::Commit => {
            let above = preflight::project_above(site.tree()?);
            above.map_or(Ok(()), |above| Err(refused(vec![above])))?;
            QUERY.to_owned()
        }
        Which::Implement => beside_or_above(root, QUERY),
    };
    edit::open(trusted, &query, settings, environment, keys)
}
