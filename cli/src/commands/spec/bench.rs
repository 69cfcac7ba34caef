//! Everything that the agents of a project need: found, checked and put together once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use agent::{Installed, Key, Kind};
use apply::Lock;
use engine::{AgentShop, AgentWatch, Guarded, Repository, Watched};
use guard::Policy;
use logging::Redactor;
use loop_spec::{BACKLOG, Files, ISSUES, MEMORY, PROJECT, Role, STORE, TBD, WIP};
use repo::{Git, WorkTree};
use runner::{Cancel, Env, Probed, Walls, probe};

use crate::commands::phase::agents::passed;
use crate::commands::spec::config::{Config, FILE};
use crate::commands::spec::{Agent, AgentArgs, Permissions, project};
use crate::commands::wall;
use crate::config::{self, Layer, PROJECT_FILE, Settings};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::keys::Keys;
use crate::output::Output;

/// What no agent may change, whatever its role.
const OURS: [&str; 4] = ["!.cuggino/", "!.cuggino.json", "!code-commit.toml", "!.code-commit/"];
/// Folders that are not looked into where there is no git to say what counts.
const PRODUCTS: [&str; 5] = ["node_modules", "target", ".venv", "__pycache__", "dist"];

/// A project with its agent.
#[derive(Debug)]
pub struct Bench<'b> {
    pub root: PathBuf,
    pub config: Config,
    pub settings: Settings,
    pub args: &'b AgentArgs,
    pub output: &'b Output,
    pub environment: &'b Environment,
    pub redactor: Redactor,
    pub runs: PathBuf,
    pub cancel: Cancel,
    state: PathBuf,
    pub cli: Installed,
    probed: Probed,
}

impl<'b> Bench<'b> {
    /// Finds configuration, agent and wall, or says what is missing. From now on Ctrl-C is heard.
    pub fn open(
        root: &Path,
        args: &'b AgentArgs,
        environment: &'b Environment,
        output: &'b Output,
    ) -> Result<Self, Failure> {
        let bench = Self::prepare(root, args, environment, output)?;
        crate::interrupt::watch(&bench.cancel)?;
        Ok(bench)
    }

    /// The same for an agent that gets the terminal: Ctrl-C is its own to hear.
    pub fn open_for_a_talk(
        root: &Path,
        args: &'b AgentArgs,
        environment: &'b Environment,
        output: &'b Output,
    ) -> Result<Self, Failure> {
        let bench = Self::prepare(root, args, environment, output)?;
        crate::interrupt::watch_but_the_keys(&bench.cancel)?;
        Ok(bench)
    }

    fn prepare(
        root: &Path,
        args: &'b AgentArgs,
        environment: &'b Environment,
        output: &'b Output,
    ) -> Result<Self, Failure> {
        let config = Config::read(root)?;
        let mut flags = Layer::default();
        flags.sandbox.mode = args.sandbox;
        let settings = config::load(root, environment, flags, output)?;
        let redactor = Redactor::new(Keys::find(environment, root).exposed());
        output.strike_out(redactor.clone());
        let cli = installed(args.agent, environment)?;
        let docker_host = environment.all().get(OsStr::new("DOCKER_HOST")).map(OsString::as_os_str);
        let probed = probe(wall::mode(settings.sandbox.value), docker_host)
            .map_err(|reason| Failure::refused(reason, "--sandbox off lets the agent do whatever you can"))?;
        output.note(&format!("sandbox: {}", probed.why));
        project::make_folders(root)?;
        let (state, runs) = project::state(root)?;
        let cancel = Cancel::new().map_err(anyhow::Error::from)?;
        let root = root.to_owned();
        Ok(Self {
            root,
            config,
            settings,
            args,
            output,
            environment,
            redactor,
            runs,
            cancel,
            state,
            cli,
            probed,
        })
    }

    /// Nobody else works on this tree meanwhile.
    pub fn lock(&self) -> Result<Lock, Failure> {
        Lock::acquire(&self.state, "code-commit spec")
            .map_err(|error| Failure::refused(error, "wait until it has ended, or end that process"))
    }

    /// A shop with one role for each agent.
    pub fn shop<'a>(
        &self,
        focus: &str,
        files: &Files,
        watch: &'a mut dyn AgentWatch,
        around: &'a mut dyn FnMut(&str) -> io::Result<Guarded>,
        cancel: &Cancel,
    ) -> AgentShop<'a> {
        let roles =
            Role::ALL.map(|role| (role.name().to_owned(), self.role(self.watched(role, focus, files))));
        let git = Git::new(&self.root, self.environment.all().clone());
        let repository =
            Repository { git, exclude: vec![self.config.specs.clone(), format!("{STORE}/{WIP}")] };
        AgentShop {
            roles: roles.into(),
            places: [WIP, ISSUES].map(|name| (name.to_owned(), project::folder(&self.root, name))).into(),
            repositories: BTreeMap::from([(PROJECT.to_owned(), repository)]),
            shell_cwd: self.root.clone(),
            shell_env: self.env(),
            shell_timeout: Some(self.args.command_timeout),
            watch,
            around,
            cancel: cancel.clone(),
        }
    }

    /// An agent that works on what is `watched`.
    pub fn role(&self, watched: Watched) -> engine::Role {
        let key = self.cli.kind.key_variable();
        engine::Role {
            cli: self.cli.clone(),
            cwd: self.root.clone(),
            confinement: self.probed.confine(self.walls()),
            model: self.args.agent_model.clone(),
            env: self.env(),
            extra_env: passed(self.environment).into_iter().chain(self.in_sandbox()).collect(),
            key: self.environment.text(key).map(|value| Key::new(key, value)),
            home: None,
            permissions: match self.args.permissions {
                Permissions::Skip => agent::Permissions::Skip,
                Permissions::Ask => agent::Permissions::Ask,
            },
            timeout: Some(self.args.turn_timeout),
            idle_timeout: Some(self.args.idle_timeout),
            watched,
            log: None,
        }
    }

    fn env(&self) -> Env {
        wall::build_env(&self.settings, self.environment)
    }

    /// Whoever runs all of this behind a wall of their own says so, and root may then skip permissions.
    fn in_sandbox(&self) -> Option<(OsString, OsString)> {
        let name = "IS_SANDBOX";
        self.environment.text(name).map(|value| (name.into(), value.into()))
    }

    /// The tree is open, the network too: the agent has to reach its service.
    fn walls(&self) -> Walls {
        let held = [".git", FILE, PROJECT_FILE, repo::STATE_IN_TREE].map(|name| self.root.join(name));
        let values =
            |places: &[config::Setting<PathBuf>]| places.iter().map(|place| place.value.clone()).collect();
        Walls {
            read_only: held.into_iter().filter(|path| path.exists()).collect(),
            network: true,
            writable: values(&self.settings.writable),
            readable: values(&self.settings.readable),
            ..Walls::new(&self.root, &self.env())
        }
    }

    /// Who may touch what. Backlog, issues and findings are a person's at all times, and not looked at.
    fn watched(&self, role: Role, focus: &str, files: &Files) -> Watched {
        let may_touch = match role {
            Role::Planning => vec![Files::path(&files.plan())],
            Role::Reviewing => vec![Files::path(&files.review())],
            Role::Audit => Vec::new(),
            Role::Implementing => self.implementing(focus),
        };
        let folders = [BACKLOG, ISSUES, TBD, MEMORY].map(|name| format!("{STORE}/{name}"));
        let session = [Files::path(&files.session())];
        let skip =
            [".git".to_owned(), repo::STATE_IN_TREE.to_owned()].into_iter().chain(folders).chain(session);
        Watched {
            root: self.root.clone(),
            skip: skip.chain(self.products()).collect(),
            may_touch: Some(may_touch),
            shown: Vec::new(),
        }
    }

    /// For a session with a person: specs and the mailboxes.
    pub fn watched_plan(&self) -> Watched {
        let folders = [BACKLOG, ISSUES, TBD].map(|name| format!("{STORE}/{name}/"));
        let own = [format!("{}/", self.config.specs), format!("{STORE}/{MEMORY}")];
        Watched {
            root: self.root.clone(),
            skip: [".git".to_owned(), repo::STATE_IN_TREE.to_owned()]
                .into_iter()
                .chain(self.products())
                .collect(),
            may_touch: Some(folders.into_iter().chain(own).collect()),
            shown: Vec::new(),
        }
    }

    fn implementing(&self, focus: &str) -> Vec<String> {
        let specs = &self.config.specs;
        let mut entries: Vec<String> = ["/"].iter().chain(&OURS).map(|&entry| entry.to_owned()).collect();
        // Only where the focus asks for it.
        if !focus.contains(specs.as_str()) {
            entries.push(format!("!{specs}/"));
        }
        entries.extend(self.protected().into_iter().map(|path| format!("!{path}")));
        entries
    }

    /// The files that the configuration protects, as far as they are there.
    fn protected(&self) -> Vec<String> {
        if self.settings.protect.is_empty() {
            return Vec::new();
        }
        let add = |policy: Policy, patterns: &config::Setting<Vec<String>>| policy.protect(&patterns.value);
        let policy = self.settings.protect.iter().fold(Policy::new(), add);
        let plain = Policy::new();
        let tracked = WorkTree::at(&self.root).map(|tree| tree.tracked().unwrap_or_default());
        let paths = tracked.unwrap_or_default().into_iter().map(|file| file.path);
        paths.filter(|path| policy.refuses(path).is_some() && plain.refuses(path).is_none()).collect()
    }

    /// Git says what counts where there is git.
    fn products(&self) -> Vec<String> {
        let without = WorkTree::at(&self.root).is_err();
        PRODUCTS.iter().filter(|_| without).map(|&name| name.to_owned()).collect()
    }
}

fn installed(which: Agent, environment: &Environment) -> Result<Installed, Failure> {
    let kind = match which {
        Agent::Claude => Kind::Claude,
        Agent::Gemini => Kind::Gemini,
        Agent::Codex => Kind::Codex,
    };
    let path = environment.all().get(OsStr::new("PATH")).map(OsString::as_os_str);
    agent::find(kind, path).map_err(|error| Failure::refused(error, kind.remedy()))
}
