//! A project with phases: its folders, its specs, its progress, and which phases have passed: what a verdict was given
//! for, and what is there now. A commit that says so proves nothing: anyone may have made it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use code_commit_apply::Lock;
use code_commit_engine::{Agents, HoldsFor, Named as _};
use code_commit_logging::{Stamp, sha256_hex};
use code_commit_loop_phase::state::{Stale, State, Status};
use code_commit_loop_phase::{
    FAILED_SPECS, Inputs, PhaseSpec, Role, RoleInputs, Start, specs_sha256,
};
use code_commit_names::ours::{ABL, AGENT_CONFIG, PHASE_CONFIG, STATE};
use code_commit_repo::Git;
use code_commit_report::Output;
use code_commit_settings::Environment;
use code_commit_settings::keys::DOT_ENV;
use code_commit_settings::phase::{Config, Entry};

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::lock;
use crate::phase::folders::{Folders, PROJECT, SPECS, read, refuse_links};
use crate::project::Project;
use crate::trusted::Trusted;

/// Folders for the roles' prompts; the first that exists is used.
const PROMPTS: [&str; 2] = ["prompts", ".abl/prompts"];

#[derive(Debug)]
pub(crate) struct PhaseProject {
    pub(super) root: PathBuf,
    pub(super) config: Config,
    pub(super) specs: BTreeMap<u32, String>,
    /// The identity of the folder with them when they were read.
    specs_identity: Option<String>,
    /// The user's description of the project.
    pub(super) description: Option<String>,
    /// What makes the verifier.
    pub(super) decider: String,
    /// The loop's progress, as stored.
    pub(super) state: State,
    /// The source folder's repository.
    pub(super) src_git: Git,
    pub(super) tests_git: Git,
}

impl PhaseProject {
    /// Checks everything; creates the two folders and their repositories if missing. `root` has no symlinks.
    fn open(root: &Path, environment: &Environment) -> Result<Self, Failure> {
        let project = Self::look(root, environment)?;
        let make = |folder: &Path| {
            let made = fs::create_dir_all(folder);
            made.with_context(|| format!("cannot make {}", folder.display()))
                .map_err(Failure::cannot_make)
        };
        if project.src() == root {
            // Only existing folders can be hidden; otherwise a builder could write the verifier's prompt of
            // the next run.
            make(&root.join(PROMPTS[0]))?;
        }
        // One in a parent folder does not count: neither role may see the other's history.
        for git in [&project.src_git, &project.tests_git] {
            make(git.folder())?;
            git.init()?;
        }
        Ok(project)
    }

    /// Checks everything, and creates nothing.
    pub(super) fn look(root: &Path, environment: &Environment) -> Result<Self, Failure> {
        if root.to_str().is_none() {
            let root = root.display();
            return Err(Failure::refused(
                anyhow!("{root} is not UTF-8, and the roles are told of it"),
                "move the project to a folder of another name",
            ));
        }
        refuse_links(root)?;
        let config = config(root)?;
        let Folders { src, tests } = Folders::find(root, &config)?;
        // Before they are read: an edit in between is noticed later. As the loop asks for it later.
        let specs_identity =
            code_commit_repo::stable_hash(&root.join(SPECS), code_commit_dir::NEVER).ok();
        let specs = specs(root)?;
        if specs.is_empty() {
            return Err(Failure::refused(
                anyhow!("there is no spec, {SPECS}/phase1.md"),
                "code-commit phase init makes what a project needs",
            ));
        }
        let decider = decider(role_prompt(root, Role::Verifier)?.as_deref(), &config);
        let state = read_state(root).map_err(|error| {
            let src = &config.src;
            let help = format!("fix the file, or remove it: code-commit phase trust N adopts what the commits in {src} say");
            Failure::refused(error, help)
        })?;
        let trusted = Trusted::find(root, environment)?.except([&*src, &*tests]);
        Ok(Self {
            root: root.to_owned(),
            specs,
            specs_identity,
            description: read(&root.join(PROJECT))?,
            decider,
            state,
            src_git: trusted.git(src)?,
            tests_git: trusted.git(tests)?,
            config,
        })
    }

    /// Opens the project and locks it: nobody else works on it while the lock lives.
    pub(super) fn lock(root: &Path, host: Host<'_>) -> Result<(Lock, Self), Failure> {
        // This creates the repositories: if the root is one of them, the lock is in it.
        Self::open(root, host.environment)?;
        let lock = Project::at(root, host)?.lock()?;
        // Before anything is checked: an agent whose harness was killed may still be at work.
        lock::end_orphans(host);
        Ok((lock, Self::open(root, host.environment)?))
    }

    /// The repository that a role works in.
    pub(super) fn git(&self, role: Role) -> &Git {
        match role {
            Role::Builder => &self.src_git,
            Role::Verifier => &self.tests_git,
        }
    }

    pub(super) fn src(&self) -> &Path {
        self.src_git.folder()
    }

    pub(super) fn tests(&self) -> &Path {
        self.tests_git.folder()
    }

    /// Where a role works.
    pub(super) fn folder(&self, role: Role) -> &Path {
        self.git(role).folder()
    }

    /// Where the other role works.
    pub(super) fn other(&self, role: Role) -> &Path {
        match role {
            Role::Builder => self.tests(),
            Role::Verifier => self.src(),
        }
    }

    /// What `abl-cmd` runs for a role.
    pub(super) fn commands(&self, role: Role) -> &BTreeMap<String, Entry> {
        match role {
            Role::Builder => &self.config.builder_commands,
            Role::Verifier => &self.config.verifier_commands,
        }
    }

    /// Whether a commit says that a phase has passed.
    pub(super) fn is_committed_as_passed(&self, phase: u32) -> Result<bool, Failure> {
        // A message ends with a newline, which `$` does not match.
        let message = format!("HEAD^{{/^phase{phase}/passed[[:space:]]}}");
        let commit = self.src_git.commit_of(&message);
        let commit = commit.context("cannot look at the commits of the source folder")?;
        Ok(commit.is_some())
    }

    /// The loop's inputs, but for the models.
    pub(super) fn inputs(&self, phase: u32) -> Result<Inputs, Failure> {
        let spec = self.specs.get(&phase);
        if spec
            .and_then(|text| code_commit_loop_phase::spec::title(text, phase))
            .is_none()
        {
            return Err(Failure::refused(
                anyhow!(
                    "the first line of {SPECS}/phase{phase}.md is not `# Phase {phase}: Title`"
                ),
                "code-commit phase check names every fault of the specs",
            ));
        }
        Ok(Inputs {
            phase,
            project: self.description.as_deref().map(Into::into),
            builder: self.role_inputs(Role::Builder)?,
            verifier: self.role_inputs(Role::Verifier)?,
            iterations: self.config.iterations,
            start: self.start(phase)?,
        })
    }

    fn role_inputs(&self, role: Role) -> Result<RoleInputs, Failure> {
        let built_in = match role {
            Role::Builder => code_commit_prompt::phase::BUILDER,
            Role::Verifier => code_commit_prompt::phase::VERIFIER,
        };
        let prompt = role_prompt(&self.root, role)?;
        let commands = self.commands(role).iter();
        Ok(RoleInputs {
            prompt: prompt.as_deref().unwrap_or(built_in).into(),
            workspace: self.folder(role).display().to_string(),
            commands: commands
                .map(|(name, entry)| (name.clone(), entry.description.clone()))
                .collect(),
            model: String::new(),
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
            _ if !matches!(self.why_stale(phase)?, None | Some(Stale::Specs)) => (1, true),
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
        // What was built for other specs was not built.
        let now = specs_sha256(self.specs(), None, phase);
        let are_same = !is_open || current.specs.as_ref().is_none_or(|then| *then == now);
        Ok(Start {
            iteration: iteration.clamp(1, self.config.iterations),
            builder_done: builder_done && are_same,
            failures: failures.filter(|_| are_same),
            specs: self
                .specs()
                .map(|(number, text)| PhaseSpec {
                    number,
                    title: code_commit_loop_phase::spec::title(text, number)
                        .unwrap_or_default()
                        .to_owned(),
                    text: text.to_owned(),
                    completed: number != phase && self.has_passed(number),
                })
                .collect(),
            specs_identity: self.specs_identity.clone(),
            passes: self.state.passes.clone(),
            decider: self.decider.clone(),
            tests: self.state.tests.clone(),
            builder: Agents::default(),
            verifier: Agents::default(),
        })
    }

    /// By number.
    pub(super) fn specs(&self) -> impl Iterator<Item = (u32, &str)> {
        let specs = self.specs.iter();
        specs.map(|(number, text)| (*number, text.as_str()))
    }

    /// What does not count when tests are identified.
    pub(super) fn no_tests(&self) -> Vec<String> {
        let mut names = self.never_committed(self.tests());
        names.push(code_commit_loop_phase::reports(Role::Verifier.name()));
        names
    }

    /// If a role's folder is the root itself, other files stay out of its commits.
    pub(super) fn never_committed(&self, top: &Path) -> Vec<String> {
        let names = [DOT_ENV, ABL, AGENT_CONFIG, STATE].map(|name| self.root.join(name));
        let folders = [self.tests(), self.src()].map(Path::to_owned);
        let inside = names.iter().chain(&folders).filter(|path| *path != top);
        inside
            .filter_map(|path| path.strip_prefix(top).ok())
            .map(|path| path.display().to_string())
            .collect()
    }

    /// Whether a phase has passed, for the specs and by the verifier of now.
    fn has_passed(&self, phase: u32) -> bool {
        self.state.has_passed(phase, &self.now(phase))
    }

    /// Why the pass of a phase does not hold any more; `None` also if it has not passed. Source and tests count only for
    /// one that has passed for the specs and by the verifier of now.
    fn why_stale(&self, phase: u32) -> Result<Option<Stale>, Failure> {
        if !self.has_passed(phase) {
            return Ok(self.state.stale(phase, &self.now(phase)));
        }
        let (source, tests) = (self.source()?, self.deciding_tests()?);
        let (source, tests) = (source.as_deref(), tests.as_deref());
        Ok(self.state.moved_on(phase, source, tests))
    }

    /// Whether the phase is stuck, and everything is as it was then: asking again could only cost.
    pub(super) fn is_stuck(&self, phase: u32) -> Result<bool, Failure> {
        let current = &self.state.current;
        let is_noted = current.phase == Some(phase) && current.status == Status::Stuck;
        let Some(then) = self.state.stuck_on.as_ref().filter(|_| is_noted) else {
            return Ok(false);
        };
        let mut now = self.holds_for(phase, None);
        now.tree = self.source()?;
        Ok(*then == now)
    }

    /// Whether its pass holds for everything that is there now.
    fn holds(&self, phase: u32) -> Result<bool, Failure> {
        Ok(self.has_passed(phase) && self.why_stale(phase)?.is_none())
    }

    /// The phase to work on: the one that is asked for, else the open one, the first that has not passed, or the last
    /// one. `None` if its pass holds.
    pub(super) fn next_phase(&self, asked: Option<u32>) -> Result<Option<u32>, Failure> {
        let open = || {
            let open = self.state.current.phase;
            let open = open.filter(|phase| self.specs.contains_key(phase));
            let mut phases = open.into_iter().chain(self.specs.keys().copied());
            phases.find(|phase| !self.has_passed(*phase))
        };
        let Some(phase) = asked.or_else(open).or(self.last_phase()) else {
            return Ok(None);
        };
        if !self.specs.contains_key(&phase) {
            return Err(no_spec(phase));
        }
        Ok((!self.holds(phase)?).then_some(phase))
    }

    pub(super) fn last_phase(&self) -> Option<u32> {
        self.specs.keys().last().copied()
    }

    /// Says which passes do not hold any more, and why.
    pub(super) fn say_stale(&self, asked: Option<u32>, output: &Output) -> Result<(), Failure> {
        let last = asked.or(self.last_phase());
        for phase in self.specs.keys().copied() {
            // Later phases change source and tests.
            let why = if Some(phase) == last {
                self.why_stale(phase)?
            } else {
                self.state.stale(phase, &self.now(phase))
            };
            let why = match why {
                None => continue,
                Some(Stale::Specs) => {
                    "for other specs than there are now, or another project.md: it is open again"
                }
                Some(Stale::Decider) => {
                    "by a verifier with another prompt or other commands: it is verified again"
                }
                Some(Stale::Source) => "for another source than there is now: it is verified again",
                Some(Stale::Tests) => "by other tests than there are now: it is verified again",
            };
            output.warn(&format!("phase {phase} passed {why}"));
        }
        Ok(())
    }

    /// What a pass of this phase would hold for now, without the source.
    fn now(&self, phase: u32) -> HoldsFor {
        self.holds_for(phase, self.state.tests.get(&phase).map(String::as_str))
    }

    fn holds_for(&self, phase: u32, tests: Option<&str>) -> HoldsFor {
        let project = self.description.as_deref();
        HoldsFor {
            tree: None,
            specification: Some(specs_sha256(self.specs(), project, phase)),
            decider: Some(code_commit_loop_phase::decider(&self.decider, tests)),
        }
    }

    /// The identity of the tests, without the reports on them.
    fn deciding_tests(&self) -> Result<Option<String>, Failure> {
        identity(self.tests(), &self.no_tests())
    }

    /// The identity of the source.
    fn source(&self) -> Result<Option<String>, Failure> {
        identity(self.src(), &self.never_committed(self.src()))
    }
}

fn role_prompt(root: &Path, role: Role) -> Result<Option<String>, Failure> {
    let file = format!("{}.md", role.name());
    let folders = PROMPTS.iter().map(|folder| root.join(folder));
    let mut texts = folders.map(|folder| read(&folder.join(&file)));
    texts.find_map(Result::transpose).transpose()
}

/// The file with the progress.
pub(super) fn state_file(root: &Path) -> PathBuf {
    root.join(ABL).join(code_commit_loop_phase::STATE)
}

/// As stored; nothing has begun if there is no file.
pub(super) fn read_state(root: &Path) -> anyhow::Result<State> {
    let text = read(&state_file(root)).map_err(|failure| failure.error)?;
    text.map_or(Ok(State::default()), |text| {
        let name = format!("{ABL}/{}", code_commit_loop_phase::STATE);
        serde_json::from_str(&text).map_err(|error| anyhow!("{name}: {error}"))
    })
}

/// The configuration, which `phase check` reads, too.
pub fn config(root: &Path) -> Result<Config, Failure> {
    let text = read(&root.join(PHASE_CONFIG))?;
    Config::parse(text.as_deref())
        .map_err(|message| Failure::refused(anyhow!("{PHASE_CONFIG}: {message}"), "fix the file"))
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
        let name = entry.file_name();
        let number = name.to_str().and_then(code_commit_loop_phase::spec::number);
        if let Some(number) = number
            && let Some(text) = read(&entry.path())?
        {
            specs.insert(number, text);
        }
    }
    Ok(specs)
}

fn identity(folder: &Path, without: &[String]) -> Result<Option<String>, Failure> {
    let identity =
        code_commit_perform::identity(folder, None, without, None, code_commit_dir::NEVER);
    Ok(identity.with_context(|| format!("cannot read {}", folder.display()))?)
}

fn no_spec(phase: u32) -> Failure {
    let error = anyhow!("there is no {SPECS}/phase{phase}.md");
    Failure::refused(error, "write the spec of that phase")
}

/// What makes the verifier: its prompt, unless that is the built-in one, and its commands.
pub(super) fn decider(prompt: Option<&str>, config: &Config) -> String {
    let commands = serde_json::to_string(&config.verifier_commands).unwrap_or_default();
    sha256_hex(format!("{}\0{commands}", prompt.unwrap_or_default()).as_bytes())
}

/// What the end of a phase holds for, as the loop has just noted it.
pub(super) fn at_end(root: &Path, phase: u32) -> HoldsFor {
    let state = read_state(root).unwrap_or_default();
    let noted = match state.current.status {
        Status::Completed => state.passes.get(&phase).cloned(),
        Status::Stuck => state.stuck_on,
        Status::Clean | Status::Building | Status::Verifying | Status::ContractsFailed => None,
    };
    noted.unwrap_or_default()
}

/// What the user says about a phase, whatever the record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Override {
    /// It has passed: accepts a commit that says so, although this harness did not make it.
    Trust,
    /// It has not passed, whatever was recorded.
    Reopen,
}

/// Changes the state of a phase as the user says.
pub fn overrule(root: &Path, word: Override, phase: u32, host: Host<'_>) -> Result<Exit, Failure> {
    let (_lock, mut project) = PhaseProject::lock(root, host)?;
    if !project.specs.contains_key(&phase) {
        return Err(no_spec(phase));
    }
    let at = Stamp::now().rfc3339();
    let said = match word {
        Override::Trust if project.holds(phase)? => {
            format!("Phase {phase} has passed already.")
        }
        Override::Trust if !project.is_committed_as_passed(phase)? => {
            let error = anyhow!("no commit says that phase {phase} has passed");
            let help = format!("code-commit phase {phase} works on it");
            return Err(Failure::refused(error, help));
        }
        Override::Trust => {
            let tests = project.deciding_tests()?;
            let mut pass = project.holds_for(phase, tests.as_deref());
            pass.tree = project.source()?;
            project.state.complete(phase, pass, tests, at);
            format!("Phase {phase} counts as passed for the current specs.")
        }
        Override::Reopen => {
            project.state.reopen(phase, at);
            format!("Phase {phase} is open again: code-commit phase run works on it.")
        }
    };
    let file = state_file(root);
    code_commit_dir::replace(&file, project.state.to_json().as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))?;
    host.output.report(&said);
    host.output.object(&serde_json::json!({
        "event": "phase", "phase": phase, "passed": project.has_passed(phase),
    }));
    Ok(Exit::Done)
}
