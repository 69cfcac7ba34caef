//! Runs of the phase loop: what the user asks, what is recorded, and the loop's part of a run's driver.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use code_commit_dir::Interrupt;
use code_commit_engine::{Cause, HoldsFor, Journaled, Named as _, Outcome, Recorded, Stop};
use code_commit_logging::{Redactor, RunFolder, Stamp};
use code_commit_loop_phase::{FAILED_SPECS, Inputs, Phases, Role, Start, first_prompt};
use code_commit_names::ours::ABL;
use code_commit_perform::{
    AgentFault, AgentUsage, AgentWorld, Copies, Observer, Past, ShellSettings,
};
use code_commit_report::{LastWords, Output};
use code_commit_runner::{Backend, Confinement, Env, Limits, Probed};
use code_commit_settings::phase::Options;
use code_commit_settings::{Keys, Settings};
use code_commit_timeline::Reason;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::agents::{PATIENCE, Words, limits, warn_of_calls};
use crate::driver::{Asked, Context, Driver, Loop, LoopKind, Report, Resumed, TakesBack};
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::kind::Resumption;
use crate::phase::agents::{AgentFinder, RoleAgents, Secrets};
use crate::phase::folders::{self, SPECS};
use crate::phase::lines::{self, Lines, last_words};
use crate::phase::project::{self, PhaseProject};
use crate::phase::roles::{Roles, choose_sandbox, warn_of_commands};
use crate::project::Project;
use crate::records::{self, Head, NewRun};
use crate::registry::Known;
use crate::{config, estimate, interrupt};

/// The folder with the runs, in the phases' own folder.
pub const LOGS: &str = "logs";

const WORDS: Words = Words {
    go_on: "continue with: code-commit phase run",
    again: "code-commit phase run",
    worker: "role",
    key_in: "the specs and of project.md",
};

/// What the user asks.
#[derive(Debug, Default)]
pub struct Request {
    /// The phase; the open one or the next one if `None`.
    pub phase: Option<u32>,
    /// Who works, and how.
    pub options: Options,
    /// How far the run may go.
    pub limits: code_commit_settings::Options,
    /// Begin a new run even if one of the phase is not finished.
    pub new: bool,
    /// The supervisor's own name for this work.
    pub key: Option<String>,
    /// Try a phase again that is stuck although nothing has changed.
    pub retry: bool,
    /// Tell what the first prompt takes, and send nothing.
    pub dry_run: bool,
}

/// What a run is to do, as `run.json` has it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    phase: u32,
    key: Option<String>,
    builder_model: String,
    verifier_model: String,
    sandbox: Backend,
    /// Where it began: its journal only makes sense from there.
    start: Start,
    flags: Options,
}

/// Works on the phase until it passes or the user is needed.
pub fn run(root: &Path, asked: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    if asked.dry_run {
        return forecast(root, asked, host);
    }
    let output = host.output;
    let (lock, project) = PhaseProject::lock(root, host)?;
    let site = Project::at(root, host)?;
    let of_key = run_of_key(&site, asked)?;
    let wanted = of_key.as_ref().map(|(_, phase)| *phase).or(asked.phase);
    project.say_stale(wanted, output)?;
    let Some(phase) = project.next_phase(wanted)? else {
        if let Some((run, _)) = of_key {
            let name = records::name(&run);
            output.note(&format!("{name} is already finished; no model was called"));
        }
        return say_passed(&project, &site, wanted);
    };
    refuse_template(&project, phase)?;
    if !project.state.phases_completed.contains(&phase) && project.is_committed_as_passed(phase)? {
        output.warn(&format!(
            "a commit says that phase {phase} has passed, but no run here found that; if it is so: code-commit phase trust {phase}"
        ));
    }
    if !asked.retry && !asked.new && project.is_stuck(phase)? {
        return Ok(say_stuck(&project, phase, output));
    }
    let (of, plan) = Phase::open(&project, asked, &site, phase)?;
    let driver = Driver::new(&of, lock, interrupt::watched(host.cancel)?);
    // Any key continues an unfinished run, and which phases have passed is in `state.json`.
    let asked = Asked {
        key: None,
        new: asked.new,
    };
    driver.start(plan, asked).map(|done| done.exit)
}

/// The roles would take it for the user's text and build it at a cost.
fn refuse_template(project: &PhaseProject, phase: u32) -> Result<(), Failure> {
    let mut specs = project.specs().filter(|(number, _)| *number <= phase);
    let is_template = |text| code_commit_loop_phase::spec::left_of_template(text).is_some();
    let Some((number, _)) = specs.find(|(_, text)| is_template(text)) else {
        return Ok(());
    };
    Err(Failure::refused(
        anyhow!("{SPECS}/phase{number}.md is still the template of code-commit phase init"),
        "write what the phase is for and its contracts; code-commit phase check names the line",
    ))
}

/// Continues a run under its name, with the flags that it began with.
pub(crate) fn resume(
    known: &Known,
    args: &Resumption,
    site: &Project<'_>,
) -> Result<Exit, Failure> {
    let folder = records::open(&known.path(&site.root));
    if site.is_over(known) != Some(false) {
        let why = "is finished, or a newer run of its phase has begun";
        return Err(records::closed(&records::name(folder.path()), why));
    }
    records::can_be_continued(folder.path())?;
    let plan: Plan = known.plan(&folder)?;
    let asked = Request {
        phase: Some(plan.phase),
        options: plan.flags,
        limits: args.limits.clone(),
        ..Request::default()
    };
    run(&site.root, &asked, site.host)
}

/// Tells what the first prompt takes. Makes nothing, not even the repositories of the roles.
fn forecast(root: &Path, asked: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let project = PhaseProject::look(root, host.environment)?;
    let Some(phase) = project.next_phase(asked.phase)? else {
        host.output.report(&has_passed(asked.phase));
        return Ok(Exit::Done);
    };
    refuse_template(&project, phase)?;
    let prompt = first_prompt(&project.inputs(phase)?);
    Ok(estimate::tell_of_agent(&prompt, host.output))
}

/// The newest run of a phase that is as asked, and its phase.
fn newest_run(
    site: &Project<'_>,
    is_it: impl Fn(&Head) -> bool,
) -> Result<Option<(PathBuf, u32)>, Failure> {
    let of = |known: &Known| {
        let path = known.path(&site.root);
        let head = Head::of(&records::open(&path))?;
        let phase = head.phase.filter(|_| is_it(&head))?;
        Some((path, phase))
    };
    Ok(site.registry().all()?.iter().find_map(of))
}

/// The run that was begun under this key: the key settles which phase is meant.
fn run_of_key(site: &Project<'_>, asked: &Request) -> Result<Option<(PathBuf, u32)>, Failure> {
    if asked.key.is_none() {
        return Ok(None);
    }
    let found = newest_run(site, |head| head.key == asked.key)?;
    match &found {
        Some((path, phase)) if asked.phase.is_some_and(|wanted| wanted != *phase) => {
            let name = records::name(path);
            let error = anyhow!("the key was used for phase {phase}: {name}");
            Err(Failure::refused(error, "use another key for another phase"))
        }
        _ => Ok(found),
    }
}

fn has_passed(asked: Option<u32>) -> String {
    asked.map_or("Every phase has passed.".to_owned(), |phase| {
        format!("Phase {phase} has passed.")
    })
}

/// The summary of a phase that has passed before, or of the last one: no model is called.
fn say_passed(
    project: &PhaseProject,
    site: &Project<'_>,
    asked: Option<u32>,
) -> Result<Exit, Failure> {
    let phase = asked.or(project.last_phase()).unwrap_or_default();
    let run = newest_run(site, |head| head.phase == Some(phase))?;
    let recorded = run
        .and_then(|(run, _)| Past::read(&run).ok())
        .and_then(|past| past.outcome().cloned())
        .filter(|outcome| matches!(outcome, Outcome::Done { .. }));
    // A person may have adopted a pass that no run here found.
    let adopted = Outcome::Done {
        rounds: project.state.current.verifier_iteration.max(1),
    };
    let output = site.host.output;
    let pass = project.state.passes.get(&phase);
    summary_of_state(phase, &recorded.unwrap_or(adopted), pass, output);
    output.report(&has_passed(asked));
    Ok(Exit::Done)
}

/// Nothing has changed since the last verification, so another one would only cost.
fn say_stuck(project: &PhaseProject, phase: u32, output: &Output) -> Exit {
    let cause = Cause {
        code: "stuck".to_owned(),
        message: "contracts still fail, and neither specs, source nor verifier have changed since".to_owned(),
        remedy: Some("fix the cause, then: code-commit phase run; or try again without a change: code-commit phase run --retry".to_owned()),
    };
    let round = project.state.current.verifier_iteration;
    let outcome = Outcome::NeedsPerson { round, cause };
    summary_of_state(phase, &outcome, project.state.stuck_on.as_ref(), output);
    let failed = folders::read(&project.tests().join(FAILED_SPECS)).unwrap_or(None);
    let reason = Reason {
        detail: failed.unwrap_or_default(),
        ..Reason::default()
    };
    last_words(phase, &outcome, Some(reason)).print(None, output);
    Exit::from(&outcome)
}

fn summary_of_state(phase: u32, outcome: &Outcome, of: Option<&HoldsFor>, output: &Output) {
    output.object(&json!({
        "event": "summary",
        "phase": phase,
        "outcome": outcome,
        "holds_for": of.cloned().unwrap_or_default(),
        "from_record": true,
    }));
}

/// The phase loop, with what its runs share.
pub(crate) struct Phase<'p> {
    pub(super) project: &'p PhaseProject,
    pub(super) asked: &'p Request,
    pub(super) settings: Settings,
    pub(super) site: &'p Project<'p>,
    pub(super) probed: Probed,
    /// The harness's own folder.
    pub(super) state: PathBuf,
    pub(super) builder: RoleAgents,
    pub(super) verifier: RoleAgents,
    inputs: Inputs,
    redactor: Redactor,
}

impl<'p> Phase<'p> {
    /// Chooses sandbox and agents; gives the plan of a new run, too.
    fn open(
        project: &'p PhaseProject,
        asked: &'p Request,
        site: &'p Project<'p>,
        phase: u32,
    ) -> Result<(Self, Plan), Failure> {
        let Host {
            environment,
            output,
            ..
        } = site.host;
        let options = &asked.options;
        let mut flags = asked.limits.clone();
        flags.sandbox.mode = options.sandbox;
        let settings = config::load(&project.root, &flags, site.host)?;
        let docker_host = environment.docker_host();
        let probed = choose_sandbox(settings.sandbox(), docker_host, output)?;
        if probed.backend == Backend::Off {
            warn_of_commands(project, output);
        }
        let secrets = Secrets::read(&project.root)?;
        let keys = Keys::find(environment, &project.root);
        let redactor = output.strike_out(keys.exposed().chain(secrets.exposed()));
        let trusted = site.trusted.except([project.src(), project.tests()]);
        let finder = AgentFinder {
            secrets: &secrets,
            trusted: &trusted.under(&settings),
            settings: &settings,
            base_url: options.base_url.as_ref(),
            output,
        };
        let models = |flag: &'p Option<String>, own: &'p str| {
            flag.as_deref().or(options.model.as_deref()).unwrap_or(own)
        };
        let builder = models(&options.builder_model, &project.config.builder_model);
        let builder = finder.find(builder, options.escalate.as_deref())?;
        let verifier = models(&options.verifier_model, &project.config.verifier_model);
        let verifier = finder.find(verifier, None)?;
        warn_of_calls(&settings, output);
        let mut inputs = project.inputs(phase)?;
        inputs.builder.model = builder.model();
        inputs.verifier.model = verifier.model();
        (inputs.start.builder, inputs.start.verifier) = (builder.numbers, verifier.numbers);
        let plan = Plan {
            phase,
            key: asked.key.clone(),
            builder_model: builder.model(),
            verifier_model: verifier.model(),
            sandbox: probed.backend,
            start: inputs.start.clone(),
            flags: options.clone(),
        };
        let of = Self {
            project,
            asked,
            settings,
            site,
            probed,
            state: site.state()?,
            builder,
            verifier,
            inputs,
            redactor,
        };
        Ok((of, plan))
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.project.root.join(ABL).join(LOGS)
    }
}

impl Loop for Phase<'_> {
    const KIND: LoopKind = LoopKind {
        step: "iteration",
        work: "phase",
        newest_only: true,
        takes_back: TakesBack::Git,
        ..LoopKind::of::<Self>("phase", resume)
    };
    type Plan = Plan;
    type Ready = ();
    type Fault = AgentFault;
    type World<'w>
        = AgentWorld<'w, Roles<'w>>
    where
        Self: 'w;
    type Ended = Outcome;

    fn phase(plan: &Plan) -> Option<u32> {
        Some(plan.phase)
    }

    fn project(&self) -> &Project<'_> {
        self.site
    }

    fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    fn is_same(&self, asked: &Plan, recorded: &Plan) -> bool {
        asked.phase == recorded.phase
    }

    fn ready(&self, _: &mut Plan, _: Option<Resumed<'_>>) -> Result<(), Failure> {
        Ok(())
    }

    fn new_run(&self, plan: &Plan) -> Result<NewRun, Failure> {
        // A person may have worked on the tree since: a new run takes it as it is.
        let before = newest_run(self.site, |head| head.phase == Some(plan.phase))?;
        if let Some((run, _)) = before
            && self.asked.new
            && code_commit_changes::has_copies(&run)
        {
            self.site.host.output.warn(&format!(
                "{} was killed while a role worked: its changes to protected files were kept",
                records::name(&run)
            ));
        }
        let logs = self.logs();
        // What git ignores stays where a role stashes or cleans.
        std::fs::create_dir_all(&logs)
            .map_err(anyhow::Error::from)
            .and_then(|()| Ok(code_commit_repo::hide_from_git(&logs)?))
            .map_err(records::cannot_begin)?;
        let name = format!("{}-phase{}", Stamp::now().folder_name(), plan.phase);
        let redactor = self.redactor.clone();
        NewRun::create(&logs, &name, redactor, "make the folder writable")
    }

    fn observer(&self, _: &Plan, run: &RunFolder) -> Box<dyn Observer> {
        let (output, run) = (self.site.host.output.clone(), run.clone());
        Box::new(lines::Facts { output, run })
    }

    fn world<'w>(
        &'w self,
        _: &'w Plan,
        (): &'w (),
        context: Context<'w>,
    ) -> Result<AgentWorld<'w, Roles<'w>>, Failure> {
        let builder = self.command_server(Role::Builder)?;
        let verifier = self.command_server(Role::Verifier)?;
        Ok(AgentWorld {
            record: context.record,
            cast: self.roles(&builder, &verifier)?,
            // Users' commands only run by `abl-cmd`.
            shell: ShellSettings {
                cwd: self.project.root.clone(),
                env: Env::default(),
                confinement: Confinement::off(),
                timeout: None,
                limits: Limits::default(),
                hidden: Vec::new(),
                git: None,
            },
            watch: Box::new(Lines::new(self.site.host.output.clone())),
            around: Box::new(move |role| {
                let is_builder = role == Role::Builder.name();
                if is_builder { &builder } else { &verifier }.open()
            }),
            cancel: context.cancel,
            copies: Copies::default(),
            limits: limits(&self.settings),
            used: AgentUsage::of(&context.past.lines),
            holds_for: context.holds_for,
            patience: self.settings.model.wait.map_or(PATIENCE, Duration::from),
            waited: Duration::ZERO,
            session: None,
        })
    }

    fn settle(
        &self,
        world: &mut AgentWorld<'_, Roles<'_>>,
        past: &Past,
    ) -> Result<Vec<Recorded>, Failure> {
        let roles = [Role::Builder, Role::Verifier].into_iter();
        let role_of = |name: &str| roles.clone().find(|role| role.name() == name);
        let run = world.record.folder().path().to_owned();
        let restored = |_: &[String]| {
            let forgotten = code_commit_changes::forget_copies(&run);
            Ok(forgotten.context("cannot remove what a killed run has left")?)
        };
        WORDS.settle::<Phases, _>(world, past, role_of, restored, self.site.host.output)
    }

    fn lead(
        &self,
        plan: &Plan,
        (): &(),
        harness: &mut Journaled<AgentWorld<'_, Roles<'_>>>,
    ) -> Result<Outcome, Stop<AgentFault>> {
        let mut inputs = self.inputs.clone();
        inputs.start = plan.start.clone();
        inputs.start.decider.clone_from(&self.project.decider);
        code_commit_loop_phase::phase(harness, &inputs)
    }

    fn holds_for(&self, plan: &Plan, _: &RunFolder, _: &Outcome, _: Interrupt<'_>) -> HoldsFor {
        project::at_end(&self.project.root, plan.phase)
    }

    fn fault(&self, fault: AgentFault, run: &RunFolder) -> Failure {
        WORDS.fault(fault, run)
    }

    fn unlike_recorded(&self, run: &RunFolder) -> String {
        format!(
            "project.md, prompts and configuration must be unchanged; or move {} away and run the phase again",
            run.path().display()
        )
    }

    fn last_words(&self, plan: &Plan, report: &Report) -> LastWords {
        last_words(plan.phase, &report.ended, report.reason())
    }

    fn members(&self, plan: &Plan, report: &Report) -> Map<String, Value> {
        let members = [
            ("phase", json!(plan.phase)),
            ("outcome", json!(report.ended)),
            ("holds_for", json!(report.holds_for)),
        ];
        members
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}
