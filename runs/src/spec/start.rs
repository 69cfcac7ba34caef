//! Runs that a person asks for: on a focus, from a review, or on with the newest one.

use std::path::Path;

use anyhow::anyhow;
use code_commit_loop_spec::watch::Item;
use code_commit_loop_spec::{BACKLOG, ISSUES, Inputs, STORE, first_prompt};
use code_commit_report::printable;
use code_commit_settings::Layer;

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::life::Asked;
use crate::registry::Known;
use crate::site::Site;
use crate::spec::act::{Begun, Spec, begun, inputs, newest};
use crate::spec::lines::Lines;
use crate::spec::options::AgentOptions;
use crate::spec::project;
use crate::spec::workspace::Workspace;
use crate::text::{self, read_input};
use crate::{estimate, records, resume};

/// What agents work on, and how far they may go.
#[derive(Debug, Default)]
pub struct Request {
    /// What to work on; `@FILE` takes it from a file.
    pub focus: Option<String>,
    /// How far a run may go.
    pub limits: Layer,
    /// Who works.
    pub agent: AgentOptions,
    /// Begin a new run, even if one on the same focus is not finished.
    pub new: bool,
    /// The supervisor's own name for this work: a finished run is answered from the record.
    pub key: Option<String>,
    /// Tell what the first prompt takes, and send nothing.
    pub dry_run: bool,
}

/// Works on the focus, or goes on with the newest run: also with an unfinished one on the same focus, so that a
/// supervisor that starts the command again pays for no turn twice.
pub fn run(root: &Path, request: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let site = Site::at(root, host)?;
    let Some(focus) = &request.focus else {
        let known = newest(&site).map(|(known, _)| known);
        return go_on(
            &site,
            known.as_ref(),
            &request.agent,
            request.limits.clone(),
        );
    };
    let focus = focus_of(root, focus)?;
    let workspace = open(&site, &request.agent, request.limits.clone())?;
    let inputs = inputs(&workspace, focus)?;
    start(&site, &workspace, inputs, request)
}

/// Begins a run whose first plan answers a person's review.
pub fn review(
    root: &Path,
    file: &Path,
    request: &Request,
    host: Host<'_>,
) -> Result<Exit, Failure> {
    let review = String::from_utf8(read_input(file)?).unwrap_or_default();
    if review.trim().is_empty() {
        let what = anyhow!("{} is empty, or not UTF-8", file.display());
        return Err(Failure::refused(
            what,
            "write there what does not match the specs",
        ));
    }
    let site = Site::at(root, host)?;
    let focus = match &request.focus {
        Some(focus) => focus_of(root, focus)?,
        None => newest(&site)
            .map(|(_, begun)| begun.inputs.focus)
            .ok_or_else(|| {
                Failure::refused(
                    anyhow!("there is no run that the review could be about"),
                    "say it: --focus TEXT",
                )
            })?,
    };
    let workspace = open(&site, &request.agent, request.limits.clone())?;
    let inputs = inputs(&workspace, focus)?;
    start(
        &site,
        &workspace,
        Inputs {
            review: Some(review),
            ..inputs
        },
        request,
    )
}

/// Continues a run under its name, with the agent that it began with.
pub(crate) fn resume(
    known: &Known,
    args: &resume::Request,
    site: &Site<'_>,
) -> Result<Exit, Failure> {
    let name = records::name(&known.path(&site.root));
    if site.is_over(known) != Some(false) && site.is_newest(known) {
        return Err(records::closed(&name, "is over"));
    }
    if !site.is_newest(known) {
        let what = anyhow!("a newer run of the spec loop has begun since {name}");
        return Err(Failure::refused(
            what,
            "only the newest can be resumed: code-commit spec run --resume",
        ));
    }
    go_on(
        site,
        Some(known),
        &AgentOptions::default(),
        args.limits.clone(),
    )
}

fn go_on(
    site: &Site<'_>,
    known: Option<&Known>,
    flags: &AgentOptions,
    limits: Layer,
) -> Result<Exit, Failure> {
    let begun = known.and_then(|known| begun(&known.path(&site.root)));
    // What an archive may have brought along weakens nothing.
    let trusted = begun.filter(|_| site.trusted.tree().is_some());
    let agent = trusted.map_or_else(|| flags.clone(), |begun| flags.over(&begun.agent));
    let workspace = open(site, &agent, limits)?;
    let lines = Lines::new(site.host.output.clone(), &workspace.config.specs);
    let spec = Spec::new(site, &workspace, &lines);
    let life = spec.live()?;
    let known = known
        .filter(|known| site.is_over(known) != Some(true))
        .ok_or_else(|| {
            Failure::nothing_to_do(
                anyhow!("there is no run to go on with"),
                "begin one with: code-commit spec run --focus TEXT",
            )
        })?;
    life.go_on(known).map(|done| done.exit)
}

/// The workspace of a run that a person has asked for. Not while a spec issue waits: agents would meet it again, and be paid for that (S4
/// §Spec Issue Handling).
fn open<'b>(
    site: &Site<'b>,
    agent: &'b AgentOptions,
    limits: Layer,
) -> Result<Workspace<'b>, Failure> {
    let waiting = project::issues(&site.root);
    if !waiting.is_empty() {
        let what = anyhow!(
            "a spec issue waits in {STORE}/{ISSUES}: {}",
            printable(&waiting.join(", "))
        );
        return Err(Failure::refused(
            what,
            "settle it in the specs, delete the file, then run the command again",
        ));
    }
    Workspace::open(site, agent, limits)
}

fn start(
    site: &Site<'_>,
    workspace: &Workspace<'_>,
    inputs: Inputs,
    request: &Request,
) -> Result<Exit, Failure> {
    let lines = Lines::new(site.host.output.clone(), &workspace.config.specs);
    let spec = Spec::new(site, workspace, &lines);
    let plan = Begun::new(workspace, inputs, None, request.key.clone());
    if request.dry_run {
        return Ok(estimate::tell_of_agent(
            &first_prompt(&plan.inputs),
            site.host.output,
        ));
    }
    let asked = Asked {
        key: request.key.as_deref(),
        new: request.new,
    };
    spec.live()?.start(plan, asked).map(|done| done.exit)
}

/// `@path` names a file (S4 §CLI Usage).
pub(super) fn focus_of(root: &Path, focus: &str) -> Result<String, Failure> {
    let Some(file) = focus.strip_prefix('@') else {
        return match focus.trim() {
            "" => Err(Failure::refused(
                anyhow!("the focus is empty"),
                "say what to work on: --focus TEXT",
            )),
            _ => Ok(focus.to_owned()),
        };
    };
    let text = text::read(&root.join(file))?;
    match text.filter(|text| !text.trim().is_empty()) {
        Some(text) => Ok(from_file(file, &text)),
        None => Err(Failure::refused(
            anyhow!("{file} is not there or is empty"),
            "name a file with the focus in it",
        )),
    }
}

/// The focus of a run on a file of the backlog; none if that does not hold what it did when it was listed. The run is about that content,
/// and the file is deleted only with it.
pub(super) fn focus_of_task(root: &Path, item: &Item) -> Result<Option<String>, Failure> {
    let file = format!("{STORE}/{BACKLOG}/{}", item.name);
    let text = text::read(&root.join(&file))?;
    let as_listed =
        text.filter(|text| code_commit_logging::sha256_hex(text.as_bytes()) == item.sha256);
    Ok(as_listed.map(|text| from_file(&file, &text)))
}

fn from_file(file: &str, text: &str) -> String {
    format!("From `{file}`:\n\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_is_not_as_it_was_listed_is_not_begun() {
        let root = tempfile::tempdir().unwrap();
        let path = project::folder(root.path(), BACKLOG).join("a.md");
        project::write(&path, "one\n").unwrap();
        let item = project::listing(root.path()).backlog.remove(0);
        let focus = || focus_of_task(root.path(), &item).ok().unwrap();
        assert_eq!(focus().unwrap(), "From `.cuggino/backlog/a.md`:\n\none\n");
        project::write(&path, "two\n").unwrap();
        assert_eq!(focus(), None);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(focus(), None);
    }
}
