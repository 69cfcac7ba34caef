//! `code-commit review`: a change waits for a person, who keeps it, takes it back or says what should be different.

use anyhow::anyhow;
use code_commit_logging::RunFolder;
use code_commit_report::phrases;
use serde_json::json;

use crate::check::{self, Of};
use crate::commit::{self, Message, Plan, Query, commits};
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::records;
use crate::registry::Known;
use crate::site::Site;
use crate::{again, config, undo};

/// What a person decides.
#[derive(Debug)]
pub enum Decision<'s> {
    /// Keep the change.
    Accept,
    /// Undo it, or these files of it. What is kept is built again before it counts.
    Reject(&'s [String]),
    /// Ask the model for something else.
    Words(String),
}

/// What to tell before a command if the newest run waits.
pub fn reminder(site: &Site<'_>) -> Option<String> {
    let newest = site.registry().all().ok()?.into_iter().next()?;
    waiting(&newest, site).map(|_| phrases::waits_for_review(&newest.name(&site.root)))
}

/// The run that is meant: the named one, or the newest that waits.
pub fn find(named: Option<&str>, site: &Site<'_>) -> Result<Known, Failure> {
    let Some(named) = named else {
        let waiting = site
            .registry()
            .all()?
            .into_iter()
            .find(|known| waiting(known, site).is_some());
        return waiting.ok_or_else(|| {
            let error = anyhow!("no run waits for review");
            Failure::nothing_to_do(error, "a run waits if it is begun with --review")
        });
    };
    let known = site.registry().find(Some(named))?;
    if waiting(&known, site).is_none() {
        return Err(not_waiting(&known, &known.name(&site.root)));
    }
    Ok(known)
}

fn not_waiting(known: &Known, name: &str) -> Failure {
    if known.undone {
        let error = anyhow!("{name} is undone, so it does not wait for review");
        return Failure::nothing_to_do(
            error,
            format!("to reapply its change: code-commit redo {name}"),
        );
    }
    let help = format!(
        "to see what it did: code-commit show {name}; to take it back: code-commit undo {name}"
    );
    Failure::nothing_to_do(anyhow!("{name} does not wait for review"), help)
}

/// The plan of a run that waits: for the person, or, once accepted, for its commit.
fn waiting(known: &Known, site: &Site<'_>) -> Option<Plan> {
    let plan = Plan::load(&folder(known, site), known)
        .ok()
        .filter(|plan| plan.review)?;
    let past = records::intact(&folder(known, site)).ok()?;
    let waits = |outcome| known.waits(outcome) || commits::is_due(&plan, known, &past);
    past.outcome().is_some_and(waits).then_some(plan)
}

fn folder(known: &Known, site: &Site<'_>) -> RunFolder {
    records::open(&known.path(&site.root))
}

/// Carries out a decision about a run that waits.
pub fn carry_out(known: &Known, decision: Decision<'_>, host: Host<'_>) -> Result<Exit, Failure> {
    let site = Site::here(host)?;
    let name = known.name(&site.root);
    match decision {
        Decision::Accept => accept(known, &site),
        Decision::Reject(files) => {
            undo::run(
                &undo::Request {
                    run: Some(&name),
                    files,
                    ..undo::Request::default()
                },
                None,
                host,
            )?;
            settle(known, host)
        }
        Decision::Words(words) if words.trim().is_empty() => {
            let error = anyhow!("nothing says what should be different");
            Err(Failure::refused(
                error,
                "say it: code-commit review -m \"not like that: …\"",
            ))
        }
        Decision::Words(words) => {
            let query = Query::Given {
                by: "review",
                text: words.into_bytes(),
            };
            let message = waiting(known, &site)
                .and_then(|plan| plan.commit)
                .map(Message::Given);
            let request = commit::Request {
                query,
                review: true,
                commit: message,
                ..commit::Request::default()
            };
            again::run(Some(&name), request, host)
        }
    }
}

/// Builds what is left of a change after a part of it was undone, and accepts it if the build passes.
pub fn settle(known: &Known, host: Host<'_>) -> Result<Exit, Failure> {
    let site = Site::here(host)?;
    let (root, name) = (&site.root, known.name(&site.root));
    let now = site
        .registry()
        .get(&known.path(root))?
        .unwrap_or_else(|| known.clone());
    let Some(plan) = waiting(&now, &site) else {
        host.output
            .object(&json!({ "event": "review", "run": name, "review": "rejected" }));
        return Ok(Exit::Done);
    };
    let settings = config::unpacked(&plan.settings, root, host.environment);
    let checked = check::with(settings, site.tree()?, Of::Build, host)?;
    if checked == Exit::Done {
        return accept(known, &site);
    }
    host.output.warn(&format!(
        "what is left does not build, so it still waits; to reapply all of it: code-commit redo {name}"
    ));
    Ok(checked)
}

fn accept(known: &Known, site: &Site<'_>) -> Result<Exit, Failure> {
    let (name, output) = (known.name(&site.root), site.host.output);
    let _lock = site.lock()?;
    // First: if this is killed now, or git refuses, the run waits for its commit.
    site.registry().accept(&known.path(&site.root))?;
    let mut known = known.clone();
    known.accepted = true;
    let commit = match waiting(&known, site) {
        Some(plan) => commits::accepted(&plan, folder(&known, site), site)?,
        None => None,
    };
    let mut line = json!({ "event": "review", "run": name, "review": "accepted" });
    line.as_object_mut()
        .into_iter()
        .zip(&commit)
        .for_each(|(line, commit)| {
            line.insert("commit".to_owned(), json!(commit));
        });
    output.object(&line);
    let committed =
        commit.map_or_else(String::new, |commit| format!(", and committed as {commit}"));
    output.report(&format!("{name} is accepted{committed}"));
    Ok(Exit::Done)
}
