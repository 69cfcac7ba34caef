//! `code-commit replay`: repeats a recorded run in a scratch copy of the project, without a model or a
//! network; also tries a different answer.

mod copy;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use code_commit_engine::{
    Apply, ApplyAnswer, Build, Journaled, Line, Live as _, Outcome, Recorded as Answered, Reply,
    Request as _, Stop,
};
use code_commit_logging::RunFolder;
use code_commit_perform::{
    CommitWorld, Fault, Past, Record, RecordOnly, ReplayFault, Rules, Silent, output_text,
};
use code_commit_report::{Output, printable};
use code_commit_settings::Environment;
use code_commit_timeline::Steps;
use serde::Deserialize as _;
use serde_json::{Value, json};

use self::copy::ScratchCopy;

use crate::commit::plan::Plan;
use crate::commit::run::{Commit, build_command};
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::life::Loop as _;
use crate::model::asking;
use crate::place;
use crate::registry::Known;
pub use crate::row::{Other, Repetition as Request};
use crate::sandbox::{self, Otherwise};
use crate::site::Site;
use crate::{records, text};

/// Replays a run and reports whether the result is the same.
pub fn run(args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let site = Site::here(host)?;
    let known = site.registry().find(args.run.as_deref())?;
    let row = site.row(&known).ok_or_else(|| {
        let name = records::name(&known.path(&site.root));
        let error = anyhow!("{name} was made by code-commit apply, which asks no model");
        Failure::refused(
            error,
            "name another run of code-commit or implement: code-commit runs lists them",
        )
    })?;
    (row.replay)(&known, args, &site)
}

/// Replays a run of a commit loop.
pub(crate) fn commit(known: &Known, args: &Request, site: &Site<'_>) -> Result<Exit, Failure> {
    let (tree, host) = (site.tree()?, site.host);
    let run = known.path(tree.root());
    let folder = records::open(&run);
    let mut plan = Plan::load(&folder, known).map_err(|error| {
        Failure::refused(
            error,
            "name another run of code-commit or implement: code-commit runs lists them",
        )
    })?;
    plan.settings = crate::config::unpacked(&plan.settings, tree.root(), host.environment);
    let past = records::intact(&folder).map_err(|error| {
        Failure::refused(
            error,
            "only a record that is as it was can be replayed: code-commit runs lists the others",
        )
    })?;
    let scratch = code_commit_runner::temporary_folder(&temporary(host.environment))
        .context("cannot make a scratch folder")
        .map_err(|error| {
            Failure::refused(
                error,
                "check that TMPDIR or /tmp is writable and that the disk has space",
            )
        })?;
    let copy = ScratchCopy::make(tree, &run, &past.lines, scratch.path())?;
    let rules = copy.rules(&plan)?;
    let name = records::name(&run);
    match &args.other {
        Some(_) if !known.is_believed() => {
            let error =
                anyhow!("{name} was made elsewhere, and its build would run as its plan says");
            Err(Failure::refused(
                error,
                "import it with --trust if you believe it",
            ))
        }
        Some(Other { round, reply }) => {
            let round = *round;
            let reply = text::read_input(reply)?;
            let reply = String::from_utf8(reply).map_err(|_| {
                Failure::refused(anyhow!("the reply is not UTF-8"), "save it as UTF-8")
            })?;
            WhatIf {
                plan,
                past,
                folder,
                round,
                reply,
                name,
                copy: &copy,
                host,
            }
            .answer(rules)
        }
        None => same_again(&plan, (folder, past), &name, &copy, rules, host.output),
    }
}

fn same_again(
    plan: &Plan,
    (folder, past): (RunFolder, Past),
    name: &str,
    copy: &ScratchCopy,
    rules: Rules,
    output: &Output,
) -> Result<Exit, Failure> {
    let mut harness = Journaled::new(
        copy.world(RecordOnly::new(folder, &past), rules, plan),
        past.answers.clone(),
    );
    match harness.run(|harness| plan.run(harness)) {
        Ok(outcome) => {
            let (changed, hash) = copy.changed()?;
            output
                .object(&json!({ "same": true, "outcome": outcome, "changed_files_sha256": hash }));
            output.report("the same prompts, the same files, the same end");
            output.report_prose(&format!(
                "changed files: {changed}, SHA-256 over their paths and hashes {hash}"
            ));
            Ok(Exit::Done)
        }
        Err(Stop::Fault(ReplayFault::RecordEnds { round })) => Err(Failure::refused(
            anyhow!("the record of {name} ends in round {round}"),
            if Commit::kept(&past).is_some() {
                format!(
                    "only a finished run can be replayed; to finish this one: code-commit resume {name}"
                )
            } else {
                format!(
                    "only a run that was not cut short can be replayed; what it did: code-commit show {name}"
                )
            },
        )),
        Err(stop) => other_end(stop, "round", output),
    }
}

struct WhatIf<'w> {
    plan: Plan,
    past: Past,
    folder: RunFolder,
    round: u32,
    reply: String,
    name: String,
    copy: &'w ScratchCopy,
    host: Host<'w>,
}

impl WhatIf<'_> {
    /// Replays up to the round, then applies the other reply and runs a real build.
    fn answer(self, rules: Rules) -> Result<Exit, Failure> {
        let (round, reply) = (self.round, Reply::of_text(&self.reply));
        let rules = self.up_to_the_round(rules)?;
        let Self {
            plan,
            past,
            copy,
            host,
            ..
        } = self;
        let Host {
            environment,
            output,
            ..
        } = host;
        let of = plan.settings.model.value.first().clone();
        let (tree, folder) = (place::work_tree(&copy.root)?, copy.folder()?);
        let confinement = sandbox::confine(&tree, &plan, Otherwise::Refuse, host)?;
        let mut world = CommitWorld {
            record: Record::begin(folder.clone(), Silent).map_err(anyhow::Error::from)?,
            rules,
            model: std::rc::Rc::new(code_commit_llm::Recorded::new(of, Vec::new())),
            asking: asking(&plan.settings),
            build: build_command(&plan, environment, confinement),
            account: plan.account(&tree),
            codebase: plan.task.codebase().clone(),
            layout: plan.task.layout(),
            said_log: None,
            commits: None,
            holds_for: Box::new(|_, _| code_commit_engine::HoldsFor::default()),
            cancel: crate::interrupt::watched()?,
        };
        let show =
            |line: Line| code_commit_report::steps("round", &Steps::untimed([&line]), output);
        let apply = Apply {
            round,
            reply,
            seen: seen(&past, round),
        };
        let applied = match world.perform(&apply).map_err(failed)? {
            ApplyAnswer::Rejected(rejected) => {
                show(Line::Rejected(rejected.clone()));
                output
                    .object(&json!({ "applied": ApplyAnswer::Rejected(rejected), "built": null }));
                output.report("the reply would be refused");
                return Ok(Exit::Failed);
            }
            ApplyAnswer::Applied(applied) => applied,
        };
        show(Line::Applied(applied.clone()));
        let built = world.perform(&Build { round }).map_err(failed)?;
        show(Line::Built(built.clone()));
        output.object(&json!({ "applied": ApplyAnswer::Applied(applied), "built": built }));
        let log = output_text(&folder, &built.output.stored.file).map_err(anyhow::Error::from)?;
        output.report(printable(log.as_str()).trim_end());
        Ok(if built.passed() {
            Exit::Done
        } else {
            Exit::Failed
        })
    }

    /// Brings the copy to the state that the model of that round found. Returns the rules.
    fn up_to_the_round(&self, rules: Rules) -> Result<Rules, Failure> {
        let Self {
            plan,
            past,
            folder,
            round,
            name,
            copy,
            ..
        } = self;
        let world = copy
            .world(RecordOnly::new(folder.clone(), past), rules, plan)
            .until(*round);
        let mut harness = Journaled::new(world, past.answers.clone());
        match plan.run(&mut harness) {
            Err(Stop::Fault(ReplayFault::Reached { .. })) => Ok(harness.into_world().rules),
            Ok(_) | Err(Stop::Fault(ReplayFault::RecordEnds { .. })) => {
                let why = anyhow!("{name} has no round {round}");
                Err(Failure::refused(
                    why,
                    format!("its rounds: code-commit show {name}"),
                ))
            }
            Err(stop) => Err(anyhow::Error::from(stop).into()),
        }
    }
}

/// The files that the model of a round had seen changed, as the recorded request says.
fn seen(past: &Past, round: u32) -> BTreeMap<String, Option<String>> {
    let is_it = |asked: &&Answered| {
        asked.kind == Apply::KIND
            && asked.request.get("round").and_then(Value::as_u64) == Some(round.into())
    };
    let seen = past
        .answers
        .iter()
        .find(is_it)
        .and_then(|asked| asked.request.get("seen"));
    seen.and_then(|seen| BTreeMap::deserialize(seen).ok())
        .unwrap_or_default()
}

fn temporary(environment: &Environment) -> PathBuf {
    environment
        .all()
        .get(OsStr::new("TMPDIR"))
        .map_or_else(|| "/tmp".into(), PathBuf::from)
}

/// Repeats the decisions of a run from its record alone. Answers, command results and file contents come from there;
/// nothing runs and nothing is written. `tell` says that the end is the same.
pub(crate) fn from_record<T: AsRef<Outcome>>(
    (run, past): (RunFolder, &Past),
    step: &str,
    output: &Output,
    lead: impl FnOnce(&mut Journaled<RecordOnly>) -> Result<T, Stop<ReplayFault>>,
    tell: impl FnOnce(&T),
) -> Result<Exit, Failure> {
    let name = records::name(run.path());
    let mut harness = Journaled::new(RecordOnly::new(run, past), past.answers.clone());
    match harness.run(lead) {
        Ok(ended) => {
            tell(&ended);
            Ok(Exit::Done)
        }
        Err(Stop::Fault(ReplayFault::RecordEnds { round })) => Err(Failure::refused(
            anyhow!("the record of {name} ends in {step} {round}"),
            format!("only a finished run can be replayed; code-commit resume {name} continues it"),
        )),
        Err(stop) => other_end(stop, step, output),
    }
}

/// A replay that did not end like the run: reports the difference, if there is one.
fn other_end(stop: Stop<ReplayFault>, what: &str, output: &Output) -> Result<Exit, Failure> {
    let difference = match stop {
        Stop::Differs(difference) | Stop::Fault(ReplayFault::Differs(difference)) => difference,
        other @ (Stop::Unreadable { .. } | Stop::Fault(_)) => {
            return Err(anyhow::Error::from(other).into());
        }
    };
    output.object(&json!({
        "same": false, "round": difference.round, "what": difference.what,
        "recorded": difference.recorded, "now": difference.now,
    }));
    output.report(&format!(
        "{} of {what} {} differs",
        difference.what, difference.round
    ));
    // Both may be a build's output.
    let [then, now] = [&difference.recorded, &difference.now].map(|text| printable(text));
    output.report(&format!("recorded: {then}\nnow:      {now}"));
    Ok(Exit::Failed)
}

/// Why the other answer could not be tried.
fn failed(fault: Fault) -> Failure {
    if matches!(fault, Fault::Interrupted) {
        return Failure::new(Exit::Interrupted, fault)
            .help("your tree is untouched; the same command tries again");
    }
    anyhow::Error::from(fault).into()
}
