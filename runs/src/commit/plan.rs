//! What a run is to do: the content of `run.json`, and everything that `resume` needs.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use code_commit_changes::{ChangeEngine, Scope};
use code_commit_engine::{Apply, Ask, Build, Commit, Harness, Outcome, Restore};
use code_commit_guard::Policy;
use code_commit_logging::{Layout, RunFolder};
use code_commit_loop_commit::{
    Brief, COMMIT_ROUNDS, IMPLEMENT_ROUNDS, Inputs, Limits, OnFailure, commit, committed, implement,
};
use code_commit_names::ours::{AGENT_CONFIG, USER_OUTPUT};
use code_commit_names::{Binds, INPUTS, Writer};
use code_commit_prompt::edits::Form;
use code_commit_prompt::rollup::is_partial;
use code_commit_prompt::select::{bytes, tokens};
use code_commit_prompt::{commit as commit_prompt, implement as implement_prompt};
use code_commit_repo::WorkTree;
use code_commit_settings::Settings;
use serde::{Deserialize, Serialize};

use crate::deciders;
use crate::estimate::{First, room};
use crate::exit::Failure;
use crate::gitignore::AddedLine;
use crate::records;
use crate::registry::{Known, RUN_JSON};
use crate::rollup::Chosen;
use crate::rollup::window::DEFAULT_BUDGET;

/// Which of the two commit loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// S1.
    Commit,
    /// S0.
    Implement,
}

impl Which {
    /// Its name, as `loop` of `run.json`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Implement => "implement",
        }
    }

    /// The names of a round's files.
    pub(crate) fn layout(self) -> Layout {
        match self {
            Self::Commit => Layout::NumberFirst,
            Self::Implement => Layout::QueryFirst,
        }
    }

    /// Where its runs are kept.
    pub(super) fn logs(self, root: &Path) -> PathBuf {
        match self {
            Self::Commit => records::logs(root),
            Self::Implement => records::implement_logs(root),
        }
    }

    /// A run folder's name without its number.
    pub(super) fn folder_name(self, stamp: &str) -> String {
        match self {
            Self::Commit => format!("{stamp}-commit"),
            Self::Implement => stamp.to_owned(),
        }
    }

    /// Which protected names apply to it.
    pub(crate) fn binds(self) -> Binds {
        match self {
            Self::Commit => Binds::Commit,
            Self::Implement => Binds::Implement,
        }
    }

    /// Where the model's messages to the user are kept, besides the terminal (S0 §Implementation Details).
    pub(crate) fn said_log(self, root: &Path) -> Option<PathBuf> {
        (self == Self::Implement).then(|| root.join(USER_OUTPUT))
    }
}

/// The form in which a model may give its changes.
fn form(settings: &Settings) -> Form {
    if settings.edits() {
        Form::Edits
    } else {
        Form::Files
    }
}

/// The loop and its inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The loop.
    #[serde(rename = "loop", skip_serializing)]
    pub which: Which,
    /// `gemini-system-prompt.txt`, in `implement` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Excerpt>,
    /// What the user asks for.
    pub query: Excerpt,
    /// `codeRollup.txt`.
    pub codebase: Excerpt,
    /// The paths that the model of the default loop is told it may not write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<String>,
}

/// A text that is part of the first prompt, so that the record need not store it twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Excerpt {
    start: usize,
    end: usize,
    #[serde(skip)]
    pub text: Arc<str>,
}

impl Excerpt {
    fn new(place: Range<usize>, text: String) -> Self {
        Self {
            start: place.start,
            end: place.end,
            text: text.into(),
        }
    }

    /// Where it is in the first prompt.
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

impl Task {
    /// The default loop with these inputs.
    pub(crate) fn commit(
        query: String,
        codebase: String,
        protected: Vec<String>,
        settings: &Settings,
    ) -> Self {
        let places = commit_prompt::initial(&commit_prompt::Task {
            query: &query,
            codebase: &codebase,
            protected: &protected,
            form: form(settings),
        });
        Self {
            which: Which::Commit,
            system: None,
            query: Excerpt::new(places.query, query),
            codebase: Excerpt::new(places.codebase, codebase),
            protected,
        }
    }

    /// The first loop with these inputs.
    pub(super) fn implement(system: String, query: String, codebase: String) -> Self {
        let places = implement_prompt::initial(&implement_prompt::Task {
            system: &system,
            query: &query,
            codebase: &codebase,
        });
        Self {
            which: Which::Implement,
            system: Some(Excerpt::new(places.system, system)),
            query: Excerpt::new(places.query, query),
            codebase: Excerpt::new(places.codebase, codebase),
            protected: Vec::new(),
        }
    }
}

/// What a run is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
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
    pub(crate) task: Task,
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
        .protect_lists()
        .iter()
        .fold(decided, Policy::protect);
    let graders: Vec<String> = deciders::graders(root, settings)
        .iter()
        .map(|path| deciders::literally(path))
        .collect();
    if settings.protect_grader() {
        return decided.protect_as("the build names it, and protect_grader is set", graders);
    }
    decided.flag_as(
        "the build names it: it may decide whether the work is done",
        graders,
    )
}

impl Plan {
    /// A run of this task under these settings.
    pub(crate) fn new(settings: Settings, tree: &WorkTree, task: Task) -> Result<Self, Failure> {
        let most = match task.which {
            Which::Commit => COMMIT_ROUNDS,
            Which::Implement => IMPLEMENT_ROUNDS,
        };
        Ok(Self {
            rounds: settings.rounds(most),
            query_from: None,
            chosen: Vec::new(),
            restore_on_failure: false,
            key: None,
            commit: None,
            parent: None,
            added_line: None,
            sealed: sealed(&settings, tree, task.which.binds()),
            head: tree.head()?,
            task,
            settings,
        })
    }

    /// Whether both ask for the same, besides their settings. The roll-up may be newer.
    pub(super) fn asks_for_the_same(&self, other: &Self) -> bool {
        let (task, of) = (&self.task, &other.task);
        let system = task.system.as_ref().map(|system| &system.text);
        task.query.text == of.query.text
            && system == of.system.as_ref().map(|system| &system.text)
            && self.rounds == other.rounds
            && self.restore_on_failure == other.restore_on_failure
            && self.commit == other.commit
    }

    /// Runs the loop to its end, then commits.
    pub(super) fn run<H>(&self, harness: &mut H) -> Result<Outcome, H::Stop>
    where
        H: Harness<Ask> + Harness<Apply> + Harness<Build> + Harness<Restore> + Harness<Commit>,
    {
        let limits = Limits {
            rounds: self.rounds,
            build_output_bytes: self.build_output_bytes(),
            on_failure: if self.restore_on_failure {
                OnFailure::Restore
            } else {
                OnFailure::Keep
            },
        };
        let task = &self.task;
        let query = Arc::clone(&task.query.text);
        let codebase = Arc::clone(&task.codebase.text);
        let outcome = if let Some(system) = &task.system {
            let system = Arc::clone(&system.text);
            let brief = Brief {
                system,
                query,
                codebase,
            };
            implement(harness, &brief, &limits)?
        } else {
            let inputs = Inputs {
                query,
                codebase,
                protected: task.protected.clone(),
                form: form(&self.settings),
                need_bytes: self.need_bytes(),
            };
            commit(harness, &inputs, &limits)?
        };
        match &self.commit {
            Some(message) => committed(harness, outcome, message),
            None => Ok(outcome),
        }
    }

    /// So much of a build's output that every prompt of the run fits its model. A repair shares the window with the files that were
    /// changed; the transcript of `implement` keeps the replies and outputs of all rounds.
    fn build_output_bytes(&self) -> usize {
        let parts = match self.task.which {
            Which::Commit => 2,
            Which::Implement => 2 * self.rounds.max(1) as usize,
        };
        let fits = self.free_bytes().map_or(usize::MAX, |free| free / parts);
        usize::try_from(self.settings.build_prompt()).map_or(fits, |limit| fits.min(limit))
    }

    /// What the smallest window has left beside the first prompt.
    fn free_bytes(&self) -> Option<usize> {
        let rooms = self.settings.all_models().into_iter();
        let room = rooms.map(|model| room(&model, &self.settings)).min()?;
        Some(bytes(
            room.saturating_sub(tokens(self.first_prompt().len())),
        ))
    }

    /// Bytes of the files that the model may ask for, where it was not shown all of them: what it is shown by default, if its window
    /// has room.
    fn need_bytes(&self) -> u64 {
        if !is_partial(&self.task.codebase.text) {
            return 0;
        }
        let most = bytes(DEFAULT_BUDGET);
        let fits = self.free_bytes().map_or(most, |free| most.min(free / 2));
        fits as u64
    }

    pub(super) fn first_prompt(&self) -> String {
        let task = &self.task;
        let (query, codebase) = (&*task.query.text, &*task.codebase.text);
        match &task.system {
            None => {
                commit_prompt::initial(&commit_prompt::Task {
                    query,
                    codebase,
                    protected: &task.protected,
                    form: form(&self.settings),
                })
                .text
            }
            Some(system) => {
                implement_prompt::initial(&implement_prompt::Task {
                    system: &system.text,
                    query,
                    codebase,
                })
                .text
            }
        }
    }

    /// What the first prompt is made of.
    pub(super) fn first(&self) -> First<'_> {
        let files = code_commit_prompt::rollup::files(&self.task.codebase.text);
        First {
            prompt: self.first_prompt(),
            schema: None,
            files: files.map(|(path, content)| (path, content.len())).collect(),
            remedy: "show the model less, with --budget TOKENS or --exclude PATTERN of code-commit rollup",
        }
    }

    pub(crate) fn policy(&self, tree: &WorkTree) -> Policy {
        let policy = match self.task.which {
            Which::Commit => Policy::commit(),
            Which::Implement => Policy::implement(),
        };
        self.protecting(policy, tree)
    }

    /// Also protects what decides whether the work is done, and the inputs of its own loop.
    fn protecting(&self, policy: Policy, tree: &WorkTree) -> Policy {
        let policy = and_deciders(policy, &self.settings, tree.root(), Some(tree));
        match self.task.which {
            Which::Commit => policy,
            Which::Implement => INPUTS.iter().fold(policy, |policy, input| {
                policy.protect_as(input.why, [input.pattern])
            }),
        }
    }

    /// What a build may change besides its products: not what decides whether the work is done, nor an input.
    /// Skips files that the harness writes.
    pub(crate) fn account(&self, tree: &WorkTree) -> ChangeEngine {
        let binds = self.task.which.binds();
        let may_write = self
            .settings
            .build
            .may_write
            .iter()
            .map(|pattern| &pattern.0);
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
        let rows = code_commit_names::protected(self.task.which.binds())
            .filter(|row| row.writer() == Some(Writer::Harness));
        rows.map(code_commit_names::Name::at_root)
            .chain([AGENT_CONFIG])
            .map(str::to_owned)
            .collect()
    }

    /// The plan of a run, with its inputs read from the first prompt. Refuses a plan that differs from the
    /// one the run began with.
    pub(crate) fn load(folder: &RunFolder, known: &Known) -> anyhow::Result<Self> {
        let name = records::name(folder.path());
        if !known.has_plan() {
            return Err(anyhow!(
                "{name} was made by code-commit apply, which asks no model"
            ));
        }
        let mut plan: Self = known.plan(folder)?;
        let first = plan.task.which.layout().query(1);
        let prompt = folder
            .read(&first)
            .with_context(|| format!("{name} was ended before it asked the model"))?;
        let task = &mut plan.task;
        for excerpt in [&mut task.query, &mut task.codebase]
            .into_iter()
            .chain(&mut task.system)
        {
            let text = prompt.get(excerpt.range());
            excerpt.text = text
                .ok_or_else(|| anyhow!("{first} of {name} is not the prompt of {RUN_JSON}"))?
                .into();
        }
        Ok(plan)
    }
}

/// The build script and what else no build may write (S1 §Safety), whether it exists or not, whatever the
/// configuration protects.
fn sealed(settings: &Settings, tree: &WorkTree, binds: Binds) -> Vec<PathBuf> {
    let files = code_commit_names::protected(binds)
        .filter(|row| !row.is_folder() && row.writer() != Some(Writer::Build));
    let mut sealed: Vec<PathBuf> = files.map(|row| PathBuf::from(row.at_root())).collect();
    let deciders = deciders::find(tree.root(), Some(tree), settings);
    let deciders = deciders.into_iter().filter(|decider| !decider.is_builds);
    for path in deciders.map(|decider| PathBuf::from(decider.path)) {
        if !sealed.contains(&path) {
            sealed.push(path);
        }
    }
    sealed
}
