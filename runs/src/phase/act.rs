//! Runs a phase: prepares everything, then gives its run to the one life.

pub(super) mod end;
pub(super) mod roles;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use code_commit_loop_phase::state::Stale;
use code_commit_loop_phase::{Start, first_prompt};
use code_commit_report::Output;
use code_commit_runner::Rung;
use code_commit_settings::{Address, Layer, Sandbox};
use serde::{Deserialize, Serialize};

use crate::agents::Words;
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::life::{Asked, Life};
use crate::phase::access;
use crate::phase::folders::SPECS;
use crate::phase::project::Project;
use crate::phase::work::Phase;
use crate::records::{self, Head};
use crate::registry::Known;
use crate::site::Site;
use crate::{config, estimate, interrupt, resume};

pub(super) const WORDS: Words = Words {
    go_on: "code-commit phase run goes on where it was",
    again: "code-commit phase run",
    worker: "role",
    key_in: "the specs and of project.md",
};

/// How a phase is worked on. The flags are recorded: a run is continued with them under its name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// The phase; the open one or the next one if `None`.
    #[serde(skip)]
    pub phase: Option<u32>,
    /// The model of both roles; the configured ones if `None`.
    #[serde(default)]
    pub model: Option<String>,
    /// The builder's.
    pub builder_model: Option<String>,
    /// The builder's models for repairs, separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate: Option<String>,
    /// The verifier's.
    pub verifier_model: Option<String>,
    /// The service's address for both roles; the agent's default if `None`.
    pub base_url: Option<Address>,
    /// The sandbox around each role; the configured one if `None`.
    pub sandbox: Option<Sandbox>,
    /// Whether a new run begins even if one of the phase is not finished.
    #[serde(skip)]
    pub new: bool,
    /// The supervisor's own name for this work.
    #[serde(skip)]
    pub key: Option<String>,
    /// Whether a phase that is stuck is tried again although nothing has changed.
    #[serde(skip)]
    pub retry: bool,
    /// Tell what the first prompt takes, and send nothing.
    #[serde(skip)]
    pub dry_run: bool,
    /// Settings that override those of all files.
    #[serde(skip)]
    pub layer: Layer,
    /// Time limit of one turn.
    pub turn_timeout: Duration,
    /// How long a role may be silent.
    pub idle_timeout: Duration,
    /// Time limit of one command of `abl-cmd`.
    pub command_timeout: Duration,
}

impl Request {
    fn layer(&self) -> Layer {
        let mut layer = self.layer.clone();
        layer.sandbox.mode = self.sandbox;
        layer
    }
}

/// What a run is to do, as `run.json` has it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    #[serde(rename = "loop")]
    pub(super) kind: String,
    pub(super) version: String,
    pub(super) phase: u32,
    pub(super) key: Option<String>,
    pub(super) builder_model: String,
    pub(super) verifier_model: String,
    pub(super) sandbox: Rung,
    /// Where it began: its journal only makes sense from there.
    pub(super) start: Start,
    pub(super) flags: Request,
}

/// Works on the phase until it passes or the user is needed.
pub fn run(root: &Path, args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let Host {
        environment,
        output,
        ..
    } = host;
    if args.dry_run {
        return forecast(root, args, host);
    }
    let (lock, project) = Project::lock(root, host)?;
    let (site, project) = (Site::at(root, host)?, &project);
    let of_key = run_of_key(&site, args)?;
    let asked = of_key
        .as_ref()
        .map_or(args.phase, |(_, phase)| Some(*phase));
    say_stale(project, asked, output)?;
    let Some(phase) = phase(project, asked)? else {
        end::say_again(
            project,
            project.specs.keys().last().copied().unwrap_or_default(),
            output,
        );
        output.report("Every phase has passed.");
        return Ok(Exit::Done);
    };
    if project.has_passed(phase) && project.moved_on(phase)?.is_none() {
        if let Some((run, _)) = of_key {
            output.note(&format!(
                "{} is already finished; no model was called",
                records::name(&run)
            ));
        }
        end::say_again(project, phase, output);
        output.report(&format!("Phase {phase} has passed."));
        return Ok(Exit::Done);
    }
    refuse_template(project, phase)?;
    if !project.state.phases_completed.contains(&phase) && project.is_committed_as_passed(phase)? {
        output.warn(&format!(
            "a commit says that phase {phase} has passed, but no run here found that; if it is so: code-commit phase trust {phase}"
        ));
    }
    if !args.retry && !args.new && project.is_stuck(phase)? {
        return Ok(end::still_stuck(project, phase, output));
    }
    let settings = config::load(root, args.layer(), host)?;
    let probed = access::choose(settings.sandbox.value, environment.docker_host(), output)?;
    if probed.rung == Rung::Off {
        roles::warn_of_commands(&project.config, output);
    }
    let (loop_of, plan) = Phase::open(project, args, settings, &site, probed, phase)?;
    let (cancel, redactor) = (interrupt::watched()?, loop_of.redactor.clone());
    let life = Life {
        of: &loop_of,
        site: &site,
        lock: lock.into(),
        cancel,
        redactor,
    };
    // Any key continues an unfinished run, and which phases have passed is in `state.json`.
    life.start(
        plan,
        Asked {
            key: None,
            new: args.new,
        },
    )
    .map(|done| done.exit)
}

/// Says which passes do not hold any more, and why.
fn say_stale(project: &Project, asked: Option<u32>, output: &Output) -> Result<(), Failure> {
    let last = asked.or(project.specs.keys().last().copied());
    for phase in project.specs.keys().copied() {
        let moved = if Some(phase) == last {
            project.moved_on(phase)?
        } else {
            None
        };
        let why = match project.stale(phase).or(moved) {
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

/// The roles would take it for the user's text and build it at a cost.
fn refuse_template(project: &Project, phase: u32) -> Result<(), Failure> {
    let mut specs = project.specs.range(..=phase);
    let Some((number, _)) =
        specs.find(|(_, text)| code_commit_loop_phase::spec::left_of_template(text).is_some())
    else {
        return Ok(());
    };
    let error = anyhow!("{SPECS}/phase{number}.md is still the template of code-commit phase init");
    Err(Failure::refused(
        error,
        "write what the phase is for and its contracts; code-commit phase check names the line",
    ))
}

/// Continues a run under its name, with the flags that it began with.
pub(crate) fn resume(
    known: &Known,
    args: &resume::Request,
    site: &Site<'_>,
) -> Result<Exit, Failure> {
    let folder = records::open(&known.path(&site.root));
    let name = records::name(folder.path());
    if site.is_over(known) != Some(false) {
        return Err(records::closed(
            &name,
            "is over, or a newer run of its phase has begun",
        ));
    }
    records::can_be_continued(folder.path())?;
    let plan: Plan = known.plan(&folder)?;
    let request = Request {
        phase: Some(plan.phase),
        layer: args.limits.clone(),
        ..plan.flags
    };
    run(&site.root, &request, site.host)
}

/// Tells what the first prompt takes. Makes nothing, not even the repositories of the roles.
fn forecast(root: &Path, args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let project = Project::look(root, host.environment)?;
    let Some(phase) = phase(&project, args.phase)? else {
        host.output.report("Every phase has passed.");
        return Ok(Exit::Done);
    };
    refuse_template(&project, phase)?;
    let inputs = project.inputs(phase, "", "")?;
    Ok(estimate::tell_of_agent(&first_prompt(&inputs), host.output))
}

/// The run that was begun under this key, and its phase: the key settles which phase is meant.
fn run_of_key(site: &Site<'_>, args: &Request) -> Result<Option<(PathBuf, u32)>, Failure> {
    let Some(key) = &args.key else {
        return Ok(None);
    };
    let of_key = |known: &Known| {
        let path = known.path(&site.root);
        let head = Head::of(&records::open(&path)).filter(|head| head.key.as_ref() == Some(key))?;
        Some((path, head.phase?))
    };
    let past = site.registry().all()?.iter().find_map(of_key);
    if let Some((path, phase)) = past
        .as_ref()
        .filter(|(_, own)| args.phase.is_some_and(|asked| asked != *own))
    {
        let error = anyhow!(
            "the key was used for phase {phase}: {}",
            records::name(path)
        );
        return Err(Failure::refused(error, "use another key for another phase"));
    }
    Ok(past)
}

fn phase(project: &Project, asked: Option<u32>) -> Result<Option<u32>, Failure> {
    match asked {
        Some(number) if project.specs.contains_key(&number) => Ok(Some(number)),
        Some(number) => Err(Failure::refused(
            anyhow!("there is no {SPECS}/phase{number}.md"),
            "write the spec of that phase",
        )),
        None => project.next_phase(),
    }
}
