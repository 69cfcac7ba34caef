//! A run: one focus, until the reviewer approves.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use logging::{RunFolder, Stamp};
use loop_spec::watch::Item;
use loop_spec::{CommitScope, Files, Inputs, Patience, SpecLoop};
use names::ours::{PROJECT_FILE, SPEC_CONFIG};
use perform::{AgentFact, AgentFault, AgentLimits, AgentRecord, COPIES, Guarded, Loop as _, Outcome, drive};
use serde::{Deserialize, Serialize};
use serde_json::json;
use settings::{CommitScope as Scope, Origin, Settings};

use crate::commands::agents::{self, limits};
use crate::commands::runs;
use crate::commands::runs::cannot_begin;
use crate::commands::spec::lines::{Ear, Lines};
use crate::commands::spec::mending::Mending;
use crate::commands::spec::workspace::Workspace;
use crate::commands::spec::{AgentArgs, project, uuid};
use crate::exit::{Exit, Failure};
use crate::output::{BAD, Output, printable};
use crate::plan::RUN_JSON;

/// What a run was begun with, as its folder has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Begun {
    /// `spec`.
    #[serde(rename = "loop")]
    pub which: String,
    /// Of this program.
    pub version: String,
    /// What the run is about.
    pub inputs: Inputs,
    /// The file of the backlog that it works on.
    pub item: Option<Item>,
    /// Who works.
    #[serde(default)]
    pub agent: AgentArgs,
}

/// What a run of this project is about.
pub fn inputs(workspace: &Workspace<'_>, focus: String, patience: Patience) -> Result<Inputs, Failure> {
    let config = &workspace.config;
    let scope = match workspace.settings.commit_scope.value {
        Some(Scope::All) => CommitScope::All,
        Some(Scope::Run) | None => CommitScope::Run,
    };
    Ok(Inputs {
        id: uuid::v7()?,
        focus,
        specs: config.specs.clone(),
        max_iterations: config.max_iterations,
        setup: config.setup.clone(),
        check: config.check.clone(),
        commit: config.commit.then_some(scope),
        patience,
        limits: limits(&workspace.settings),
        review: None,
    })
}

/// The limits that a run was begun with, under those that flags set now.
fn overruled(begun: AgentLimits, settings: &Settings) -> AgentLimits {
    let flags = limits(settings);
    let is_flag = |origin| origin == Origin::Flag;
    AgentLimits {
        max_cost_usd: if is_flag(settings.max_cost.origin) { flags.max_cost_usd } else { begun.max_cost_usd },
        max_tokens: if is_flag(settings.max_tokens.origin) { flags.max_tokens } else { begun.max_tokens },
        max_time_ms: if is_flag(settings.max_time.origin) { flags.max_time_ms } else { begun.max_time_ms },
    }
}

/// Begins a run and leads it to its end.
pub fn begin(
    workspace: &Workspace<'_>,
    inputs: Inputs,
    item: Option<Item>,
    lines: &Lines,
) -> Result<(Outcome, RunFolder), Failure> {
    if inputs.commit.is_some() && repo::WorkTree::at(&workspace.root).is_err() {
        return Err(Failure::refused(
            anyhow!("there is nothing to commit to: {} is not in a git work tree", workspace.root.display()),
            "git init, or set commit to false in .cuggino.json",
        ));
    }
    leave_unfinished(workspace)?;
    let folder = RunFolder::create(&workspace.runs, &Stamp::now().folder_name(), workspace.redactor.clone())
        .map_err(|error| Failure::refused(error, "see that the folder can be written"))?;
    let (which, version) = ("spec".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let begun = Begun { which, version, inputs, item, agent: workspace.args.clone() };
    folder.store_json(RUN_JSON, &begun).map_err(cannot_begin(&folder))?;
    let mut observer = lines.clone();
    let record = AgentRecord::begin(folder.clone(), &mut observer).map_err(cannot_begin(&folder))?;
    lead(workspace, &begun.inputs, record, &[], lines)
}

/// Only the newest run can be gone on with. A person may have worked on the tree since: a new run takes it as it is.
fn leave_unfinished(workspace: &Workspace<'_>) -> Result<(), Failure> {
    let Some((folder, begun)) = unfinished(workspace)? else { return Ok(()) };
    project::forget_session(&workspace.root, &Files::of(&begun.inputs.id));
    if folder.path().join(COPIES).is_dir() {
        let name = runs::name(folder.path());
        workspace.output.warn(&format!(
            "{name} was killed while an agent worked: what that agent changed and may not is left as it is now; code-commit spec run --resume would have put it back"
        ));
    }
    Ok(())
}

/// Goes on where the journal ends; a turn that is in it is not paid for twice.
pub fn resume(
    workspace: &Workspace<'_>,
    folder: RunFolder,
    begun: &Begun,
    lines: &Lines,
) -> Result<(Outcome, RunFolder), Failure> {
    workspace.output.note(&format!("going on with {}", folder.path().display()));
    let mut observer = lines.clone();
    let (mut record, mut facts) = AgentRecord::resume(folder, &mut observer).map_err(anyhow::Error::from)?;
    if let Some(AgentFact::Ended { .. }) = facts.last() {
        record.note(&AgentFact::Resumed).map_err(anyhow::Error::from)?;
        facts.push(AgentFact::Resumed);
    }
    lead(workspace, &begun.inputs, record, &facts, lines)
}

fn lead(
    workspace: &Workspace<'_>,
    inputs: &Inputs,
    mut record: AgentRecord<'_, AgentFact>,
    so_far: &[AgentFact],
    lines: &Lines,
) -> Result<(Outcome, RunFolder), Failure> {
    let folder = record.folder().clone();
    let files = Files::of(&inputs.id);
    let mut ear = Ear::new(lines.clone(), &workspace.root, Some(&files));
    let mut around = |_: &str| -> std::io::Result<Guarded> { Ok(Box::new(())) };
    let mut executor = workspace.executor(&inputs.focus, &files, &mut ear, &mut around, &workspace.cancel);
    let repositories = workspace.repositories(workspace.never_copied());
    if so_far.is_empty() {
        agents::keep_uncommitted(&repositories, folder.path(), workspace.output)?;
    }
    let put_back = executor.put_back_after(so_far, &folder).map_err(|error| fault(error, &folder))?;
    say_put_back(workspace.output, &put_back)?;
    project::forget_copies(&workspace.runs).context("cannot remove what a killed run has left")?;
    // What has happened, happened under whatever limits were in force then.
    let mut decide = SpecLoop::new(Inputs { limits: AgentLimits::default(), ..inputs.clone() });
    so_far.iter().for_each(|fact| decide.learn(fact));
    decide.limit(overruled(inputs.limits, &workspace.settings));
    let session = files.session();
    let no_wall = (!workspace.has_wall()).then_some(workspace.output);
    let mut executor = Mending { root: &workspace.root, session: &session, no_wall, executor: &mut executor };
    let outcome = drive(&mut decide, &mut executor, &mut record).map_err(|error| fault(error, &folder))?;
    agents::say_uncommitted(&repositories, folder.path(), workspace.output);
    Ok((outcome, folder))
}

/// What the agent had changed when the run was cut off. A configuration that was its own has been read already.
fn say_put_back(output: &Output, paths: &[String]) -> Result<(), Failure> {
    for path in paths {
        let path = printable(path);
        output.warn(&format!("{path} was not for the agent to change that was cut off; it was put back"));
    }
    if paths.iter().any(|path| [SPEC_CONFIG, PROJECT_FILE].contains(&path.as_str())) {
        let why = anyhow!("the configuration has just been put back as it was before the agent changed it");
        return Err(Failure::refused(why, "say it once more: code-commit spec run --resume"));
    }
    Ok(())
}

/// The newest run, if it can be gone on with.
pub fn unfinished(workspace: &Workspace<'_>) -> Result<Option<(RunFolder, Begun)>, Failure> {
    let runs = project::runs(&workspace.runs);
    let newest = runs.into_iter().rev().find_map(|path| Some((path.clone(), begun(&path)?)));
    let Some((path, begun)) = newest else { return Ok(None) };
    let folder = RunFolder::open(path, workspace.redactor.clone());
    Ok(goes_on(outcome_of(&folder)?.as_ref()).then_some((folder, begun)))
}

/// Whether a run can be gone on with: one that was killed or interrupted, and one that ended because its agent could not be used.
pub fn goes_on(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, None | Some(Outcome::ModelUnavailable { .. }))
}

/// Whether a run has not come to its end.
pub fn is_unfinished(folder: &RunFolder) -> Result<bool, Failure> {
    Ok(outcome_of(folder)?.is_none())
}

/// How a run ended; none if it has not. What cannot be read is not taken for a run that is over: its turns were paid for, and copies of
/// what an agent may not change may lie in it.
fn outcome_of(folder: &RunFolder) -> Result<Option<Outcome>, Failure> {
    let facts: Vec<AgentFact> = perform::facts_of(folder).map_err(|error| {
        let help = format!("move {} away, then begin anew", folder.path().display());
        Failure::refused(error, help)
    })?;
    Ok(match facts.into_iter().next_back() {
        Some(AgentFact::Ended { outcome }) => Some(outcome),
        Some(_) | None => None,
    })
}

/// What the run in a folder was begun with; none for an audit.
pub fn begun(folder: &Path) -> Option<Begun> {
    serde_json::from_str(&std::fs::read_to_string(folder.join(RUN_JSON)).ok()?).ok()
}

/// The last words of a run.
pub fn say(output: &Output, outcome: &Outcome, folder: &RunFolder) {
    let log = folder.path().display().to_string();
    output.object(&json!({ "event": "summary", "outcome": outcome, "log": log }));
    if let Outcome::NeedsPerson { cause, .. } | Outcome::ModelUnavailable { cause, .. } = outcome {
        if matches!(outcome, Outcome::ModelUnavailable { .. }) {
            output.report(&output.paint(BAD, &format!("[Loop] Stopped: {}", printable(&cause.message))));
        }
        output.report(&format!("help: {}", cause.remedy.as_deref().unwrap_or_default()));
    }
    if matches!(outcome, Outcome::AttemptsUsedUp { .. }) {
        output.report("help: go on from this review, or from one of yours: code-commit spec review FILE");
    }
    output.report(&format!("log: {log}"));
}

/// What stopped a run from the outside.
pub fn fault(error: AgentFault, folder: &RunFolder) -> Failure {
    let help =
        format!("go on with: code-commit spec run --resume; what happened is in {}", folder.path().display());
    if matches!(error, AgentFault::KeyInPrompt { .. }) {
        return Failure::refused(error, "take the key out of the focus");
    }
    if matches!(error, AgentFault::NotPutBack(_)) {
        let help = "see what stands in the way; code-commit spec run --resume tries it once more";
        return Failure::new(Exit::TreeNotRestored, error).help(help);
    }
    let exit = if matches!(error, AgentFault::Interrupted) { Exit::Interrupted } else { Exit::Fault };
    Failure::new(exit, error).help(help)
}
