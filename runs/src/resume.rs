//! `code-commit resume`: continues a killed or interrupted run where its journal ends.

use anyhow::anyhow;
use code_commit_report::phrases;

use crate::exit::{Exit, Failure};
use crate::host::Host;
pub use crate::kind::Resumption as Request;
use crate::project::Project;
use crate::records::{self, NAMED_RUNS, closed};
use crate::registry::Known;

/// Finds the run, then resumes it with its loop.
pub fn run(args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let project = Project::here(host)?;
    meant(args, &project).map_err(|failure| {
        let older = if args.run.is_none() {
            older_unfinished(&project)
        } else {
            None
        };
        match older {
            Some(older) if failure.exit == Exit::NothingToDo => failure.help(older),
            Some(_) | None => failure,
        }
    })
}

/// The named run, or the newest: an older one has a stale prompt, and its changes may be committed.
fn meant(args: &Request, project: &Project<'_>) -> Result<Exit, Failure> {
    let newest = || project.registry().all().ok()?.into_iter().next();
    // Also one that has not asked yet: it is what was asked for last.
    let known = match newest().filter(|_| args.run.is_none()) {
        Some(newest) => newest,
        None => project.registry().find(args.run.as_deref())?,
    };
    let name = records::name(&known.path(&project.root));
    if known.undone {
        return Err(closed(&name, "was undone"));
    }
    let kind = project.kind(&known).ok_or_else(|| {
        let error = anyhow!("{name} was made by code-commit apply, which asks no model");
        Failure::nothing_to_do(error, "start a new run")
    })?;
    (kind.resume)(&known, args, project)
}

/// The names of runs that could be resumed, for the user.
fn older_unfinished(project: &Project<'_>) -> Option<String> {
    let now = records::now();
    let unfinished = |known: &Known| !known.undone && project.is_over(known) == Some(false);
    let line = |known: Known| {
        let path = known.path(&project.root);
        let age = now
            .duration_since(records::last_written(&path))
            .unwrap_or_default();
        format!("{} ({})", records::name(&path), phrases::ago(age))
    };
    let older: Vec<String> = project
        .registry()
        .all()
        .ok()?
        .into_iter()
        .filter(unfinished)
        .map(line)
        .collect();
    let named = (!older.is_empty()).then(|| phrases::first(&older, NAMED_RUNS))?;
    Some(format!(
        "older unfinished runs: {named}; to continue one: code-commit resume RUN"
    ))
}
