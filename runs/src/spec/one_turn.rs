//! One turn of an agent apart from a run: `spec audit` compares specs and code, and what it finds is kept at once; in `spec plan` a
//! person talks with an agent about specs and backlog.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::anyhow;
use code_commit_agent::{Home, Spawn};
use code_commit_changes::BACKUP;
use code_commit_engine::{Harness as _, Journaled, Next, Pace, Stop, Turn, TurnAdvice, TurnAnswer};
use code_commit_logging::{RunFolder, Stamp};
use code_commit_loop_spec::watch::WatchEvent;
use code_commit_loop_spec::{Role, STORE, Specs};
use code_commit_perform::{AgentFault, AgentWorld, watch_over};
use code_commit_prompt::spec::{self, Who, system};
use code_commit_report::printable;
use code_commit_runner::Cancel;
use code_commit_settings::spec::Options;

use crate::agents::limits;
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::project::Project;
use crate::records::cannot_begin;
use crate::spec::observers::Watcher;
use crate::spec::run::WORDS;
use crate::spec::store::uuid_v7;
use crate::spec::workspace::{Roles, Spec};

/// The ends of the names of their folders.
pub(crate) const AUDIT: &str = "audit";
pub(crate) const PLAN: &str = "plan";
/// What the agent changed in a talk and may not.
const TAKEN: &str = "left";

/// One audit.
pub fn audit(root: &Path, options: &Options, host: Host<'_>) -> Result<Exit, Failure> {
    let spec = Spec::open(
        Project::at(root, host)?,
        options.clone(),
        &code_commit_settings::Options::default(),
    )?;
    let _lock = spec.workspace.project.lock()?;
    spec.lines.watch(&WatchEvent::AuditStarted);
    spec.audit(&spec.cancel).map(|()| Exit::Done)
}

impl Spec<'_> {
    /// One audit that `cancel` ends early; says how it ended.
    pub(super) fn audit(&self, cancel: &Cancel) -> Result<(), Failure> {
        let audited = self.audited(cancel);
        self.lines.watch(&match &audited {
            Err(failure) if failure.exit == Exit::Interrupted => WatchEvent::AuditInterrupted,
            Ok(()) | Err(_) => WatchEvent::AuditEnded,
        });
        audited
    }

    fn audited(&self, cancel: &Cancel) -> Result<(), Failure> {
        let new = self.new_folder(&format!("-{AUDIT}"))?;
        let folder = new.folder().clone();
        let record = new
            .record(self.lines.of_run(&folder))
            .map_err(cannot_begin)?;
        let record = record.about(self.workspace.root());
        let world = AgentWorld {
            limits: limits(&self.workspace.settings),
            cancel: cancel.clone(),
            ..self.world_of(record, &uuid_v7(), "", Watcher::new(self, None))
        };
        let unavailable = |why: String| {
            Failure::new(Exit::ModelUnavailable, anyhow!(why))
                .help("fix the cause, then start again")
        };
        let interrupted = || {
            Failure::new(Exit::Interrupted, anyhow!("the audit was ended"))
                .help("what it has found is in .cuggino/tbd; the same command begins a new one")
        };
        let turned = match self.ask(&mut Journaled::new(world, [])) {
            Ok(TurnAnswer::Turned(turned)) => turned,
            Ok(TurnAnswer::LimitReached(limit)) => return Err(unavailable(limit.cause.message)),
            Err(Stop::Fault(AgentFault::Interrupted)) => return Err(interrupted()),
            Err(Stop::Fault(fault)) => return Err(WORDS.fault(fault, &folder)),
            Err(stop @ (Stop::Differs(_) | Stop::Unreadable { .. })) => {
                return Err(anyhow::Error::from(stop).into());
            }
        };
        if !turned.put_back.is_empty() {
            let output = self.workspace.project.host.output;
            output.note(&format!("log: {}", folder.path().display()));
        }
        match turned.end.then {
            TurnAdvice::Use => Ok(()),
            TurnAdvice::Repeat => Err(interrupted()),
            TurnAdvice::Limit(cause) => Err(unavailable(cause.message)),
            TurnAdvice::Renew | TurnAdvice::WaitUntil(_) | TurnAdvice::Stop => {
                Err(unavailable(format!("the agent {}", turned.end)))
            }
        }
    }

    /// The turn, as far as other agents or a wait help.
    fn ask(
        &self,
        harness: &mut Journaled<AgentWorld<'_, Roles>>,
    ) -> Result<TurnAnswer, Stop<AgentFault>> {
        let specs = &self.workspace.config.specs;
        let mut pace = Pace::new(self.agents, 0);
        loop {
            let system = Some(system(Who::Audit, specs));
            let turn = Turn::<Specs>::new(Role::Audit, spec::audit(specs).into(), system);
            let answer = harness.perform(pace.lead(turn))?;
            let TurnAnswer::Turned(turned) = &answer else {
                return Ok(answer);
            };
            match pace.after(turned) {
                Next::Again if turned.end.then != TurnAdvice::Repeat => {}
                Next::Judge | Next::Again => return Ok(answer),
                Next::Other => {}
                Next::Wait(wait) => {
                    if harness.perform(wait)?.is_too_long {
                        return Ok(answer);
                    }
                }
            }
        }
    }
}

/// Hands the terminal to the agent; its exit code is ours. What it may not write is put back when it is over.
pub fn plan(root: &Path, options: &Options, host: Host<'_>) -> Result<Exit, Failure> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Failure::refused(
            anyhow!("spec plan needs a terminal"),
            "write the task into a file below .cuggino/backlog yourself",
        ));
    }
    let spec = Spec::prepare(
        Project::at(root, host)?,
        options.clone(),
        &code_commit_settings::Options::default(),
    )?;
    // The agent gets the terminal and handles Ctrl-C itself.
    crate::interrupt::watch_but_the_keys(&spec.cancel)?;
    let workspace = &spec.workspace;
    let _lock = workspace.project.lock()?;
    let name = format!("{}-{PLAN}", Stamp::now().folder_name());
    let scratch = RunFolder::create(&workspace.store.runs, &name, spec.redactor.clone())
        .map_err(|error| Failure::refused(error, "make the folder writable"))?;
    let mut access = workspace.access();
    let store = workspace.root().join(STORE);
    access.read_only.retain(|path| *path != store);
    let role = spec.role(workspace.watched_plan(), access);
    let system = system(Who::Plan, &workspace.config.specs);
    let spawn = Spawn {
        system_prompt: Some(&system),
        model: role.worker.model.as_deref(),
        // A person is there to be asked.
        permissions: code_commit_agent::Permissions::Ask,
        env: role.env.clone(),
        extra_env: role.worker.extra_env.clone(),
        key: role.worker.key.clone(),
        home: Home::User,
        ..Spawn::new(&role.cwd, "", &role.cwd, &role.confinement)
    };
    let (done, put_back) = watch_over(&role.watched, TAKEN, scratch.path(), || {
        code_commit_agent::interactive(&role.worker.cli, &spawn, &spec.cancel)
    })
    .map_err(|error| WORDS.fault(error, &scratch))?;
    let other = scratch.path().join(BACKUP).join(TAKEN);
    for path in &put_back {
        host.output.warn(&format!(
            "{} may not be changed while planning: it was restored; the other version is in {}",
            printable(path),
            other.display()
        ));
    }
    Ok(Exit::Handed(done.map_err(anyhow::Error::from)?))
}
