//! `spec audit`: an agent compares specs and code; what it finds is kept at once.

use std::path::Path;

use anyhow::anyhow;
use code_commit_engine::{
    Harness as _, Journaled, Next, Pace, Stop, Turn, TurnAdvice, TurnAnswer, Turned,
};
use code_commit_logging::{RunFolder, Stamp};
use code_commit_loop_spec::watch::WatchEvent;
use code_commit_loop_spec::{Files, Role, Specs};
use code_commit_perform::{AgentFault, AgentWorld};
use code_commit_prompt::spec::{Who, audit, system};
use code_commit_runner::Cancel;
use code_commit_settings::Layer;

use crate::agents::limits;
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::records::{NewRun, cannot_begin};
use crate::site::Site;
use crate::spec::history::AUDIT;
use crate::spec::lines::{Ear, Lines};
use crate::spec::options::AgentOptions;
use crate::spec::workspace::{Team, Workspace};
use crate::spec::{act, uuid};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Audited {
    /// The agent has looked at everything that it wanted to.
    Whole,
    /// It was stopped from the outside.
    Interrupted,
    /// The agent could not be used.
    Failed(String),
}

impl Audited {
    pub(super) fn event(&self) -> WatchEvent {
        match self {
            Self::Whole | Self::Failed(_) => WatchEvent::AuditEnded,
            Self::Interrupted => WatchEvent::AuditInterrupted,
        }
    }
}

/// One audit.
pub fn run(root: &Path, args: &AgentOptions, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let site = Site::at(root, host)?;
    let workspace = Workspace::open(&site, args, Layer::default())?;
    let _lock = site.lock()?;
    let lines = Lines::new(output.clone(), &workspace.config.specs);
    lines.watch(&WatchEvent::AuditStarted);
    let audited = perform(&workspace, &workspace.cancel, &lines)?;
    lines.watch(&audited.event());
    match audited {
        Audited::Whole => Ok(Exit::Done),
        Audited::Interrupted => Err(Failure::new(
            Exit::Interrupted,
            anyhow!("the audit was ended"),
        )
        .help("what it has found is in .cuggino/tbd; the same command begins a new one")),
        Audited::Failed(why) => Err(Failure::new(Exit::ModelUnavailable, anyhow!("{why}"))
            .help("mend what stands in the way, then start again")),
    }
}

fn stopped(stop: Stop<AgentFault>, folder: &RunFolder) -> Failure {
    match stop {
        Stop::Fault(fault) => act::WORDS.fault(fault, folder),
        other @ (Stop::Differs(_) | Stop::Unreadable { .. }) => anyhow::Error::from(other).into(),
    }
}

/// The turn, as far as other agents or a wait help; or what the audit ends with.
fn attempts(
    harness: &mut Journaled<AgentWorld<'_, Team>>,
    workspace: &Workspace<'_>,
    folder: &RunFolder,
) -> Result<Result<Box<Turned>, Audited>, Failure> {
    let specs = &workspace.config.specs;
    let mut pace = Pace::new(workspace.agents(), 0);
    loop {
        let system = Some(system(Who::Audit, specs));
        let turn = Turn::<Specs>::new(Role::Audit, audit(specs).into(), system);
        let turned = match harness.perform(pace.lead(turn)) {
            Ok(TurnAnswer::Turned(turned)) => turned,
            Ok(TurnAnswer::LimitReached(limit)) => {
                return Ok(Err(Audited::Failed(limit.cause.message)));
            }
            Err(Stop::Fault(AgentFault::Interrupted)) => return Ok(Err(Audited::Interrupted)),
            Err(stop) => return Err(stopped(stop, folder)),
        };
        match pace.after(&turned) {
            Next::Again if turned.end.then != TurnAdvice::Repeat => {}
            Next::Judge | Next::Again => return Ok(Ok(turned)),
            Next::Other => {}
            Next::Wait(wait) => {
                if harness
                    .perform(wait)
                    .map_err(|stop| stopped(stop, folder))?
                    .is_too_long
                {
                    return Ok(Ok(turned));
                }
            }
        }
    }
}

/// One audit that `cancel` ends early.
pub(super) fn perform(
    workspace: &Workspace<'_>,
    cancel: &Cancel,
    lines: &Lines,
) -> Result<Audited, Failure> {
    let name = format!("{}-{AUDIT}", Stamp::now().folder_name());
    let redactor = workspace.redactor.clone();
    let new = NewRun::create(
        &workspace.runs,
        &name,
        redactor,
        "see that the folder can be written",
    )?;
    let folder = new.folder().clone();
    let id = uuid::v7()?;
    lines.of_run(&folder);
    let ear = Box::new(Ear::new(lines.clone(), &workspace.root, None));
    let record = new
        .record(lines.clone())
        .map_err(cannot_begin)?
        .about(&workspace.root);
    let cast = workspace.team("", &Files::of(&id));
    let world = AgentWorld {
        limits: limits(&workspace.settings),
        session: Some(id),
        ..workspace.world(record, cast, ear, cancel)
    };
    let turned = match attempts(&mut Journaled::new(world, []), workspace, &folder)? {
        Ok(turned) => turned,
        Err(audited) => return Ok(audited),
    };
    if !turned.put_back.is_empty() {
        workspace
            .host
            .output
            .note(&format!("log: {}", folder.path().display()));
    }
    Ok(match turned.end.then {
        TurnAdvice::Repeat => Audited::Interrupted,
        TurnAdvice::Limit(cause) => Audited::Failed(cause.message),
        TurnAdvice::Use => Audited::Whole,
        TurnAdvice::Renew | TurnAdvice::WaitUntil(_) | TurnAdvice::Stop => {
            Audited::Failed(format!("the agent {}", turned.end))
        }
    })
}
