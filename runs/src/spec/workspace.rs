//! Everything that the agents of a project need: found, checked and put together once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use code_commit_agent::{Key, Kind};
use code_commit_apply::{Lock, LockError};
use code_commit_dir::FileType;
use code_commit_engine::{Agents, HoldsFor, Named as _};
use code_commit_logging::Redactor;
use code_commit_loop_spec::{Files, Inputs, Place, Repository as Where, Role, STORE, Specs, WIP};
use code_commit_names::ours::{SPEC_CONFIG, STATE};
use code_commit_perform::{
    AgentLimits, AgentUsage, AgentWatch, AgentWorld, BuildCommand, Cast, CommandSettings, Copies,
    Counted, Record, Repository, ShellSettings, Watched, Worker,
};
use code_commit_repo::Git;
use code_commit_report::printable;
use code_commit_runner::{Access, Cancel, Env, Probed, probe};
use code_commit_settings::spec::{Agent, Config, Options, Permissions};
use code_commit_settings::{self as settings, Keys, Settings};

use crate::agents;
use crate::exit::{Exit, Failure};
use crate::phase::agents::passed;
use crate::project::Project;
use crate::sandbox;
use crate::spec::observers::Lines;
use crate::spec::store::{Store, visible};
use crate::{text, verdict};

/// As the help of the flags has them.
const TURN_TIMEOUT: Duration = Duration::from_hours(2);
const IDLE_TIMEOUT: Duration = Duration::from_mins(30);
const COMMAND_TIMEOUT: Duration = Duration::from_mins(30);
/// Whoever runs all of this in a sandbox of their own says so, and root may then skip permissions.
const IN_SANDBOX: &str = "IS_SANDBOX";
/// A spec of more bytes is not empty.
const LONGEST_EMPTY: u64 = 1 << 20;
/// Where git, the loop and the harness keep their own files.
pub const TAKEN: [&str; 3] = [".git", STORE, STATE];

/// What `.cuggino.json` says. One that is not there gives the defaults; one with an error is a refusal.
pub fn config(root: &Path) -> Result<Config, Failure> {
    let text = text::read(&root.join(SPEC_CONFIG))?.unwrap_or_default();
    Config::parse(&text, &TAKEN).map_err(|why| {
        Failure::refused(
            anyhow!("{SPEC_CONFIG}: {why}"),
            "fix the file, or answer the questions of: code-commit spec setup",
        )
    })
}

/// A project of specs and its sandbox, whoever works there.
#[derive(Debug)]
pub(super) struct Workspace<'b> {
    pub(super) project: Project<'b>,
    pub(super) config: Config,
    pub(super) settings: Settings,
    pub(super) store: Store,
    pub(super) env: Env,
    pub(super) probed: Probed,
    /// What leads git into the repositories inside of the project.
    pub(super) dot_gits: Vec<PathBuf>,
}

impl<'b> Workspace<'b> {
    /// `without` is the hint for running without a sandbox.
    fn open(project: Project<'b>, settings: Settings, without: &str) -> Result<Self, Failure> {
        let environment = project.host.environment;
        let mode = sandbox::mode(settings.sandbox());
        let probed = probe(mode, environment.docker_host())
            .map_err(|reason| sandbox::no_sandbox(reason, without))?;
        Ok(Self {
            config: config(&project.root)?,
            store: Store::of(&project)?,
            env: sandbox::build_env(&settings, environment),
            probed,
            dot_gits: project.trusted.status(&settings)?.dot_gits,
            settings,
            project,
        })
    }

    pub(super) fn root(&self) -> &Path {
        &self.project.root
    }

    /// Without specs every turn would be paid for in vain. A talk about a plan may write the first ones.
    fn need_specs(&self) -> Result<(), Failure> {
        let (folder, specs) = (self.specs(), printable(&self.config.specs));
        let files = files_below(&folder);
        let empty = files.iter().find(|file| is_empty(file));
        let what = match empty {
            _ if !folder.is_dir() => anyhow!("there is no folder {specs}, so there are no specs"),
            Some(file) => {
                let file = file.strip_prefix(self.root()).unwrap_or(file).display();
                anyhow!("the spec {} is empty", printable(&file.to_string()))
            }
            None if files.is_empty() => anyhow!("there are no specs in {specs}"),
            None => return Ok(()),
        };
        let help = "write the specs, by hand or with code-commit spec plan; if they are in another folder, name it \
            with specsPath in .cuggino.json";
        Err(Failure::refused(what, help))
    }

    /// The identity of the project, which verdicts are about.
    pub(super) fn tree(&self) -> Option<String> {
        let own = [STORE.to_owned()];
        verdict::tree(&self.project.trusted, &own, code_commit_dir::NEVER)
    }
}

/// The files below a folder, without those whose name begins with a dot.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in visible(folder) {
        if entry.file_type().is_ok_and(FileType::is_dir) {
            found.extend(files_below(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

fn is_empty(file: &Path) -> bool {
    let read = code_commit_dir::read(file, LONGEST_EMPTY, code_commit_dir::Links::Followed);
    read.is_ok_and(|bytes| bytes.is_some_and(|bytes| bytes.trim_ascii().is_empty()))
}

/// The check command of `code-commit check --spec` with its line, in the sandbox of a run. No agent is needed.
pub(crate) fn check_command(
    project: &Project<'_>,
    settings: &Settings,
) -> Result<(String, BuildCommand), Failure> {
    let line = config(&project.root)?.check.ok_or_else(|| {
        Failure::refused(
            anyhow!("the specs have no check command"),
            "give one with code-commit spec setup",
        )
    })?;
    let without = "--sandbox off runs it with all of your rights";
    let workspace = Workspace::open(project.clone(), settings.clone(), without)?;
    let command = BuildCommand {
        argv: ["sh", "-c", &line].map(OsString::from).into(),
        settings: CommandSettings {
            timeout: Some(COMMAND_TIMEOUT),
            limits: sandbox::limits(settings),
            confinement: workspace.probed.confine(workspace.shell_access()),
            sealed: Vec::new(),
            env: workspace.env,
        },
    };
    Ok((line, command))
}

/// The spec loop in a project, with what its runs share.
#[derive(Debug)]
pub(crate) struct Spec<'b> {
    pub(super) workspace: Workspace<'b>,
    pub(super) options: Options,
    pub(super) lines: Lines,
    pub(super) redactor: Redactor,
    /// Raised by Ctrl-C.
    pub(super) cancel: Cancel,
    /// How long a turn may wait for a quota.
    pub(super) patience: Duration,
    /// Who else works where the first agent cannot.
    pub(super) agents: Agents,
    worker: Worker,
    others: Vec<Worker>,
    git: Git,
}

impl<'b> Spec<'b> {
    /// Finds configuration, agent and sandbox, or says what is missing. From now on Ctrl-C is heard.
    pub(super) fn open(
        project: Project<'b>,
        options: Options,
        limits: &settings::Options,
    ) -> Result<Self, Failure> {
        let spec = Self::prepare(project, options, limits)?;
        spec.workspace.need_specs()?;
        crate::interrupt::watch(&spec.cancel)?;
        Ok(spec)
    }

    /// Specs may be missing, and Ctrl-C is not heard.
    pub(super) fn prepare(
        mut project: Project<'b>,
        options: Options,
        limits: &settings::Options,
    ) -> Result<Self, Failure> {
        let mut flags = limits.clone();
        flags.sandbox.mode = options.sandbox;
        let settings = crate::config::load(&project.root, &flags, project.host)?;
        let output = project.host.output;
        let redactor =
            output.strike_out(Keys::find(project.host.environment, &project.root).exposed());
        project.trusted = project.trusted.under(&settings);
        let without = "--sandbox off lets the agent do whatever you can";
        let workspace = Workspace::open(project, settings, without)?;
        let mut others = workspace.workers(&options)?;
        let worker = others.remove(0);
        let agents = agents::numbers(&others, options.escalate.len());
        for model in &options.escalate {
            others.push(workspace.worker(options.first(), Some(model), &options)?);
        }
        let git = workspace.project.trusted.git(workspace.root())?;
        agents::warn_of_calls(&workspace.settings, output);
        sandbox::say(&workspace.probed, output);
        workspace.store.make_folders()?;
        let patience = workspace.settings.model.wait.map(Duration::from);
        Ok(Self {
            lines: Lines::new(output, &workspace.config.specs),
            redactor,
            cancel: Cancel::new().map_err(anyhow::Error::from)?,
            patience: patience.unwrap_or(agents::PATIENCE),
            agents,
            worker,
            others,
            git,
            workspace,
            options,
        })
    }

    /// No other watch works on this project; runs and talks may.
    pub(super) fn lock_watch(&self) -> Result<Lock, Failure> {
        let lock = Lock::acquire(&self.workspace.store.watch, "code-commit spec watch");
        lock.map_err(|error| {
            let help = if matches!(error, LockError::Held { .. }) {
                "a watch is already running: use it, or stop that process"
            } else {
                error.hint()
            };
            Failure::refused(error, help)
        })
    }

    /// The world of a session, which may use anything yet.
    pub(super) fn world_of<'w>(
        &'w self,
        record: Record,
        session: &str,
        focus: &str,
        watch: impl AgentWatch + 'w,
    ) -> AgentWorld<'w, Roles> {
        let workspace = &self.workspace;
        let timeout = self.options.command_timeout.unwrap_or(COMMAND_TIMEOUT);
        AgentWorld {
            record,
            cast: self.roles(focus, &Files::of(session)),
            shell: ShellSettings {
                cwd: workspace.root().to_owned(),
                env: workspace.env.clone(),
                confinement: workspace.probed.confine(workspace.shell_access()),
                timeout: Some(timeout),
                limits: sandbox::limits(&workspace.settings),
                hidden: workspace.hidden(),
                git: workspace.project.trusted.git(workspace.root()).ok(),
            },
            watch: Box::new(watch),
            around: Box::new(|_| Ok(Box::new(()))),
            cancel: self.cancel.clone(),
            copies: Copies::default(),
            limits: AgentLimits::default(),
            used: AgentUsage::default(),
            holds_for: Box::new(|_, _| HoldsFor::default()),
            patience: self.patience,
            waited: Duration::ZERO,
            session: Some(session.to_owned()),
        }
    }

    /// What a verdict given now holds for.
    pub(super) fn verdict_holds_for(&self, inputs: &Inputs) -> HoldsFor {
        let root = self.workspace.root();
        let specs =
            code_commit_repo::stable_hash(&root.join(&inputs.specs), code_commit_dir::NEVER);
        let specification = format!("{}\0{}", inputs.focus, specs.unwrap_or_default());
        let model = self.options.agent_model.first();
        let words = (&inputs.check, self.options.first(), model);
        HoldsFor {
            tree: self.workspace.tree(),
            specification: Some(code_commit_logging::sha256_hex(specification.as_bytes())),
            decider: Some(verdict::decider(root, &words, std::iter::empty())),
        }
    }

    fn roles(&self, focus: &str, files: &Files) -> Roles {
        let workspace = &self.workspace;
        let role = |role| {
            let watched = workspace.watched(role, focus, files);
            (role, self.role(watched, workspace.access_of(role, focus)))
        };
        Roles {
            each: Role::ALL.map(role),
            store: workspace.store.clone(),
            specs: workspace.specs(),
            repository: Repository {
                git: self.git.clone(),
                exclude: vec![workspace.config.specs.clone(), format!("{STORE}/{WIP}")],
            },
        }
    }

    /// An agent that works on what is `watched`, behind these walls.
    pub(super) fn role(&self, watched: Watched, access: Access) -> code_commit_perform::Role {
        let turn_timeout = self.options.turn_timeout.unwrap_or(TURN_TIMEOUT);
        let max_time = self.workspace.settings.limits.max_time.map(Duration::from);
        code_commit_perform::Role {
            worker: self.worker.clone(),
            others: self.others.clone(),
            cwd: self.workspace.root().to_owned(),
            confinement: self.workspace.probed.confine(access),
            env: self.workspace.env.clone(),
            home: None,
            permissions: match self.options.permissions.unwrap_or_default() {
                Permissions::Skip => code_commit_agent::Permissions::Skip,
                Permissions::Ask => code_commit_agent::Permissions::Ask,
            },
            timeout: max_time.into_iter().chain([turn_timeout]).min(),
            idle_timeout: Some(self.options.idle_timeout.unwrap_or(IDLE_TIMEOUT)),
            watched,
            log: None,
        }
    }
}

impl Workspace<'_> {
    /// The agents in the order in which they are tried: of several agents each with its model, of one agent all models.
    fn workers(&self, options: &Options) -> Result<Vec<Worker>, Failure> {
        let models = &options.agent_model;
        if models.iter().chain(&options.escalate).any(String::is_empty) {
            return Err(Failure::refused(
                anyhow!("a model has no name"),
                "name them with commas between: --model NAME,NAME",
            ));
        }
        let (agents, named) = (options.agent.len().max(1), models.len());
        if agents > 1 && named > 0 && named != agents {
            let error = anyhow!("--agent names {agents} agents, and --model {named} models");
            let help = "name a model for each agent, in the same order, or none";
            return Err(Failure::new(Exit::Usage, error).help(help));
        }
        let worker = |number: usize| {
            let agent = options.agent.get(number).copied();
            let model = models.get(number).map(String::as_str);
            self.worker(agent.unwrap_or(options.first()), model, options)
        };
        (0..agents.max(named)).map(worker).collect()
    }

    /// An agent of this program. What its own configuration is overruled with ends with the flag.
    fn worker(
        &self,
        agent: Agent,
        model: Option<&str>,
        options: &Options,
    ) -> Result<Worker, Failure> {
        let kind = match agent {
            Agent::Claude => Kind::Claude,
            Agent::Gemini => Kind::Gemini,
            Agent::Codex => Kind::Codex,
        };
        let (host, base_url) = (self.project.host, options.base_url.as_ref());
        let cli = self.project.trusted.agent(kind)?;
        agents::can_be_told(kind, base_url, host.output)?;
        agents::can_keep(kind, &self.settings)?;
        let mut extra_env = passed(host.environment);
        let in_sandbox = host.environment.text(IN_SANDBOX);
        extra_env.extend(in_sandbox.map(|value| (IN_SANDBOX.into(), value.into())));
        extra_env.extend(agents::address(kind, base_url));
        let (variable, model) = (kind.key_variable(), model.map(str::to_owned));
        let key = host.environment.text(variable);
        let key = key.map(|value| Key::new(variable, value));
        Ok(Worker {
            cli,
            model,
            extra_env,
            key,
        })
    }
}

/// The agents of a run, its folders and its repository.
#[derive(Debug)]
pub(crate) struct Roles {
    each: [(Role, code_commit_perform::Role); 4],
    store: Store,
    specs: PathBuf,
    repository: Repository,
}

impl Cast<Specs> for Roles {
    fn role(&self, role: Role) -> &code_commit_perform::Role {
        let [first, others @ ..] = &self.each;
        let found = others.iter().find(|(one, _)| *one == role);
        &found.unwrap_or(first).1
    }

    fn folder(&self, place: Place) -> PathBuf {
        match place {
            Place::Wip | Place::SpecIssues => self.store.folder(place.name()),
            Place::Specs => self.specs.clone(),
            Place::Project => self.store.root.clone(),
        }
    }

    fn repository(&self, Where::Project: Where) -> &Repository {
        &self.repository
    }

    fn counted(&self, place: Place) -> Counted {
        match place {
            // Whatever the project ignores, the specs count.
            Place::Wip | Place::SpecIssues | Place::Specs => Counted::All,
            Place::Project => Counted::NotIgnored {
                without: vec![STORE.to_owned()],
            },
        }
    }
}
