//! Everything that the agents of a project need: found, checked and put together once.

mod access;
mod watched;

pub(super) use access::{Ground, Mailboxes};
pub(super) use watched::put_back;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use code_commit_agent::{Installed, Key, Kind};
use code_commit_apply::{Lock, LockError};
use code_commit_engine::{Agents, HoldsFor, Named as _};
use code_commit_logging::Redactor;
use code_commit_loop_spec::{Files, Inputs, Place, Repository as Where, Role, STORE, Specs, WIP};
use code_commit_perform::{
    AgentLimits, AgentUsage, AgentWatch, AgentWorld, Cast, Copies, Counted, Record, Repository,
    ShellSettings, Watched, Worker,
};
use code_commit_repo::Git;
use code_commit_report::printable;
use code_commit_runner::{Access, Cancel, Env, Probed, Rung, probe};
use code_commit_settings::spec::Config;
use code_commit_settings::{Environment, Keys, Layer, Settings, keys};

use crate::agents;
use crate::exit::Failure;
use crate::host::Host;
use crate::phase::agents::passed;
use crate::sandbox;
use crate::site::Site;
use crate::spec::options::{Agent, AgentOptions, Permissions};
use crate::spec::{failures, project};
use crate::trusted::Trusted;
use crate::verdict;

/// As the help of the flags has them.
const TURN_TIMEOUT: Duration = Duration::from_hours(2);
const IDLE_TIMEOUT: Duration = Duration::from_mins(30);
const IN_SANDBOX: &str = "IS_SANDBOX";
/// A spec of more bytes is not empty.
const LONGEST_EMPTY: u64 = 1 << 20;
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_mins(30);

#[derive(Debug)]
pub(super) struct Workspace<'b> {
    pub root: PathBuf,
    pub config: Config,
    pub settings: Settings,
    pub args: &'b AgentOptions,
    pub host: Host<'b>,
    pub redactor: Redactor,
    pub runs: PathBuf,
    pub cancel: Cancel,
    state: PathBuf,
    /// Who works, with its model: the first one, the others, and those for repairs.
    workers: (Worker, Vec<Worker>),
    agents: Agents,
    /// How long a turn may wait for a quota.
    pub patience: Duration,
    pub trusted: Trusted,
    git: Git,
    probed: Probed,
    /// What leads git into the repositories inside of the project.
    dot_gits: Vec<PathBuf>,
}

impl<'b> Workspace<'b> {
    /// Finds configuration, agent and sandbox, or says what is missing. From now on Ctrl-C is heard.
    pub(super) fn open(
        site: &Site<'b>,
        args: &'b AgentOptions,
        limits: Layer,
    ) -> Result<Self, Failure> {
        let workspace = Self::prepare(site, args, args.layer(limits))?;
        workspace.need_specs()?;
        crate::interrupt::watch(&workspace.cancel)?;
        Ok(workspace)
    }

    /// Opens the workspace for an agent that gets the terminal and handles Ctrl-C itself.
    pub(super) fn open_for_a_talk(
        site: &Site<'b>,
        args: &'b AgentOptions,
    ) -> Result<Self, Failure> {
        let workspace = Self::prepare(site, args, args.layer(Layer::default()))?;
        crate::interrupt::watch_but_the_keys(&workspace.cancel)?;
        Ok(workspace)
    }

    fn prepare(site: &Site<'b>, args: &'b AgentOptions, flags: Layer) -> Result<Self, Failure> {
        let (root, host) = (&site.root, site.host);
        let Host {
            environment,
            output,
            ..
        } = host;
        let config = crate::spec::config::read(root)?;
        let settings = crate::config::load(root, flags, host)?;
        let redactor = output.strike_out(Keys::find(environment, root).exposed());
        let trusted = site.trusted.under(&settings);
        let worker = |(agent, model): (Agent, Option<&str>)| {
            let cli = trusted.agent(kind(agent))?;
            agents::can_be_told(cli.kind, args.base_url.as_ref(), output)?;
            agents::can_keep(cli.kind, &settings)?;
            Ok::<_, Failure>(worker(cli, model, args, environment))
        };
        let mut workers = args
            .agents()?
            .into_iter()
            .map(worker)
            .collect::<Result<Vec<_>, _>>()?;
        let first = workers.remove(0);
        let stronger = args
            .escalate
            .iter()
            .map(|model| worker((args.first(), Some(model))));
        let agents = agents::numbers(&workers, args.escalate.len());
        workers.extend(stronger.collect::<Result<Vec<_>, _>>()?);
        let git = trusted.git(root)?;
        agents::warn_of_calls(&settings, output);
        let probed = probe(
            sandbox::mode(settings.sandbox.value),
            environment.docker_host(),
        )
        .map_err(|reason| {
            sandbox::no_sandbox(reason, "--sandbox off lets the agent do whatever you can")
        })?;
        output.note(&format!("sandbox: {}", probed.why));
        project::make_folders(root)?;
        let (state, runs) = project::state(root, site.trusted.tree())?;
        let cancel = Cancel::new().map_err(anyhow::Error::from)?;
        let dot_gits = site
            .trusted
            .tree()
            .map_or(Ok(Vec::new()), sandbox::dot_gits)?;
        let root = root.clone();
        Ok(Self {
            patience: settings.wait.value.unwrap_or(agents::PATIENCE),
            root,
            config,
            settings,
            args,
            host,
            redactor,
            runs,
            cancel,
            state,
            workers: (first, workers),
            agents,
            trusted,
            git,
            probed,
            dot_gits,
        })
    }

    /// Without specs every turn would be paid for in vain. A talk about a plan may write the first ones.
    fn need_specs(&self) -> Result<(), Failure> {
        let folder = self.root.join(&self.config.specs);
        let specs = printable(&self.config.specs);
        let mut files = Vec::new();
        // A folder that cannot be listed has none.
        let _ = files_below(&folder, &mut files);
        files.sort_unstable();
        let empty = files.iter().find(|file| is_empty(file));
        let what = match empty {
            _ if !folder.is_dir() => anyhow!("there is no folder {specs}, so there are no specs"),
            Some(file) => {
                let file = file.strip_prefix(&self.root).unwrap_or(file).display();
                anyhow!("the spec {} is empty", printable(&file.to_string()))
            }
            None if files.is_empty() => anyhow!("there are no specs in {specs}"),
            None => return Ok(()),
        };
        let help = "write the specs, by hand or with code-commit spec plan; if they are in another folder, name it \
            with specsPath in .cuggino.json";
        Err(Failure::refused(what, help))
    }

    /// Whether anything holds what an agent may not touch while it runs.
    pub(super) fn has_wall(&self) -> bool {
        self.probed.rung != Rung::Off
    }

    /// The project, with the same trusted base.
    pub(super) fn site(&self) -> Site<'b> {
        Site {
            root: self.root.clone(),
            trusted: self.trusted.clone(),
            host: self.host,
        }
    }

    /// No other watch works on this project; runs and talks may.
    pub(super) fn lock_watch(&self) -> Result<Lock, Failure> {
        Lock::acquire(&self.state.join(failures::WATCH), "code-commit spec watch").map_err(
            |error| {
                let help = if matches!(error, LockError::Held { .. }) {
                    "one watch is enough: leave it, or end that process"
                } else {
                    error.hint()
                };
                Failure::refused(error, help)
            },
        )
    }

    /// One role for each agent.
    pub(super) fn team(&self, focus: &str, files: &Files) -> Team {
        let role = |role| {
            self.role(
                self.watched(role, focus, files),
                self.access_of(role, focus),
            )
        };
        let git = self.git.clone();
        let exclude = vec![self.config.specs.clone(), format!("{STORE}/{WIP}")];
        Team {
            roles: Role::ALL.map(|one| (one, role(one))),
            root: self.root.clone(),
            specs: self.root.join(&self.config.specs),
            repository: Repository { git, exclude },
        }
    }

    /// The world of a run, which may use anything yet.
    pub(super) fn world<'w>(
        &self,
        record: Record,
        cast: Team,
        watch: Box<dyn AgentWatch + 'w>,
        cancel: &Cancel,
    ) -> AgentWorld<'w, Team> {
        let limits = sandbox::limits(&self.settings);
        AgentWorld {
            record,
            cast,
            shell: ShellSettings {
                cwd: self.root.clone(),
                env: self.env(),
                confinement: self.probed.confine(self.shell_access()),
                timeout: Some(self.args.command_timeout.unwrap_or(COMMAND_TIMEOUT)),
                limits,
                hidden: self.hidden(),
            },
            watch,
            around: Box::new(|_| Ok(Box::new(()))),
            cancel: cancel.clone(),
            copies: Copies::default(),
            limits: AgentLimits::default(),
            used: AgentUsage::default(),
            holds_for: Box::new(|_, _| HoldsFor::default()),
            patience: self.patience,
            waited: Duration::ZERO,
            session: None,
        }
    }

    /// Who else works where the first agent cannot.
    pub(super) fn agents(&self) -> Agents {
        self.agents
    }

    /// What a verdict given now holds for.
    pub(super) fn holds_for(&self, inputs: &Inputs) -> HoldsFor {
        let specs =
            code_commit_repo::stable_hash(&self.root.join(&inputs.specs), code_commit_dir::NEVER)
                .unwrap_or_default();
        let words = (
            &inputs.check,
            self.args.first(),
            self.args.agent_model.first(),
        );
        HoldsFor {
            tree: self.tree(),
            specification: Some(code_commit_logging::sha256_hex(
                format!("{}\0{specs}", inputs.focus).as_bytes(),
            )),
            decider: Some(verdict::decider(&self.root, &words, std::iter::empty())),
        }
    }

    /// The identity of the project, which verdicts are about.
    pub(super) fn tree(&self) -> Option<String> {
        let around = self.trusted.surroundings().ok();
        verdict::tree(
            &self.root,
            around,
            &[STORE.to_owned()],
            code_commit_dir::NEVER,
        )
    }

    /// What the sandbox hides from agents: they can read the copies in the record of their run.
    fn hidden(&self) -> Vec<String> {
        let hidden = keys::hidden_from_agents(&self.root).into_iter();
        let below = |path: PathBuf| {
            Some(format!(
                "/{}",
                path.strip_prefix(&self.root).ok()?.to_str()?
            ))
        };
        hidden
            .filter(|_| self.probed.rung != Rung::Off)
            .filter_map(below)
            .collect()
    }

    /// An agent that works on what is `watched`, behind these walls.
    pub(super) fn role(&self, watched: Watched, access: Access) -> code_commit_perform::Role {
        let turn_timeout = self.args.turn_timeout.unwrap_or(TURN_TIMEOUT);
        code_commit_perform::Role {
            worker: self.workers.0.clone(),
            others: self.workers.1.clone(),
            cwd: self.root.clone(),
            confinement: self.probed.confine(access),
            env: self.env(),
            home: None,
            permissions: match self.args.permissions.unwrap_or_default() {
                Permissions::Skip => code_commit_agent::Permissions::Skip,
                Permissions::Ask => code_commit_agent::Permissions::Ask,
            },
            timeout: self
                .settings
                .max_time
                .value
                .into_iter()
                .chain([turn_timeout])
                .min(),
            idle_timeout: Some(self.args.idle_timeout.unwrap_or(IDLE_TIMEOUT)),
            watched,
            log: None,
        }
    }

    fn env(&self) -> Env {
        sandbox::build_env(&self.settings, self.host.environment)
    }
}

/// Adds the files below a folder, without those whose name begins with a dot.
fn files_below(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in code_commit_dir::list(folder)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            files_below(&entry.path(), found)?;
        } else {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn is_empty(file: &Path) -> bool {
    let read = code_commit_dir::read(file, LONGEST_EMPTY, code_commit_dir::Links::Followed);
    read.is_ok_and(|bytes| bytes.is_some_and(|bytes| bytes.trim_ascii().is_empty()))
}

/// An agent of this program. What its own configuration is overruled with ends with the flag; whoever runs all of this in a
/// sandbox of their own says so, and root may then skip permissions.
fn worker(
    cli: Installed,
    model: Option<&str>,
    args: &AgentOptions,
    environment: &Environment,
) -> Worker {
    let address = agents::address(cli.kind, args.base_url.as_ref());
    let in_sandbox = environment
        .text(IN_SANDBOX)
        .map(|value| (IN_SANDBOX.into(), value.into()));
    let key = cli.kind.key_variable();
    Worker {
        model: model.map(str::to_owned),
        extra_env: passed(environment)
            .into_iter()
            .chain(in_sandbox)
            .chain(address)
            .collect(),
        key: environment.text(key).map(|value| Key::new(key, value)),
        cli,
    }
}

/// The agents of a run, its folders and its repository.
#[derive(Debug)]
pub(crate) struct Team {
    roles: [(Role, code_commit_perform::Role); 4],
    root: PathBuf,
    specs: PathBuf,
    repository: Repository,
}

impl Cast<Specs> for Team {
    fn role(&self, role: Role) -> &code_commit_perform::Role {
        let [first, others @ ..] = &self.roles;
        &others
            .iter()
            .find(|(one, _)| *one == role)
            .unwrap_or(first)
            .1
    }

    fn folder(&self, place: Place) -> PathBuf {
        match place {
            Place::Wip | Place::SpecIssues => project::folder(&self.root, place.name()),
            Place::Specs => self.specs.clone(),
            Place::Project => self.root.clone(),
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

fn kind(which: Agent) -> Kind {
    match which {
        Agent::Claude => Kind::Claude,
        Agent::Gemini => Kind::Gemini,
        Agent::Codex => Kind::Codex,
    }
}
