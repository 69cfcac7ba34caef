//! The phase loop as a loop of the one life: its models, its desks, its world and its words.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use code_commit_agent::Kind;
use code_commit_dir::Interrupt;
use code_commit_engine::{HoldsFor, Journaled, Named as _, Outcome, Recorded, Stop};
use code_commit_logging::{Redactor, RunFolder, Stamp};
use code_commit_loop_phase::{Inputs, Phases, Role, Start};
use code_commit_names::ours::ABL;
use code_commit_perform::{
    AgentFault, AgentUsage, AgentWorld, Copies, Guarded, Observer, Past, ShellSettings,
};
use code_commit_runner::{Confinement, Env, Probed};
use code_commit_settings::{Keys, Settings};
use serde_json::{Map, Value};

use super::act::roles::Team;
use super::act::{Plan, Request, WORDS, end};
use crate::agents::{PATIENCE, can_be_told, can_keep, limits, warn_of_calls};
use crate::exit::Failure;
use crate::host::Host;
use crate::life::{Facts, Ground, Loop, Over, TakesBack};
use crate::phase::agents::{Crew, Secrets};
use crate::phase::desk::Counter;
use crate::phase::holds;
use crate::phase::lines::{self, Lines};
use crate::phase::past::LOGS;
use crate::phase::project::Project;
use crate::records::{self, Head, NewRun};
use crate::site::Site;
use crate::trusted::Trusted;

/// The phase loop, with what its runs share.
pub(crate) struct Phase<'p> {
    pub(super) project: &'p Project,
    pub(super) args: &'p Request,
    pub(super) settings: Settings,
    pub(super) site: &'p Site<'p>,
    pub(super) probed: Probed,
    pub(super) state: PathBuf,
    pub(super) builder: Crew,
    pub(super) verifier: Crew,
    pub(super) inputs: Inputs,
    pub(super) desks: BTreeMap<&'static str, Counter>,
    pub(super) redactor: Redactor,
}

impl<'p> Phase<'p> {
    /// Chooses the models and makes the desks; gives the plan of a new run, too.
    pub(super) fn open(
        project: &'p Project,
        args: &'p Request,
        settings: Settings,
        site: &'p Site<'p>,
        probed: Probed,
        phase: u32,
    ) -> Result<(Self, Plan), Failure> {
        let Host {
            environment,
            output,
            ..
        } = site.host;
        let secrets = Secrets::read(&project.root)?;
        let keys = Keys::find(environment, &project.root);
        let redactor = output.strike_out(keys.exposed().chain(secrets.exposed()));
        let trusted = site
            .trusted
            .except([project.src(), project.tests()])
            .under(&settings);
        let choose = |flag: &Option<String>, own: &str, stronger: Option<&str>| {
            let flag = flag.as_deref().or(args.model.as_deref());
            Crew::choose(flag.unwrap_or(own), stronger, &secrets, &trusted)
        };
        let builder = choose(
            &args.builder_model,
            &project.config.builder_model,
            args.escalate.as_deref(),
        )?;
        let verifier = choose(&args.verifier_model, &project.config.verifier_model, None)?;
        let can_work = |kind: Kind| {
            can_keep(kind, &settings)?;
            can_be_told(kind, args.base_url.as_ref(), output)
        };
        builder
            .all()
            .chain(verifier.all())
            .try_for_each(|chosen| can_work(chosen.cli.kind))?;
        warn_of_calls(&settings, output);
        let mut inputs = project.inputs(phase, &builder.first.model, &verifier.first.model)?;
        (inputs.start.builder, inputs.start.verifier) = (builder.numbers, verifier.numbers);
        let (state, desks) = (site.state()?, BTreeMap::new());
        let mut own = Self {
            project,
            args,
            settings,
            site,
            probed,
            state,
            builder,
            verifier,
            inputs,
            desks,
            redactor,
        };
        own.desks = own.desks()?;
        let plan = Plan {
            kind: Self::FACTS.kind.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            phase,
            key: args.key.clone(),
            builder_model: own.inputs.builder.model.clone(),
            verifier_model: own.inputs.verifier.model.clone(),
            sandbox: own.probed.rung,
            start: own.inputs.start.clone(),
            flags: args.clone(),
        };
        Ok((own, plan))
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.project.root.join(ABL).join(LOGS)
    }

    /// A person may have worked on the tree since: a new run takes it as it is.
    fn leave_unfinished(&self, plan: &Plan) -> Result<(), Failure> {
        let is_it = |run: &PathBuf| {
            let head = Head::of(&records::open(run)).unwrap_or_default();
            (head.kind, head.phase) == (plan.kind.clone(), Some(plan.phase))
        };
        let all = self.site.registry().all()?;
        let newest = all
            .iter()
            .map(|known| known.path(&self.site.root))
            .find(is_it);
        if let Some(run) =
            newest.filter(|run| self.args.new && code_commit_changes::has_copies(run))
        {
            self.site.host.output.warn(&format!(
                "{} was killed while a role worked: what that role changed and may not is left as it is now",
                records::name(&run)
            ));
        }
        Ok(())
    }
}

impl Loop for Phase<'_> {
    const FACTS: Facts = Facts {
        kind: "phase",
        work: "phase",
        newest_only: true,
        takes_back: TakesBack::Git,
        ..Facts::PLAIN
    };
    type Plan = Plan;
    type Ready = ();
    type Fault = AgentFault;
    type World<'w>
        = AgentWorld<'w, Team>
    where
        Self: 'w;
    type Ended = Outcome;

    fn phase(plan: &Plan) -> Option<u32> {
        Some(plan.phase)
    }

    fn trusted(&self) -> &Trusted {
        &self.site.trusted
    }

    fn is_same(&self, asked: &Plan, recorded: &Plan) -> bool {
        asked.phase == recorded.phase
    }

    fn ready(&self, _: &mut Plan, _: Option<&RunFolder>) -> Result<(), Failure> {
        Ok(())
    }

    fn new_run(&self, plan: &Plan) -> Result<NewRun, Failure> {
        self.leave_unfinished(plan)?;
        let logs = self.logs();
        // What git ignores stays where a role stashes or cleans.
        std::fs::create_dir_all(&logs)
            .map_err(anyhow::Error::from)
            .and_then(|()| Ok(code_commit_repo::hide_from_git(&logs)?))
            .map_err(records::cannot_begin)?;
        let name = format!("{}-phase{}", Stamp::now().folder_name(), plan.phase);
        NewRun::create(
            &logs,
            &name,
            self.redactor.clone(),
            "make the folder writable",
        )
    }

    fn observer(&self, _: &Plan, _: &RunFolder) -> Box<dyn Observer> {
        Box::new(lines::Facts::new(self.site.host.output.clone()))
    }

    fn world<'w>(
        &'w self,
        _: &'w Plan,
        (): &'w (),
        ground: Ground<'w>,
    ) -> Result<AgentWorld<'w, Team>, Failure> {
        let Ground {
            record,
            past,
            cancel,
            holds_for,
            ..
        } = ground;
        let cast = self.team()?;
        Ok(AgentWorld {
            record,
            cast,
            // Users' commands only run at the desk.
            shell: ShellSettings {
                cwd: self.project.root.clone(),
                env: Env::default(),
                confinement: Confinement::off(),
                timeout: None,
                limits: code_commit_runner::Limits::default(),
                hidden: Vec::new(),
            },
            watch: Box::new(Lines::new(self.site.host.output.clone())),
            around: Box::new(|name| {
                self.desks
                    .get(name)
                    .map_or_else(|| Ok(Box::new(()) as Guarded), Counter::open)
            }),
            cancel,
            copies: Copies::default(),
            limits: limits(&self.settings),
            used: AgentUsage::of(&past.lines),
            holds_for,
            patience: self.settings.wait.value.unwrap_or(PATIENCE),
            waited: Duration::ZERO,
            session: None,
        })
    }

    fn settle(
        &self,
        world: &mut AgentWorld<'_, Team>,
        past: &Past,
    ) -> Result<Vec<Recorded>, Failure> {
        let role_of = |name: &str| {
            [Role::Builder, Role::Verifier]
                .into_iter()
                .find(|role| role.name() == name)
        };
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
        harness: &mut Journaled<AgentWorld<'_, Team>>,
    ) -> Result<Outcome, Stop<AgentFault>> {
        let start = Start {
            decider: self.project.decider.clone(),
            ..plan.start.clone()
        };
        code_commit_loop_phase::phase(
            harness,
            &Inputs {
                start,
                ..self.inputs.clone()
            },
        )
    }

    fn holds_for(&self, plan: &Plan, _: &RunFolder, _: &Outcome, _: Interrupt<'_>) -> HoldsFor {
        holds::verdict(&self.project.root, plan.phase)
    }

    fn fault(&self, fault: AgentFault, run: &RunFolder) -> Failure {
        WORDS.fault(fault, run)
    }

    fn unlike_recorded(&self, run: &RunFolder) -> String {
        format!(
            "project.md, prompts and configuration have to be what they were; or move {} away and run the phase again",
            run.path().display()
        )
    }

    fn tell(&self, plan: &Plan, over: &Over<'_>) -> Result<Map<String, Value>, Failure> {
        Ok(end::tell(self.project, plan.phase, over))
    }
}
