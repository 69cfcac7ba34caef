//! What a run is to do: the content of `run.json`, and everything that `resume` needs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use code_commit_changes::{ChangeEngine, Scope};
use code_commit_engine::{Apply, Ask, Build, Commit, Harness, Outcome, Restore};
use code_commit_guard::Policy;
use code_commit_logging::RunFolder;
use code_commit_loop_commit::{Brief, Inputs, Limits, OnFailure, commit, committed, implement};
use code_commit_names::ours::AGENT_CONFIG;
use code_commit_names::{INPUTS, Writer};
use code_commit_repo::WorkTree;
use code_commit_select::{bytes, tokens};
use code_commit_settings::Settings;
use serde::{Deserialize, Serialize};

use super::task::Excerpt;
pub use super::task::{Task, form};
use crate::deciders;
use crate::estimate::room;
use crate::gitignore::AddedLine;
use crate::records;
use crate::registry::{Known, RUN_JSON};
use crate::rollup::Chosen;

/// What a run is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version that began the run.
    pub version: String,
    /// All settings from flags and configuration.
    pub settings: Settings,
    /// Where the query came from: a file's path, `-m` or standard input.
    #[serde(default)]
    pub query_from: Option<String>,
    /// The files that the model is shown and why, if a budget keeps the code roll-up small.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<Chosen>,
    /// Maximum number of model calls.
    pub rounds: u32,
    /// Whether a failed run restores the tree.
    pub restore_on_failure: bool,
    /// What no build may change, relative to the root: `build.sh` and the protected files that existed.
    pub sealed: Vec<PathBuf>,
    /// The supervisor's own name for this work: the finished run is answered from the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The message of the commit that is made once the run has passed, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The finished run that this one goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What the run has added to `.gitignore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_line: Option<AddedLine>,
    /// The commit that was checked out when the run began.
    pub head: Option<String>,
    /// The task.
    #[serde(flatten)]
    pub task: Task,
}

/// What a model may write in this project, by S1 and by the configuration.
pub fn policy(settings: &Settings, root: &Path, git: Option<&WorkTree>) -> Policy {
    and_deciders(Policy::commit(), settings, root, git)
}

fn and_deciders(
    policy: Policy,
    settings: &Settings,
    root: &Path,
    git: Option<&WorkTree>,
) -> Policy {
    let decided = deciders::find(root, git, settings)
        .into_iter()
        .fold(policy, |policy, decider| {
            policy.protect_as(&decider.what, [deciders::literally(&decider.path)])
        });
    let decided = settings
        .protect
        .iter()
        .fold(decided, |policy, list| policy.protect(&list.value));
    let graders: Vec<String> = deciders::graders(root, settings)
        .iter()
        .map(|path| deciders::literally(path))
        .collect();
    if settings.protect_grader.value {
        return decided.protect_as("the build names it, and protect_grader is set", graders);
    }
    decided.flag_as(
        "the build names it: it may decide whether the work is done",
        graders,
    )
}

/// What a run is asked for besides its settings: the texts, and what it may do. The roll-up may be newer.
type AsksFor<'p> = (&'p str, Option<&'p str>, u32, bool, Option<&'p str>);

impl Plan {
    pub(super) fn asks_for(&self) -> AsksFor<'_> {
        let (query, system) = match &self.task {
            Task::Commit { query, .. } => (query.text(), None),
            Task::Implement { system, query, .. } => (query.text(), Some(system.text())),
        };
        (
            query,
            system,
            self.rounds,
            self.restore_on_failure,
            self.commit.as_deref(),
        )
    }

    /// What it is asked for.
    pub(crate) fn query(&self) -> &str {
        self.asks_for().0
    }

    /// Runs the loop to its end, then commits.
    pub fn run<H>(&self, harness: &mut H) -> Result<Outcome, H::Stop>
    where
        H: Harness<Ask> + Harness<Apply> + Harness<Build> + Harness<Restore> + Harness<Commit>,
    {
        let outcome = self.rounds(harness)?;
        match &self.commit {
            Some(message) => committed(harness, outcome, message),
            None => Ok(outcome),
        }
    }

    fn rounds<H>(&self, harness: &mut H) -> Result<Outcome, H::Stop>
    where
        H: Harness<Ask> + Harness<Apply> + Harness<Build> + Harness<Restore>,
    {
        let on_failure = if self.restore_on_failure {
            OnFailure::Restore
        } else {
            OnFailure::Keep
        };
        let limits = Limits {
            rounds: self.rounds,
            build_output_bytes: self.build_output_bytes(),
            on_failure,
        };
        let text = |excerpt: &Excerpt| Arc::clone(&excerpt.text);
        match &self.task {
            Task::Commit {
                query,
                codebase,
                protected,
            } => {
                let (query, codebase) = (text(query), text(codebase));
                let inputs = Inputs {
                    query,
                    codebase,
                    protected: protected.clone(),
                    form: form(&self.settings),
                };
                commit(harness, &inputs, &limits)
            }
            Task::Implement {
                system,
                query,
                codebase,
            } => {
                let (system, query, codebase) = (text(system), text(query), text(codebase));
                implement(
                    harness,
                    &Brief {
                        system,
                        query,
                        codebase,
                    },
                    &limits,
                )
            }
        }
    }

    /// So much of a build's output that every prompt of the run fits its model. A repair shares the window with the files that were
    /// changed; the transcript of `implement` keeps the replies and outputs of all rounds.
    fn build_output_bytes(&self) -> usize {
        let rooms = self.settings.all_models().into_iter();
        let room = rooms.map(|model| room(model, &self.settings)).min();
        let free = room.map(|room| room.saturating_sub(tokens(self.first_prompt().len())));
        let parts = match self.task {
            Task::Commit { .. } => 2,
            Task::Implement { .. } => 2 * u64::from(self.rounds.max(1)),
        };
        let fits = free.map_or(usize::MAX, |free| bytes(free / parts));
        usize::try_from(self.settings.build_prompt.value).map_or(fits, |limit| fits.min(limit))
    }

    pub(crate) fn first_prompt(&self) -> String {
        match &self.task {
            Task::Commit {
                query,
                codebase,
                protected,
            } => {
                let (query, codebase) = (query.text(), codebase.text());
                code_commit_prompt::commit::initial(&code_commit_prompt::commit::Task {
                    query,
                    codebase,
                    protected,
                    form: form(&self.settings),
                })
                .text
            }
            Task::Implement {
                system,
                query,
                codebase,
            } => {
                let (system, query, codebase) = (system.text(), query.text(), codebase.text());
                code_commit_prompt::implement::initial(&code_commit_prompt::implement::Task {
                    system,
                    query,
                    codebase,
                })
                .text
            }
        }
    }

    pub(crate) fn policy(&self, tree: &WorkTree) -> Policy {
        let policy = match self.task {
            Task::Commit { .. } => Policy::commit(),
            Task::Implement { .. } => Policy::implement(),
        };
        self.protecting(policy, tree)
    }

    /// Also protects what decides whether the work is done, and the inputs of its own loop.
    fn protecting(&self, policy: Policy, tree: &WorkTree) -> Policy {
        let policy = and_deciders(policy, &self.settings, tree.root(), Some(tree));
        match self.task {
            Task::Commit { .. } => policy,
            Task::Implement { .. } => INPUTS.iter().fold(policy, |policy, input| {
                policy.protect_as(input.why, [input.pattern])
            }),
        }
    }

    /// What a build may change besides its products: not what decides whether the work is done, nor an input.
    /// Skips files that the harness writes.
    pub(crate) fn account(&self, tree: &WorkTree) -> ChangeEngine {
        let binds = self.task.binds();
        let may_write = self.settings.may_write.iter().map(|pattern| &pattern.value);
        let policy = self.protecting(Policy::build(binds).may_write(may_write), tree);
        let paths = |writer: Writer| {
            let rows =
                code_commit_names::protected(binds).filter(move |row| row.writer() == Some(writer));
            rows.filter(|row| row.is_folder() || row.writer() == Some(Writer::Harness))
                .map(|row| PathBuf::from(row.at_root()))
                .collect()
        };
        let scope = Scope {
            who: "the build".into(),
            may_change: policy,
            own: paths(Writer::Harness),
            products: paths(Writer::Build),
            ..Scope::default()
        };
        ChangeEngine::new(scope).of(tree)
    }

    /// What the harness itself writes into the tree.
    pub(crate) fn own_files(&self) -> Vec<String> {
        let rows = code_commit_names::protected(self.task.binds())
            .filter(|row| row.writer() == Some(Writer::Harness));
        rows.map(code_commit_names::Name::at_root)
            .chain([AGENT_CONFIG])
            .map(str::to_owned)
            .collect()
    }

    /// The plan of a run, with its inputs read from the first prompt. Refuses a plan that differs from the
    /// one the run began with.
    pub fn load(folder: &RunFolder, known: &Known) -> anyhow::Result<Self> {
        let name = records::name(folder.path());
        if !known.has_plan() {
            return Err(anyhow!(
                "{name} was made by code-commit apply, which asks no model"
            ));
        }
        let mut plan: Self = known.plan(folder)?;
        let first = plan.task.layout().query(1);
        let prompt = folder
            .read(&first)
            .with_context(|| format!("{name} was ended before it asked the model"))?;
        for excerpt in plan.task.excerpts_mut() {
            excerpt
                .fetch(&prompt)
                .ok_or_else(|| anyhow!("{first} of {name} is not the prompt of {RUN_JSON}"))?;
        }
        Ok(plan)
    }
}
