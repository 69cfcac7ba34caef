//! `code-commit replay`: a recorded run once more, in a scratch copy of the project, without a model and without a network; and what if the
//! model had answered otherwise?

mod copy;

use anyhow::{Context as _, anyhow};
use logging::{Redactor, RunFolder};
use perform::{
    Answer, CommitExecutor, Executor as _, Fact, Fault, Finish, Next, Record, ReplayFault, Replayed, Rules,
    Silent, Step, drive, facts_of,
};
use serde_json::json;

use self::copy::ScratchCopy;
use crate::args::ReplayArgs;
use crate::commands::order::{self, Recorded};
use crate::commands::resume::can_go_on;
use crate::commands::run::{asking, build_command};
use crate::commands::wall::{self, Otherwise};
use crate::commands::{runs, spec};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::output::{Output, printable};
use crate::plan::Plan;

/// Replays a run and says whether it came out the same.
pub fn run(args: &ReplayArgs, environment: &Environment, output: &Output) -> Result<Exit, Failure> {
    let tree = super::work_tree(&super::here()?)?;
    let known = runs::find_known(&tree, args.run.as_deref());
    if let Some(past) = spec::history::meant(&tree, args.run.as_deref(), &known) {
        return Err(spec::history::refuse_replay(&past));
    }
    let known = known?;
    let run = known.path(tree.root());
    if Recorded::is_in(&run) {
        return order::replay(args, &known, &tree, output);
    }
    let folder = RunFolder::open(run.clone(), Redactor::default());
    let plan = Plan::load(&folder, &known).map_err(|error| {
        Failure::refused(error, "name another run of code-commit or implement: code-commit runs lists them")
    })?;
    let facts: Vec<Fact> = facts_of(&folder).map_err(|error| {
        Failure::refused(
            error,
            "only a record that is as it was can be replayed: code-commit runs lists the others",
        )
    })?;
    let scratch = runner::temporary_folder(&std::env::temp_dir())
        .context("cannot make a scratch folder")
        .map_err(|error| {
            Failure::refused(error, "see that TMPDIR, or /tmp, can be written and that the disk has room")
        })?;
    let copy = ScratchCopy::make(&tree, &run, &facts, scratch.path())?;
    let rules = copy.rules(&plan)?;
    let name = runs::name(&run);
    match (args.from_round, &args.reply) {
        (Some(round), Some(reply)) => {
            let reply = super::read_input(reply)?;
            let reply = String::from_utf8(reply)
                .map_err(|_| Failure::refused(anyhow!("the reply is not UTF-8"), "save it as UTF-8"))?;
            WhatIf { plan, facts, round, reply, name, copy: &copy, environment, output }.answer(rules)
        }
        _ => same_again(&plan, facts, &name, &copy, rules, output),
    }
}

fn same_again(
    plan: &Plan,
    facts: Vec<Fact>,
    name: &str,
    copy: &ScratchCopy,
    rules: Rules,
    output: &Output,
) -> Result<Exit, Failure> {
    let mut silent = Silent;
    let mut record = Record::begin(copy.folder()?, &mut silent).map_err(anyhow::Error::from)?;
    let goes_on = can_go_on(&facts);
    let mut executor = copy.executor(facts, rules);
    match drive(&mut *plan.decide(), &mut executor, &mut record) {
        Ok(outcome) => {
            let (changed, hash) = copy.changed()?;
            output.object(&json!({ "same": true, "outcome": outcome, "changed_files_sha256": hash }));
            output.report("the same prompts, the same files, the same end");
            output.report_prose(&format!(
                "changed files: {changed}, SHA-256 over their paths and hashes {hash}"
            ));
            Ok(Exit::Done)
        }
        Err(ReplayFault::Differs(difference)) => {
            output.object(&json!({
                "same": false, "round": difference.round, "what": difference.what,
                "recorded": difference.recorded, "now": difference.now,
            }));
            output.report(&format!("{} of round {} differs", difference.what, difference.round));
            // Both may be what a build has printed.
            let [then, now] = [&difference.recorded, &difference.now].map(|text| printable(text));
            output.report(&format!("recorded: {then}\nnow:      {now}"));
            Ok(Exit::Failed)
        }
        Err(ReplayFault::RecordEnds { round }) => Err(Failure::refused(
            anyhow!("the record of {name} ends in round {round}"),
            if goes_on {
                format!(
                    "only a finished run can be replayed; this one goes on with: code-commit resume {name}"
                )
            } else {
                format!(
                    "only a run that was not cut short can be replayed; what it did: code-commit show {name}"
                )
            },
        )),
        Err(other) => Err(anyhow::Error::from(other).into()),
    }
}

struct WhatIf<'w> {
    plan: Plan,
    facts: Vec<Fact>,
    round: u32,
    reply: String,
    name: String,
    copy: &'w ScratchCopy,
    environment: &'w Environment,
    output: &'w Output,
}

impl WhatIf<'_> {
    /// Replays up to the round, then applies the other reply and really builds.
    fn answer(&self, rules: Rules) -> Result<Exit, Failure> {
        let Self { plan, round, copy, environment, output, .. } = self;
        let mut silent = Silent;
        let mut record = Record::begin(copy.folder()?, &mut silent).map_err(anyhow::Error::from)?;
        let executor = copy.executor(self.facts.clone(), rules);
        let rules = self.up_to_the_round(executor, &mut record)?;
        // It is never asked, so what it would need may be gone.
        let nobody = llm::Recorded::new(plan.settings.model.value.clone(), Vec::new());
        let confinement =
            wall::confine(&super::work_tree(&copy.root)?, plan, Otherwise::Refuse, environment, output)?;
        let mut executor = CommitExecutor {
            rules,
            model: &nobody,
            asking: asking(&plan.settings),
            build: build_command(plan, environment, confinement),
            layout: plan.task.layout(),
            said_log: None,
            cancel: crate::interrupt::watched()?,
        };
        let answer = Answer { reply: self.reply.as_str().into(), finish: Finish::Complete, held_key: false };
        let mut perform = |step: &Step| {
            let fact = executor.perform(step, &mut record).map_err(failed)?;
            super::show::line(&fact, output);
            Ok::<Fact, Failure>(fact)
        };
        let applied = perform(&Step::Apply { round: *round, answer })?;
        if matches!(applied, Fact::Rejected { .. }) {
            output.object(&json!({ "applied": applied, "built": null }));
            output.report("the reply would be refused");
            return Ok(Exit::Failed);
        }
        let built = perform(&Step::Build { round: *round })?;
        output.object(&json!({ "applied": applied, "built": built }));
        if let Fact::Built { output: log, .. } = &built {
            output.report(printable(log.as_str()).trim_end());
        }
        Ok(if built.is_passed_build() { Exit::Done } else { Exit::Failed })
    }

    /// The copy is then as the model of that round found it. Gives the rules back.
    fn up_to_the_round(&self, mut executor: Replayed<'_>, record: &mut Record<'_>) -> Result<Rules, Failure> {
        let mut decide = self.plan.decide();
        loop {
            match decide.next() {
                Next::Do(Step::Ask { round, .. }) if round == self.round => return Ok(executor.rules),
                Next::Do(step) => {
                    let fact = executor.perform(&step, record).map_err(anyhow::Error::from)?;
                    decide.learn(&fact);
                }
                Next::Stop(_) => {
                    let why = anyhow!("{} has no round {}", self.name, self.round);
                    return Err(Failure::refused(why, format!("its rounds: code-commit show {}", self.name)));
                }
            }
        }
    }
}

/// Why the other answer could not be tried to its end.
fn failed(fault: Fault) -> Failure {
    if matches!(fault, Fault::Interrupted) {
        return Failure::new(Exit::Interrupted, fault)
            .help("your tree is untouched; the same command tries again");
    }
    anyhow::Error::from(fault).into()
}
