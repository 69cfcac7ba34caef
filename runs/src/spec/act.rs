//! A run: one focus, until the reviewer approves.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use code_commit_engine::{HoldsFor, Note, Outcome};
use code_commit_logging::{RunFolder, Stamp};
use code_commit_loop_spec::watch::Item;
use code_commit_loop_spec::{CommitScope, Files, Inputs, Patience, Role, Specs, still_holds};
use code_commit_names::ours::{PROJECT_FILE, SPEC_CONFIG};
use code_commit_perform::{AgentLimits, AgentUsage, AgentWorld, COPIES, Guarded, Past, Record};
use code_commit_settings::{CommitScope as Scope, Origin, Settings};
use serde::{Deserialize, Serialize};

use crate::agents::{Words, Work, limits};
use crate::commit::run::UNLIKE_RECORDED;
use crate::exit::Failure;
use crate::records::{self, NewRun, cannot_begin, outcome_of};
use crate::registry::RUN_JSON;
use crate::spec::lines::{Ear, Lines};
use crate::spec::mending::Mending;
use crate::spec::options::AgentOptions;
use crate::spec::workspace::Workspace;
use crate::spec::{project, uuid};

/// What a run of the spec loop says where it cannot go on.
pub(super) const WORDS: Words = Words {
    go_on: "go on with: code-commit spec run --resume",
    again: "code-commit spec run --resume",
    worker: "agent",
    key_in: "the focus",
    unlike_recorded: |_| UNLIKE_RECORDED.to_owned(),
};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Begun {
    #[serde(rename = "loop")]
    pub which: String,
    pub version: String,
    pub inputs: Inputs,
    #[serde(default)]
    pub limits: AgentLimits,
    /// The file of the backlog that it works on.
    pub item: Option<Item>,
    #[serde(default)]
    pub agent: AgentOptions,
    /// The supervisor's own name for this work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Begun {
    /// Whether it is the same work, for a person.
    pub(super) fn is_same(&self, inputs: &Inputs, agent: &AgentOptions) -> bool {
        let inputs = Inputs { id: self.inputs.id.clone(), ..inputs.clone() };
        self.inputs == inputs && self.item.is_none() && self.agent == *agent
    }
}

pub(super) fn inputs(
    workspace: &Workspace<'_>,
    focus: String,
    patience: Patience,
) -> Result<Inputs, Failure> {
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

#[derive(Debug, Default)]
pub(super) struct About {
    /// The file of the backlog that it works on.
    pub(super) item: Option<Item>,
    /// The supervisor's own name for it.
    pub(super) key: Option<String>,
}

pub(super) fn begin(
    workspace: &Workspace<'_>,
    inputs: Inputs,
    about: About,
    lines: &Lines,
) -> Result<(Outcome, RunFolder), Failure> {
    let About { item, key } = about;
    if inputs.commit.is_some() && code_commit_repo::WorkTree::at(&workspace.root).is_err() {
        return Err(Failure::refused(
            anyhow!("there is nothing to commit to: {} is not in a git work tree", workspace.root.display()),
            "git init, or set commit to false in .cuggino.json",
        ));
    }
    leave_unfinished(workspace)?;
    let (name, redactor) = (Stamp::now().folder_name(), workspace.redactor.clone());
    let new = NewRun::create(&workspace.runs, &name, redactor, "see that the folder can be written")?;
    let (which, version) = ("spec".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let (limits, agent) = (limits(&workspace.settings), workspace.args.clone());
    let begun = Begun { which, version, inputs, limits, item, agent, key };
    new.store(&begun)?;
    let mut observer = lines.clone();
    let record = new.record(&mut observer).map_err(cannot_begin)?;
    lead(workspace, &begun, record, Past::default(), lines)
}

/// Only the newest run can be gone on with. A person may have worked on the tree since: a new run takes it as it is.
fn leave_unfinished(workspace: &Workspace<'_>) -> Result<(), Failure> {
    let Some((folder, begun)) = unfinished(workspace)? else { return Ok(()) };
    project::forget_session(&workspace.root, &Files::of(&begun.inputs.id));
    if folder.path().join(COPIES).is_dir() {
        let name = records::name(folder.path());
        workspace.host.output.warn(&format!(
            "{name} was killed while an agent worked: what that agent changed and may not is left as it is now; code-commit spec run --resume would have put it back"
        ));
    }
    Ok(())
}

/// Goes on where the journal ends; a turn that is in it is not paid for twice.
pub(super) fn resume(
    workspace: &Workspace<'_>,
    folder: RunFolder,
    begun: &Begun,
    lines: &Lines,
) -> Result<(Outcome, RunFolder), Failure> {
    records::can_be_continued(folder.path())?;
    workspace.host.output.note(&format!("continuing {}", folder.path().display()));
    let mut observer = lines.clone();
    let (mut record, mut past) = Record::resume(folder, &mut observer).map_err(anyhow::Error::from)?;
    if past.outcome().is_some() {
        let kept = still_holds(&past.answers);
        record.note(&Note::Resumed { kept }).map_err(anyhow::Error::from)?;
        past.answers.truncate(kept);
    }
    lead(workspace, begun, record, past, lines)
}

fn lead(
    workspace: &Workspace<'_>,
    begun: &Begun,
    record: Record<'_>,
    past: Past,
    lines: &Lines,
) -> Result<(Outcome, RunFolder), Failure> {
    let (inputs, folder) = (&begun.inputs, record.folder().clone());
    lines.of_run(&folder);
    let files = Files::of(&inputs.id);
    let ear = Ear::new(lines.clone(), &workspace.root, Some(&files));
    let no_wall = (!workspace.has_wall()).then_some(workspace.host.output);
    let mut watch = Mending::new(ear, &workspace.root, files.session(), no_wall);
    let mut around = |_: &str| -> std::io::Result<Guarded> { Ok(Box::new(())) };
    let cast = workspace.team(&inputs.focus, &files);
    let holds_for = |outcome: &Outcome| match outcome {
        Outcome::ModelUnavailable { .. } | Outcome::Unfit { .. } => HoldsFor::default(),
        Outcome::Done { .. }
        | Outcome::AttemptsUsedUp { .. }
        | Outcome::Stuck { .. }
        | Outcome::NeedsPerson { .. } => workspace.holds_for(inputs),
    };
    let world = AgentWorld {
        limits: overruled(begun.limits, &workspace.settings),
        used: AgentUsage::of(&past.lines),
        session: Some(inputs.id.clone()),
        holds_for: &holds_for,
        ..workspace.world(record, cast, &mut watch, &mut around, &workspace.cancel)
    };
    let restored = |paths: &[String]| {
        // A configuration that was the agent's own has been read already.
        if paths.iter().any(|path| [SPEC_CONFIG, PROJECT_FILE].contains(&path.as_str())) {
            let why = anyhow!("the agent had changed the configuration, which was just restored");
            return Err(Failure::refused(why, "run it again: code-commit spec run --resume"));
        }
        let forgotten = project::forget_copies(&workspace.runs);
        Ok(forgotten.context("cannot remove what a killed run has left")?)
    };
    let repositories = workspace.repositories(workspace.never_copied());
    let output = workspace.host.output;
    let outcome = Work { past, repositories, words: &WORDS, output, restored: &restored }.run::<Specs, _>(
        world,
        Role::named,
        |harness| code_commit_loop_spec::spec(harness, inputs),
    )?;
    Ok((outcome, folder))
}

/// The newest run, if it can be gone on with.
pub(super) fn unfinished(workspace: &Workspace<'_>) -> Result<Option<(RunFolder, Begun)>, Failure> {
    let runs = project::runs(&workspace.runs);
    let newest = runs.into_iter().rev().find_map(|path| Some((path.clone(), begun(&path)?)));
    let Some((path, begun)) = newest else { return Ok(None) };
    let folder = RunFolder::open(path, workspace.redactor.clone());
    Ok(goes_on(outcome_of(&folder)?.as_ref()).then_some((folder, begun)))
}

/// Whether a run can be gone on with: one that was killed or interrupted, and one that ended because its agent could not be used.
pub(super) fn goes_on(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, None | Some(Outcome::ModelUnavailable { .. }))
}

/// What the run in a folder was begun with; none for an audit.
pub(super) fn begun(folder: &Path) -> Option<Begun> {
    serde_json::from_str(&std::fs::read_to_string(folder.join(RUN_JSON)).ok()?).ok()
}

/// Whether the verdict of a run is about this content of a file of the backlog, and about this tree.
pub(super) fn is_about(folder: &RunFolder, item: &Item, tree: Option<&str>) -> bool {
    let is_its_item = begun(folder.path()).is_some_and(|begun| begun.item.as_ref() == Some(item));
    let past = Past::read(folder.path()).unwrap_or_default();
    let judged = past.end().and_then(|(_, holds_for)| holds_for.tree.as_deref());
    is_its_item && tree.is_some() && judged == tree
}

#[cfg(test)]
mod tests {
    use code_commit_logging::Redactor;
    use code_commit_perform::Silent;

    use super::*;

    #[test]
    fn a_verdict_is_about_one_content_of_a_task_and_about_one_tree() {
        let base = tempfile::tempdir().unwrap();
        let item = |sha256: &str| Item { name: "a.md".to_owned(), sha256: sha256.to_owned() };
        let folder = RunFolder::create(base.path(), "run", Redactor::default()).unwrap();
        let begun = Begun {
            which: "spec".to_owned(),
            version: "1".to_owned(),
            inputs: Inputs::new("id", "do A"),
            limits: AgentLimits::default(),
            item: Some(item("one")),
            agent: AgentOptions::default(),
            key: None,
        };
        folder.store_json(RUN_JSON, &begun).unwrap();
        let mut silent = Silent;
        let mut record = Record::begin(folder.clone(), &mut silent).unwrap();
        assert!(!is_about(&folder, &item("one"), Some("tree")), "there is no verdict yet");
        let holds_for = HoldsFor { tree: Some("tree".to_owned()), ..HoldsFor::default() };
        record.note(&Note::Ended { outcome: Outcome::Done { rounds: 1 }, holds_for }).unwrap();
        assert!(is_about(&folder, &item("one"), Some("tree")));
        for (sha256, tree) in [("two", Some("tree")), ("one", Some("other")), ("one", None)] {
            assert!(!is_about(&folder, &item(sha256), tree), "{sha256} {tree:?}");
        }
    }
}
