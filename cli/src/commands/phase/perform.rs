//! Running a phase: everything made ready, the loop driven, what came of it said.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use agent::Permissions;
use anyhow::{Context as _, anyhow};
use apply::Lock;
use engine::{AgentFault, AgentShop, Guarded, Outcome, Record, Repository, Role, Watched, drive};
use logging::{Redactor, RunFolder, Stamp};
use loop_phase::{BUILDER, FAILED_SPECS, Inputs, PhaseLoop, SRC, Start, TESTS, VERIFIER};
use repo::WorkTree;
use runner::{Cancel, Env, Probed};
use serde_json::json;

use crate::commands::phase::agents::{self, Chosen, Secrets};
use crate::commands::phase::desk::Counter;
use crate::commands::phase::past::{RUN, start_of, unfinished};
use crate::commands::phase::project::{self, Project};
use crate::commands::phase::report::{Facts, Lines};
use crate::commands::phase::request::{Desk, Entry, SOCKET};
use crate::commands::phase::{Action, PhaseArgs, walls};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::keys::Keys;
use crate::output::{BAD, GOOD, Output, printable};

/// Works on the phase that is meant until it passes or a person is needed.
pub fn run(
    project: &Project,
    args: &PhaseArgs,
    environment: &Environment,
    output: &Output,
) -> Result<Exit, Failure> {
    let Some(phase) = phase(project, args.action)? else {
        output.report("Every phase has passed.");
        return Ok(Exit::Done);
    };
    if project.has_passed(phase)? {
        output.report(&format!("Phase {phase} has passed."));
        return Ok(Exit::Done);
    }
    let secrets = Secrets::read(&project.root)?;
    let keys = Keys::find(environment, &project.root);
    let redactor = Redactor::new(keys.exposed().chain(secrets.exposed()));
    output.strike_out(redactor.clone());
    let model = |flag: &Option<String>, own: &str| flag.clone().unwrap_or_else(|| own.to_owned());
    let choose = |model: &str| agents::choose(model, &secrets, environment);
    let builder = choose(&model(&args.builder_model, &project.config.builder_model))?;
    let verifier = choose(&model(&args.verifier_model, &project.config.verifier_model))?;
    let inputs = project.inputs(phase, &builder.model, &verifier.model)?;
    let docker_host = environment.all().get(std::ffi::OsStr::new("DOCKER_HOST")).map(OsString::as_os_str);
    let probed = walls::choose(args.sandbox, docker_host, output)?;
    let state = state_dir(&project.root)?;
    let _lock = Lock::acquire(&state, "code-commit phase")
        .map_err(|error| Failure::refused(error, "wait until it has ended, or end that process"))?;
    let cancel = Cancel::new().context("cannot watch for Ctrl-C")?;
    crate::interrupt::watch(&cancel)?;
    let setup = Setup { project, args, environment, output, probed, state, docker_host, cancel };
    setup.perform(inputs, builder, verifier, redactor)
}

fn phase(project: &Project, action: Action) -> Result<Option<u32>, Failure> {
    match action {
        Action::Number(number) if project.specs.contains_key(&number) => Ok(Some(number)),
        Action::Number(number) => {
            let specs = project::SPECS;
            Err(Failure::refused(
                anyhow!("there is no {specs}/phase{number}.md"),
                "write the spec of that phase",
            ))
        }
        Action::Run | Action::Init | Action::Check => project.next_phase(),
    }
}

fn state_dir(root: &Path) -> Result<PathBuf, Failure> {
    let state = match WorkTree::at(root) {
        Ok(tree) => tree.state_dir(),
        Err(_) => repo::state_dir_in_tree(root),
    };
    state.map_err(|error| Failure::refused(error, "see who owns it"))
}

/// What everything else needs.
struct Setup<'s> {
    project: &'s Project,
    args: &'s PhaseArgs,
    environment: &'s Environment,
    output: &'s Output,
    probed: Probed,
    state: PathBuf,
    docker_host: Option<&'s std::ffi::OsStr>,
    cancel: Cancel,
}

impl Setup<'_> {
    fn perform(
        &self,
        mut inputs: Inputs,
        builder: Chosen,
        verifier: Chosen,
        redactor: Redactor,
    ) -> Result<Exit, Failure> {
        let project = self.project;
        let phase = inputs.phase;
        let logs = project.root.join(project::ABL).join("logs");
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let desk = |commands| {
            Counter::new(&program, self.desk(commands)).context("cannot make the desk for abl-cmd")
        };
        let desks: BTreeMap<&str, Counter> = [
            (BUILDER, desk(&project.config.builder_commands)?),
            (VERIFIER, desk(&project.config.verifier_commands)?),
        ]
        .into();
        let role = |name: &str, chosen| self.role(name, chosen, desks.get(name), &logs);
        let roles =
            [(BUILDER.to_owned(), role(BUILDER, builder)), (VERIFIER.to_owned(), role(VERIFIER, verifier))];
        let mut around = |name: &str| -> std::io::Result<Guarded> {
            desks.get(name).map_or_else(|| Ok(Box::new(()) as Guarded), Counter::open)
        };
        let mut watch = Lines::new(self.output.clone());
        let mut shop = AgentShop {
            roles: roles.into(),
            places: [(loop_phase::ABL, project.root.join(project::ABL)), (TESTS, project.tests())]
                .map(|(name, path)| (name.to_owned(), path))
                .into(),
            repositories: [(SRC, &project.src_git), (TESTS, &project.tests_git)]
                .map(|(name, git)| {
                    (
                        name.to_owned(),
                        Repository { git: git.clone(), exclude: self.never_committed(git.top()) },
                    )
                })
                .into(),
            shell_cwd: project.root.clone(),
            shell_env: Env::default(),
            shell_timeout: None,
            watch: &mut watch,
            around: &mut around,
            cancel: self.cancel.clone(),
        };
        let mut observer = Facts::new(self.output.clone());
        let (mut record, facts) = match unfinished(&logs, phase, &redactor) {
            Some(folder) => {
                self.output.note(&format!("going on with {}", folder.path().display()));
                inputs.start = start_of(&folder)?;
                Record::resume(folder, &mut observer).map_err(anyhow::Error::from)?
            }
            None => {
                let folder = self.new_folder(&logs, &inputs, redactor)?;
                (Record::begin(folder, &mut observer).map_err(anyhow::Error::from)?, Vec::new())
            }
        };
        let folder = record.folder().clone();
        let mut decide = PhaseLoop::new(inputs);
        facts.iter().for_each(|fact| engine::Loop::learn(&mut decide, fact));
        let outcome = drive(&mut decide, &mut shop, &mut record).map_err(|error| fault(error, &folder))?;
        self.say(phase, &outcome, &folder)
    }

    fn desk(&self, commands: &BTreeMap<String, Entry>) -> Desk {
        let env = Env::allowed(self.environment.all().clone(), &[]);
        let text = |word: &std::ffi::OsStr| word.to_str().map(str::to_owned);
        Desk {
            socket: PathBuf::new(),
            commands: commands.clone(),
            specs: self.project.specs.clone(),
            cwd: self.project.root.clone(),
            env: env.iter().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect(),
            timeout_seconds: self.args.command_timeout.as_secs().max(1),
        }
    }

    fn role(&self, name: &str, chosen: Chosen, desk: Option<&Counter>, logs: &Path) -> Role {
        let project = self.project;
        let (own, other) =
            if name == BUILDER { (project.src(), project.tests()) } else { (project.tests(), project.src()) };
        let mut env = Env::allowed(self.environment.all().clone(), &[]);
        let visible = desk.map(Counter::visible).map(Vec::from).unwrap_or_default();
        let mut walls = walls::around(&project.root, &own, &other, &visible, &env);
        walls.docker_host = self.docker_host.map(OsString::from);
        if let Some(desk) = desk {
            let path = env.get("PATH").map_or_else(|| "/usr/local/bin:/usr/bin:/bin".into(), OsString::from);
            let folders = [desk.bin()].into_iter().chain(std::env::split_paths(&path));
            env.set("PATH", std::env::join_paths(folders).unwrap_or(path.clone()));
            env.set(SOCKET, desk.socket());
        }
        Role {
            cli: chosen.cli,
            cwd: own.clone(),
            confinement: self.probed.confine(walls),
            model: Some(chosen.model),
            env,
            extra_env: agents::passed(self.environment),
            key: Some(chosen.key),
            home: Some(self.state.join("agents").join(name)),
            permissions: Permissions::Skip,
            timeout: Some(self.args.turn_timeout),
            idle_timeout: Some(self.args.idle_timeout),
            watched: Watched {
                root: own,
                skip: walls::skipped(),
                may_touch: None,
                shown: vec![("specs".to_owned(), project.root.join(project::SPECS))],
            },
            log: Some(logs.join(format!("{name}.log"))),
        }
    }

    /// Where a role's folder is the root itself, what is not its own stays out of its commits.
    fn never_committed(&self, top: &Path) -> Vec<String> {
        let root = &self.project.root;
        let names = [agents::DOT_ENV, project::ABL, "agent-config", repo::STATE_IN_TREE];
        let inside =
            names.iter().map(|name| root.join(name)).chain([self.project.tests(), self.project.src()]);
        inside
            .filter(|path| path != top)
            .filter_map(|path| path.strip_prefix(top).ok().map(|path| path.display().to_string()))
            .collect()
    }

    fn new_folder(&self, logs: &Path, inputs: &Inputs, redactor: Redactor) -> Result<RunFolder, Failure> {
        let name = format!("{}-phase{}", Stamp::now().folder_name(), inputs.phase);
        let folder = RunFolder::create(logs, &name, redactor)
            .map_err(|error| Failure::refused(error, "see that the folder can be written"))?;
        let Start { iteration, builder_done, failures } = &inputs.start;
        let run = json!({
            "loop": "phase",
            "version": env!("CARGO_PKG_VERSION"),
            "phase": inputs.phase,
            "builder_model": inputs.builder.model,
            "verifier_model": inputs.verifier.model,
            "sandbox": self.probed.rung,
            "start": { "iteration": iteration, "builder_done": builder_done, "failures": failures.as_deref() },
        });
        folder.store_json(RUN, &run).map_err(anyhow::Error::from)?;
        Ok(folder)
    }

    fn say(&self, phase: u32, outcome: &Outcome, folder: &RunFolder) -> Result<Exit, Failure> {
        let output = self.output;
        output.object(&json!({ "event": "summary", "phase": phase, "outcome": outcome }));
        let exit = match outcome {
            Outcome::Done { rounds } => {
                output.report(&output.paint(GOOD, &format!("Phase {phase} passed in iteration {rounds}.")));
                return Ok(Exit::Done);
            }
            Outcome::NeedsPerson { cause, .. } => {
                output.report(&output.paint(BAD, &format!("Phase {phase} is stuck: {}.", cause.message)));
                let failed = project::read(&self.project.tests().join(FAILED_SPECS))?;
                output.report(printable(failed.as_deref().unwrap_or_default()).trim_end());
                Exit::NeedsPerson
            }
            Outcome::ModelUnavailable { cause, .. } => {
                output.report(
                    &output.paint(BAD, &format!("Phase {phase} stopped: {}", printable(&cause.message))),
                );
                Exit::ModelUnavailable
            }
            Outcome::AttemptsUsedUp { .. } | Outcome::Stuck { .. } => Exit::Failed,
        };
        if let Outcome::NeedsPerson { cause, .. } | Outcome::ModelUnavailable { cause, .. } = outcome {
            output.report(&format!("help: {}", cause.remedy.as_deref().unwrap_or_default()));
        }
        output.report(&format!("log: {}", folder.path().display()));
        Ok(exit)
    }
}

fn fault(error: AgentFault, folder: &RunFolder) -> Failure {
    let help = format!(
        "code-commit phase run goes on where it was; what happened is in {}",
        folder.path().display()
    );
    if matches!(error, AgentFault::Interrupted) {
        return Failure::new(Exit::Interrupted, error).help(help);
    }
    if matches!(error, AgentFault::KeyInPrompt { .. }) {
        return Failure::refused(error, "take the key out of the specs and of project.md");
    }
    Failure::new(Exit::Fault, error).help(help)
}
