//! A project with phases: its folders, its specs, its progress.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use code_commit_apply::Lock;
use code_commit_engine::{Agents, Named as _};
use code_commit_loop_phase::state::{Stale, State, Status};
use code_commit_loop_phase::{FAILED_SPECS, Inputs, PhaseSpec, Role, RoleInputs, Start};
use code_commit_names::ours::{ABL, AGENT_CONFIG, PHASE_CONFIG, STATE};
use code_commit_repo::Git;
use code_commit_settings::Environment;
use code_commit_settings::keys::DOT_ENV;
use code_commit_settings::phase::Config;

use crate::exit::Failure;
use crate::host::Host;
use crate::lock;
use crate::phase::folders::{Folders, PROJECT, SPECS, read, refuse_links};
use crate::phase::{holds, past};
use crate::site::Site;
use crate::trusted::Trusted;

/// Folders for the roles' prompts; the first that exists is used.
const PROMPTS: [&str; 2] = ["prompts", ".abl/prompts"];

#[derive(Debug)]
pub(crate) struct Project {
    pub root: PathBuf,
    pub config: Config,
    /// Where the roles work.
    folders: Folders,
    pub specs: BTreeMap<u32, String>,
    /// The identity of the folder with them when they were read.
    specs_identity: Option<String>,
    /// The user's description of the project.
    pub(super) description: Option<String>,
    /// What makes the verifier.
    pub decider: String,
    /// The loop's progress, as stored.
    pub state: State,
    /// The source folder's repository.
    pub src_git: Git,
    pub tests_git: Git,
}

impl Project {
    /// Checks everything; creates the two folders and their repositories if missing. `root` has no symlinks.
    pub(crate) fn open(root: &Path, environment: &Environment) -> Result<Self, Failure> {
        let project = Self::look(root, environment)?;
        if project.src() == root {
            // Only existing folders can be hidden; otherwise a builder could write the verifier's prompt of
            // the next run.
            make_folder(&root.join(PROMPTS[0]))?;
        }
        // One in a parent folder does not count: neither role may see the other's history.
        for folder in [project.src(), project.tests()] {
            make_folder(folder)?;
            code_commit_repo::init(folder)?;
        }
        Ok(project)
    }

    /// Checks everything, and creates nothing.
    pub(crate) fn look(root: &Path, environment: &Environment) -> Result<Self, Failure> {
        if root.to_str().is_none() {
            let error = anyhow!(
                "{} is not UTF-8, and the roles are told of it",
                root.display()
            );
            return Err(Failure::refused(
                error,
                "move the project to a folder of another name",
            ));
        }
        refuse_links(root)?;
        let config =
            Config::parse(read(&root.join(PHASE_CONFIG))?.as_deref()).map_err(|message| {
                Failure::refused(anyhow!("{PHASE_CONFIG}: {message}"), "mend the file")
            })?;
        let folders = Folders::find(root, &config)?;
        // Before they are read: an edit in between is noticed later.
        let specs_identity = specs_identity(root);
        let specs = require_specs(root)?;
        let decider = holds::decider(role_prompt(root, Role::Verifier)?.as_deref(), &config);
        let state = match read(&root.join(ABL).join(code_commit_loop_phase::STATE))? {
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                let file = format!("{ABL}/{}", code_commit_loop_phase::STATE);
                Failure::refused(
                    anyhow!("{file}: {error}"),
                    format!("mend the file, or remove it: code-commit phase trust N adopts what the commits in {} say", config.src),
                )
            })?,
            None => State::default(),
        };
        let trusted = Trusted::find(root, environment)?.except([folders.src(), folders.tests()]);
        let (src_git, tests_git) = (trusted.git(folders.src())?, trusted.git(folders.tests())?);
        Ok(Self {
            root: root.to_owned(),
            config,
            folders,
            specs,
            specs_identity,
            description: read(&root.join(PROJECT))?,
            decider,
            state,
            src_git,
            tests_git,
        })
    }

    /// Opens the project and locks it: nobody else works on it while the lock lives.
    pub(crate) fn lock(root: &Path, host: Host<'_>) -> Result<(Lock, Self), Failure> {
        // This creates the repositories: if the root is one of them, the lock is in it.
        Self::open(root, host.environment)?;
        let lock = Site::at(root, host)?.lock()?;
        // Before anything is checked: an agent whose harness was killed may still be at work.
        lock::end_orphans(host);
        Ok((lock, Self::open(root, host.environment)?))
    }

    pub(crate) fn src(&self) -> &Path {
        self.folders.src()
    }

    pub(crate) fn tests(&self) -> &Path {
        self.folders.tests()
    }

    /// Whether a commit says that a phase has passed.
    pub(crate) fn is_committed_as_passed(&self, phase: u32) -> Result<bool, Failure> {
        // A message ends with a newline, which `$` does not match.
        let commit = self
            .src_git
            .commit_of(&format!("HEAD^{{/^phase{phase}/passed[[:space:]]}}"));
        let commit = commit.context("cannot look at the commits of the source folder")?;
        Ok(commit.is_some())
    }

    /// The open phase, the first that has not passed, or the last one if source or tests have changed since; `None` if
    /// all have passed.
    pub(crate) fn next_phase(&self) -> Result<Option<u32>, Failure> {
        let open = self
            .state
            .current
            .phase
            .filter(|phase| self.specs.contains_key(phase));
        let mut phases = open.into_iter().chain(self.specs.keys().copied());
        if let Some(next) = phases.find(|phase| !self.has_passed(*phase)) {
            return Ok(Some(next));
        }
        let Some(last) = self.specs.keys().last().copied() else {
            return Ok(None);
        };
        Ok(self.moved_on(last)?.map(|_| last))
    }

    /// The loop's inputs. `builder` and `verifier` are the models that will really be called.
    pub(crate) fn inputs(
        &self,
        phase: u32,
        builder: &str,
        verifier: &str,
    ) -> Result<Inputs, Failure> {
        if self
            .specs
            .get(&phase)
            .is_none_or(|text| code_commit_loop_phase::spec::title(text, phase).is_none())
        {
            let message = anyhow!(
                "the first line of {SPECS}/phase{phase}.md is not `# Phase {phase}: Title`"
            );
            return Err(Failure::refused(
                message,
                "code-commit phase check names every fault of the specs",
            ));
        }
        let config = &self.config;
        let role = |who: Role,
                    folder: &Path,
                    commands: &BTreeMap<String, code_commit_settings::phase::Entry>,
                    model: &str| {
            let commands = commands
                .iter()
                .map(|(name, entry)| (name.clone(), entry.description.clone()))
                .collect();
            Ok::<_, Failure>(RoleInputs {
                prompt: role_prompt(&self.root, who)?
                    .as_deref()
                    .unwrap_or(built_in(who))
                    .into(),
                workspace: folder.display().to_string(),
                commands,
                model: model.to_owned(),
            })
        };
        Ok(Inputs {
            phase,
            project: self.description.as_deref().map(Into::into),
            builder: role(Role::Builder, self.src(), &config.builder_commands, builder)?,
            verifier: role(
                Role::Verifier,
                self.tests(),
                &config.verifier_commands,
                verifier,
            )?,
            iterations: config.iterations,
            start: self.start(phase)?,
        })
    }

    /// Where a phase begins that has no journal to resume from.
    fn start(&self, phase: u32) -> Result<Start, Failure> {
        // One that is no text file is removed before the verifier's turn.
        let failures = read(&self.tests().join(FAILED_SPECS)).unwrap_or(None);
        let failures = failures.filter(|text| code_commit_loop_phase::failed::is_failure(text));
        let current = &self.state.current;
        let is_open = current.phase == Some(phase);
        let (iteration, builder_done) = match current.status {
            // Nothing that the builder works by has changed, so only the verifier has to look again.
            _ if self.stale(phase) == Some(Stale::Decider) || self.moved_on(phase)?.is_some() => {
                (1, true)
            }
            Status::Building if is_open => (current.verifier_iteration, current.builder_done),
            Status::Verifying if is_open => (current.verifier_iteration, true),
            Status::ContractsFailed if is_open => (current.verifier_iteration + 1, false),
            // All iterations are available again.
            Status::Clean
            | Status::Building
            | Status::Verifying
            | Status::ContractsFailed
            | Status::Stuck
            | Status::Completed => (1, false),
        };
        let last = past::specs_of_last_run(&self.root.join(ABL).join(past::LOGS), phase);
        let are_same = last
            .range(..=phase)
            .all(|(number, text)| self.specs.get(number).is_none_or(|now| now == text));
        Ok(Start {
            iteration: iteration.clamp(1, self.config.iterations),
            // What was built was built for other specs.
            builder_done: builder_done && are_same,
            failures: failures.filter(|_| are_same),
            specs: self
                .specs
                .iter()
                .map(|(number, text)| self.spec(*number, text, phase))
                .collect(),
            specs_identity: self.specs_identity.clone(),
            passes: self.state.passes.clone(),
            decider: self.decider.clone(),
            tests: self.state.tests.clone(),
            builder: Agents::default(),
            verifier: Agents::default(),
        })
    }

    fn spec(&self, number: u32, text: &str, open: u32) -> PhaseSpec {
        let title = code_commit_loop_phase::spec::title(text, number)
            .unwrap_or_default()
            .to_owned();
        PhaseSpec {
            number,
            title,
            text: text.to_owned(),
            completed: number != open && self.has_passed(number),
        }
    }

    /// What does not count when tests are identified.
    pub(crate) fn no_tests(&self) -> Vec<String> {
        let reports = code_commit_loop_phase::reports(Role::Verifier.name());
        self.never_committed(self.tests())
            .into_iter()
            .chain([reports])
            .collect()
    }

    /// If a role's folder is the root itself, other files stay out of its commits.
    pub(crate) fn never_committed(&self, top: &Path) -> Vec<String> {
        let names = [DOT_ENV, ABL, AGENT_CONFIG, STATE].map(|name| self.root.join(name));
        let inside = names
            .into_iter()
            .chain([self.tests(), self.src()].map(Path::to_owned));
        inside
            .filter(|path| path != top)
            .filter_map(|path| {
                path.strip_prefix(top)
                    .ok()
                    .map(|path| path.display().to_string())
            })
            .collect()
    }
}

fn role_prompt(root: &Path, role: Role) -> Result<Option<String>, Failure> {
    for folder in PROMPTS {
        if let Some(text) = read(&root.join(folder).join(format!("{}.md", role.name())))? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

fn built_in(role: Role) -> &'static str {
    match role {
        Role::Builder => code_commit_prompt::phase::BUILDER,
        Role::Verifier => code_commit_prompt::phase::VERIFIER,
    }
}

/// As the loop asks for it later.
fn specs_identity(root: &Path) -> Option<String> {
    code_commit_repo::stable_hash(&root.join(SPECS), code_commit_dir::NEVER).ok()
}

/// The specs by phase; refuses a project without any.
fn require_specs(root: &Path) -> Result<BTreeMap<u32, String>, Failure> {
    let specs = specs(root)?;
    if specs.is_empty() {
        return Err(Failure::refused(
            anyhow!("there is no spec, {SPECS}/phase1.md"),
            "code-commit phase init makes what a project needs",
        ));
    }
    Ok(specs)
}

/// The specs by phase.
pub fn specs(root: &Path) -> Result<BTreeMap<u32, String>, Failure> {
    let folder = root.join(SPECS);
    let Ok(entries) = code_commit_dir::list(&folder) else {
        return Ok(BTreeMap::new());
    };
    let mut specs = BTreeMap::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
        if let Some(number) = entry
            .file_name()
            .to_str()
            .and_then(code_commit_loop_phase::spec::number)
            && let Some(text) = read(&entry.path())?
        {
            specs.insert(number, text);
        }
    }
    Ok(specs)
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    let made =
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()));
    made.map_err(Failure::cannot_make)
}
