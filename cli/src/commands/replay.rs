//! `code-commit replay`: a recorded run once more, in a scratch copy of the project, without a model and without a network; and what if the
//! model had answered otherwise?

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use apply::Lock;
use engine::{
    Answer, Fact, Fault, Finish, Hands as _, Next, Record, ReplayFault, Replayed, Rules, Silent, Step,
    Workshop, drive, facts_of, undo_folders,
};
use guard::Guard;
use logging::{Redactor, RunFolder};
use repo::WorkTree;
use serde_json::json;

use crate::args::ReplayArgs;
use crate::commands::order::{self, Recorded};
use crate::commands::resume::can_go_on;
use crate::commands::run::{asking, build_command};
use crate::commands::wall::{self, Otherwise};
use crate::commands::{runs, spec};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::keys::Keys;
use crate::models;
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
    let scratch = tempfile::tempdir().context("cannot make a scratch folder")?;
    let copy = Copy::make(&tree, &run, scratch.path())?;
    let rules = copy.rules(&plan)?;
    let name = runs::name(&run);
    match (args.from_round, &args.reply) {
        (Some(round), Some(reply)) => {
            let reply = super::read_input(reply)?;
            let reply = String::from_utf8(reply)
                .map_err(|_| Failure::refused(anyhow!("the reply is not UTF-8"), "save it as UTF-8"))?;
            WhatIf { plan, facts, round, reply, name, copy: &copy, environment, output, tree: &tree }
                .answer(rules)
        }
        _ => same_again(&plan, facts, &name, &copy, rules, output),
    }
}

/// The project as it was when the run began: as it is now, with the run's pre-images put back.
struct Copy {
    root: PathBuf,
    state: PathBuf,
}

impl Copy {
    fn make(tree: &WorkTree, run: &Path, scratch: &Path) -> Result<Self, Failure> {
        let (root, state) = (scratch.join("project"), scratch.join("state"));
        let copied = (|| -> anyhow::Result<()> {
            fs::create_dir_all(&root)?;
            fs::create_dir_all(&state)?;
            repo::init(&root)?;
            let tracked = tree.tracked()?.into_iter().map(|file| file.path);
            for path in tracked.chain(tree.dirty()?) {
                copy_file(&tree.root().join(&path), &root.join(&path))
                    .with_context(|| format!("cannot copy {path}"))?;
            }
            for image in apply::pre_images(&undo_folders(run)?)? {
                put(&root, &image.path, image.content.as_deref())
                    .with_context(|| format!("cannot put back {}", image.path))?;
            }
            Ok(())
        })();
        copied.context("cannot copy the project into a scratch folder").map_err(|error| {
            Failure::refused(error, "see that there is room, or set TMPDIR to another folder")
        })?;
        Ok(Self { root, state })
    }

    fn rules(&self, plan: &Plan) -> Result<Rules, Failure> {
        let guard = Guard::open(&self.root, plan.policy()).map_err(anyhow::Error::from)?;
        let lock = Lock::acquire(&self.state, "replay").map_err(anyhow::Error::from)?;
        Ok(Rules { root: self.root.clone(), guard, lock })
    }

    /// How many files the replayed run has changed, and a SHA-256 over their paths and hashes.
    fn changed(&self) -> Result<(usize, String), Failure> {
        let rounds = undo_folders(&self.state).map_err(anyhow::Error::from)?;
        let changed = apply::pre_images(&rounds).map_err(anyhow::Error::from)?;
        let mut text = String::new();
        for image in &changed {
            let now = fs::read(self.root.join(&image.path)).ok();
            let hash = now.map_or_else(|| "nothing".to_owned(), |now| logging::sha256_hex(&now));
            text.push_str(&format!("{} {hash}\n", image.path));
        }
        Ok((changed.len(), logging::sha256_hex(text.as_bytes())))
    }

    fn folder(&self) -> Result<RunFolder, Failure> {
        let folder = RunFolder::create(&self.state, "run", Redactor::default());
        Ok(folder.map_err(anyhow::Error::from)?)
    }
}

/// Only regular files: a link is nothing that a model may have written.
fn copy_file(from: &Path, to: &Path) -> anyhow::Result<()> {
    if fs::symlink_metadata(from).is_ok_and(|found| found.is_file()) {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        fs::copy(from, to)?;
    }
    Ok(())
}

/// Puts a pre-image back, whatever has its place in the copy; of a file that was there its mode is kept.
fn put(root: &Path, path: &str, content: Option<&[u8]>) -> io::Result<()> {
    let path = root.join(path);
    let above = path.ancestors().skip(1).take_while(|above| above.starts_with(root));
    above.filter(|above| above.is_file()).try_for_each(fs::remove_file)?;
    if path.is_dir() {
        fs::remove_dir_all(&path)?;
    }
    match content {
        Some(content) => {
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            fs::OpenOptions::new().write(true).create(true).truncate(true).open(path)?.write_all(content)
        }
        None if path.exists() => fs::remove_file(path),
        None => Ok(()),
    }
}

fn same_again(
    plan: &Plan,
    facts: Vec<Fact>,
    name: &str,
    copy: &Copy,
    rules: Rules,
    output: &Output,
) -> Result<Exit, Failure> {
    let mut silent = Silent;
    let mut record = Record::begin(copy.folder()?, &mut silent).map_err(anyhow::Error::from)?;
    let goes_on = can_go_on(&facts);
    let mut hands = Replayed::new(facts, rules, copy.state.join("undo"));
    match drive(&mut *plan.decide(), &mut hands, &mut record) {
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
    copy: &'w Copy,
    environment: &'w Environment,
    output: &'w Output,
    tree: &'w WorkTree,
}

impl WhatIf<'_> {
    /// Replays up to the round, then applies the other reply and really builds.
    fn answer(&self, rules: Rules) -> Result<Exit, Failure> {
        let Self { plan, round, copy, environment, output, .. } = self;
        let mut silent = Silent;
        let mut record = Record::begin(copy.folder()?, &mut silent).map_err(anyhow::Error::from)?;
        let hands = Replayed::new(self.facts.clone(), rules, copy.state.join("undo"));
        let rules = self.up_to_the_round(hands, &mut record)?;
        let keys = Keys::find(environment, self.tree.root());
        let client = models::open(&plan.settings, &keys, environment, self.tree)?;
        let confinement =
            wall::confine(&super::work_tree(&copy.root)?, plan, Otherwise::Refuse, environment, output)?;
        let mut workshop = Workshop {
            rules,
            model: &*client,
            asking: asking(&plan.settings),
            build: build_command(plan, environment, confinement),
            layout: plan.task.layout(),
            said_log: None,
            cancel: crate::interrupt::watched()?,
        };
        let answer = Answer { reply: self.reply.as_str().into(), finish: Finish::Complete, held_key: false };
        let mut perform = |step: &Step| {
            let fact = workshop.perform(step, &mut record).map_err(failed)?;
            super::show::line(&fact, output);
            Ok::<Fact, Failure>(fact)
        };
        let applied = perform(&Step::Apply { round: *round, answer })?;
        if matches!(applied, Fact::Rejected { .. }) {
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
    fn up_to_the_round(&self, mut hands: Replayed, record: &mut Record<'_>) -> Result<Rules, Failure> {
        let mut decide = self.plan.decide();
        loop {
            match decide.next() {
                Next::Do(Step::Ask { round, .. }) if round == self.round => return Ok(hands.rules),
                Next::Do(step) => {
                    let fact = hands.perform(&step, record).map_err(anyhow::Error::from)?;
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
