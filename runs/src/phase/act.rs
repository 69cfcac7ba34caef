//! Runs a phase: prepares everything, runs the loop, reports the result.

mod end;
mod roles;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use code_commit_engine::Named as _;
use code_commit_logging::{Redactor, RunFolder, Stamp};
use code_commit_loop_phase::state::Stale;
use code_commit_loop_phase::{Inputs, Phases, Role, Start};
use code_commit_names::ours::ABL;
use code_commit_perform::{AgentUsage, AgentWorld, COPIES, Guarded, Kept, Past, Record, ShellSettings};
use code_commit_runner::{Cancel, Confinement, Env, Probed, Rung};
use code_commit_settings::{Address, Keys, Layer, Settings};
use serde_json::json;

use crate::agents::{Words, Work, can_be_told, can_keep, limits, warn_of_calls};
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::phase::agents::{self, Chosen, Secrets};
use crate::phase::desk::Counter;
use crate::phase::lines::{Facts, Lines};
use crate::phase::past::{self, LOGS, start_of, unfinished};
use crate::phase::project::{self, Project};
use crate::phase::{access, holds};
use crate::place;
use crate::records::{self, NewRun, cannot_begin};
use crate::trusted::Trusted;

const WORDS: Words = Words {
    go_on: "code-commit phase run goes on where it was",
    again: "code-commit phase run",
    worker: "role",
    key_in: "the specs and of project.md",
    unlike_recorded: |folder| {
        format!(
            "project.md, prompts and configuration have to be what they were; or move {} away and run the phase again",
            folder.path().display()
        )
    },
};

/// How a phase is worked on.
#[derive(Debug)]
pub struct Request {
    /// The phase; the open one or the next one if `None`.
    pub phase: Option<u32>,
    /// The model of both roles; the configured ones if `None`.
    pub model: Option<String>,
    /// The builder's.
    pub builder_model: Option<String>,
    /// The verifier's.
    pub verifier_model: Option<String>,
    /// The service's address for both roles; the agent's default if `None`.
    pub base_url: Option<Address>,
    /// Whether a new run begins even if one of the phase is not finished.
    pub new: bool,
    /// The supervisor's own name for this work.
    pub key: Option<String>,
    /// Whether a phase that is stuck is tried again although nothing has changed.
    pub retry: bool,
    /// Settings that override those of all files.
    pub layer: Layer,
    /// Time limit of one turn.
    pub turn_timeout: Duration,
    /// How long a role may be silent.
    pub idle_timeout: Duration,
    /// Time limit of one command of `abl-cmd`.
    pub command_timeout: Duration,
}

/// Works on the phase until it passes or the user is needed.
pub fn run(root: &Path, args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let Host { environment, output, .. } = host;
    let (_lock, project) = &Project::lock(root, host)?;
    let state = place::state_of(root)?;
    for (phase, why) in project.stale() {
        let why = match why {
            Stale::Specs => "for other specs than there are now: it is open again",
            Stale::Decider => "by a verifier with another prompt or other commands: it is verified again",
        };
        output.warn(&format!("phase {phase} passed {why}"));
    }
    let of_key = past_of_key(project, args)?;
    let asked = of_key.as_ref().map_or(args.phase, |past| Some(past.phase));
    let Some(phase) = phase(project, asked)? else {
        output.report("Every phase has passed.");
        if let Some(phase) = project.has_moved_on()? {
            output.note(&format!("the source has changed since phase {phase} passed; code-commit phase reopen {phase} has it verified again"));
        }
        return Ok(Exit::Done);
    };
    if project.has_passed(phase) {
        if let Some(past) = of_key {
            end::say_again(project, &past, output);
        }
        output.report(&format!("Phase {phase} has passed."));
        return Ok(Exit::Done);
    }
    if !project.state.phases_completed.contains(&phase) && project.is_committed_as_passed(phase)? {
        output.warn(&format!(
            "a commit says that phase {phase} has passed, but no run here found that; if it is so: code-commit phase trust {phase}"
        ));
    }
    if !args.retry && !args.new && project.is_stuck(phase)? {
        return Ok(end::still_stuck(project, phase, output));
    }
    let settings = crate::config::load(root, args.layer.clone(), host)?;
    let probed = access::choose(settings.sandbox.value, environment.docker_host(), output)?;
    if probed.rung == Rung::Off {
        roles::warn_of_commands(&project.config, output);
    }
    let cancel = crate::interrupt::watched()?;
    Setup { project, args, settings, host, probed, state, cancel }.begin(phase)
}

/// The run that was begun under this key. It settles which phase is meant.
fn past_of_key(project: &Project, args: &Request) -> Result<Option<past::Past>, Failure> {
    let Some(key) = &args.key else { return Ok(None) };
    let logs = project.root.join(ABL).join(LOGS);
    let past = past::all(&logs).into_iter().find(|run| past::key_of(run).as_ref() == Some(key));
    if let Some(past) = past.as_ref().filter(|past| args.phase.is_some_and(|asked| asked != past.phase)) {
        let error = anyhow!("the key was used for phase {}: {}", past.phase, records::name(&past.path));
        return Err(Failure::refused(error, "use another key for another phase"));
    }
    Ok(past)
}

fn phase(project: &Project, asked: Option<u32>) -> Result<Option<u32>, Failure> {
    match asked {
        Some(number) if project.specs.contains_key(&number) => Ok(Some(number)),
        Some(number) => {
            let specs = project::SPECS;
            Err(Failure::refused(
                anyhow!("there is no {specs}/phase{number}.md"),
                "write the spec of that phase",
            ))
        }
        None => Ok(project.next_phase()),
    }
}

struct Setup<'s> {
    project: &'s Project,
    args: &'s Request,
    settings: Settings,
    host: Host<'s>,
    probed: Probed,
    state: PathBuf,
    cancel: Cancel,
}

impl Setup<'_> {
    /// Chooses the models and starts the phase.
    fn begin(&self, phase: u32) -> Result<Exit, Failure> {
        let Self { project, args, host: Host { environment, output, .. }, .. } = *self;
        let secrets = Secrets::read(&project.root)?;
        let keys = Keys::find(environment, &project.root);
        let redactor = output.strike_out(keys.exposed().chain(secrets.exposed()));
        let places = [project.root.as_path(), project.src(), project.tests()];
        let trusted = Trusted::around(&places, Some(&self.settings), environment);
        let choose = |flag: &Option<String>, own: &str| {
            let flag = flag.as_deref().or(args.model.as_deref());
            agents::choose(flag.unwrap_or(own), &secrets, &trusted)
        };
        let builder = choose(&args.builder_model, &project.config.builder_model)?;
        let verifier = choose(&args.verifier_model, &project.config.verifier_model)?;
        for Chosen { cli, .. } in [&builder, &verifier] {
            can_keep(cli.kind, &self.settings)?;
            can_be_told(cli.kind, args.base_url.as_ref(), output)?;
        }
        warn_of_calls(&self.settings, output);
        let inputs = project.inputs(phase, &builder.model, &verifier.model)?;
        self.perform(inputs, builder, verifier, redactor)
    }

    fn perform(
        &self,
        mut inputs: Inputs,
        builder: Chosen,
        verifier: Chosen,
        redactor: Redactor,
    ) -> Result<Exit, Failure> {
        let phase = inputs.phase;
        let logs = self.project.root.join(ABL).join(LOGS);
        let desks = self.desks()?;
        let cast = self.team(builder, verifier, &desks, &logs)?;
        let mut around = |name: &str| -> std::io::Result<Guarded> {
            desks.get(name).map_or_else(|| Ok(Box::new(()) as Guarded), Counter::open)
        };
        let mut watch = Lines::new(self.host.output.clone());
        let mut observer = Facts::new(self.host.output.clone());
        let (record, past) = self.record(&logs, &mut inputs, redactor, &mut observer)?;
        let folder = record.folder().clone();
        let world = AgentWorld {
            record: record.about(&self.project.root),
            cast,
            // Users' commands only run at the desk.
            shell: ShellSettings {
                cwd: self.project.root.clone(),
                env: Env::default(),
                confinement: Confinement::off(),
                timeout: None,
                limits: code_commit_runner::Limits::default(),
            },
            watch: &mut watch,
            around: &mut around,
            cancel: self.cancel.clone(),
            kept: Kept::default(),
            limits: limits(&self.settings),
            used: AgentUsage::of(&past.lines),
            holds_for: &|_| holds::verdict(&self.project.root, phase),
            session: None,
        };
        let restored = |_: &[String]| {
            let forgotten = code_commit_perform::forget_copies(&folder.path().join(COPIES));
            Ok(forgotten.context("cannot remove what a killed run has left")?)
        };
        let repositories = world.cast.repositories();
        let output = self.host.output;
        let role_of =
            |name: &str| [Role::Builder, Role::Verifier].into_iter().find(|role| role.name() == name);
        let outcome = Work { past, repositories, words: &WORDS, output, restored: &restored }
            .run::<Phases, _>(world, role_of, |harness| code_commit_loop_phase::phase(harness, &inputs))?;
        Ok(self.say(phase, &outcome, &folder))
    }

    /// The record of the unfinished run, with its content; or a new one.
    fn record<'o>(
        &self,
        logs: &Path,
        inputs: &mut Inputs,
        redactor: Redactor,
        observer: &'o mut Facts,
    ) -> Result<(Record<'o>, Past), Failure> {
        match unfinished(logs, inputs.phase, &redactor)? {
            Some(folder) if self.args.new => {
                self.leave(&folder);
                self.first_line(logs, inputs, redactor, observer)
            }
            Some(folder) => {
                records::can_be_continued(folder.path())?;
                self.host.output.note(&format!("continuing {}", folder.path().display()));
                inputs.start = Start { decider: self.project.decider.clone(), ..start_of(&folder)? };
                Ok(Record::resume(folder, observer).map_err(anyhow::Error::from)?)
            }
            None => self.first_line(logs, inputs, redactor, observer),
        }
    }

    fn first_line<'o>(
        &self,
        logs: &Path,
        inputs: &Inputs,
        redactor: Redactor,
        observer: &'o mut Facts,
    ) -> Result<(Record<'o>, Past), Failure> {
        let new = self.new_run(logs, inputs, redactor)?;
        Ok((new.record(observer).map_err(cannot_begin)?, Past::default()))
    }

    /// A person may have worked on the tree since: a new run takes it as it is.
    fn leave(&self, folder: &RunFolder) {
        if folder.path().join(COPIES).is_dir() {
            self.host.output.warn(&format!(
                "{} was killed while a role worked: what that role changed and may not is left as it is now",
                records::name(folder.path())
            ));
        }
    }

    fn new_run(&self, logs: &Path, inputs: &Inputs, redactor: Redactor) -> Result<NewRun, Failure> {
        let name = format!("{}-phase{}", Stamp::now().folder_name(), inputs.phase);
        let new = NewRun::create(logs, &name, redactor, "make the folder writable")?;
        let run = json!({
            "loop": "phase",
            "version": env!("CARGO_PKG_VERSION"),
            "phase": inputs.phase,
            "key": self.args.key,
            "builder_model": inputs.builder.model,
            "verifier_model": inputs.verifier.model,
            "sandbox": self.probed.rung,
            "start": inputs.start,
        });
        new.store(&run)?;
        Ok(new)
    }
}
