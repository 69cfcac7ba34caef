//! A work order as a loop of the one life: its plan, its world and its words.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use code_commit_apply::Lock;
use code_commit_changes::{ChangeEngine, Scope};
use code_commit_dir::Interrupt;
use code_commit_engine::{
    HoldsFor, Journaled, Keep, Outcome, Recorded as Answered, Request as _, Stop, Stored,
};
use code_commit_guard::{Guard, Policy};
use code_commit_logging::RunFolder;
use code_commit_loop_order::{
    Finished as Ended, Inputs, SUMMARY, VERIFY_SCRIPT, Verdict, proposal_schema, still_holds,
};
use code_commit_names::Binds;
use code_commit_perform::{Asking, CommandSettings, Fault, Observer, OrderWorld, Past, Rules};
use code_commit_repo::WorkTree;
use code_commit_report::{BAD, Counts, GOOD, printable, printable_name};
use code_commit_runner::Confinement;
use code_commit_settings::{Byproducts, Settings};
use serde_json::{Map, Value, json};

use crate::commit::commits::not_committed;
use crate::exit::{Exit, Failure};
use crate::life::{Facts, Ground, Life, Loop, Over};
use crate::model::asking;
use crate::order::access;
use crate::order::folder;
use crate::order::plan::{FACTS, Kind, OrderPlan};
use crate::order::preflight::{self, Read};
use crate::order::prepare;
use crate::order::recorded::{self, Recorded};
use crate::order::setting::{Order, Setting, not_restored, spending_of};
use crate::order::settle;
use crate::order::unfinished::{Unfinished, baseline, branch};
use crate::records::{self, NewRun, cannot_begin};
use crate::registry::Known;
use crate::site::Site;
use crate::{config, observer, sandbox, verdict};

/// What is opened before the first step.
pub(crate) struct Opened {
    inputs: Inputs,
    guard: Rc<Guard>,
    confinement: Confinement,
    sealed: Vec<PathBuf>,
}

impl<'s> Order<'s> {
    /// Cleans up after a killed run first.
    pub(super) fn open(
        read: Read,
        setting: &'s Setting<'s>,
        site: &'s Site<'s>,
        lock: &Lock,
    ) -> Result<Self, Failure> {
        let (tree, state) = (site.tree()?, site.state()?);
        let git = site.trusted.under(setting.settings).git(tree.top())?;
        let restored = folder::clear_up(&state, tree, &git, lock, setting.host.output)?;
        let out = if setting.goes_on {
            // It is where the record is.
            setting.out.to_owned()
        } else {
            preflight::out(setting.out, tree.root())?
        };
        Ok(Self {
            setting,
            site,
            read,
            git,
            state,
            out,
            restored,
        })
    }

    /// At work under this lock.
    pub(super) fn live(&self, lock: Lock) -> Life<'_, Self> {
        let (cancel, redactor) = (self.setting.cancel.clone(), self.setting.redactor.clone());
        Life {
            of: self,
            site: self.site,
            lock: lock.into(),
            cancel,
            redactor,
        }
    }

    pub(super) fn plan(&self) -> OrderPlan {
        let setting = self.setting;
        OrderPlan {
            kind: Kind::Order,
            record_format: code_commit_perform::RECORD_FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            begun_utc: code_commit_logging::Stamp::now().rfc3339(),
            work_order_hash: self.read.order.hash.clone(),
            repo_baseline_commit: String::new(),
            branch: None,
            repo_tree_hash_before: String::new(),
            config_hash: setting.terms.hash(),
            terms: setting.terms.clone(),
            settings: config::carried(setting.settings, &self.site.root, setting.host.environment),
            key: setting.key.map(str::to_owned),
            sandbox: code_commit_runner::Rung::Off,
            inputs: Stored {
                file: String::new(),
                bytes: 0,
                sha256: String::new(),
            },
            trusted: self.site.trusted.base(),
        }
    }
}

impl Loop for Order<'_> {
    const FACTS: Facts = FACTS;
    type Plan = OrderPlan;
    type Ready = Opened;
    type Fault = Fault;
    type World<'w>
        = OrderWorld<'w>
    where
        Self: 'w;
    type Ended = Ended;

    fn trusted(&self) -> &crate::trusted::Trusted {
        &self.site.trusted
    }

    fn is_same(&self, asked: &OrderPlan, recorded: &OrderPlan) -> bool {
        recorded.is_of(&asked.work_order_hash, &asked.terms)
    }

    fn kept(past: &Past) -> Option<usize> {
        (!folder::is_over(past)).then(|| still_holds(&past.answers))
    }

    fn load(&self, run: &RunFolder, known: &Known) -> anyhow::Result<OrderPlan> {
        Ok(Recorded::load(known, run.clone())?.plan)
    }

    /// What it shows and the tree that it restores are those of its beginning.
    fn may_go_on(&self, plan: &OrderPlan, run: &RunFolder) -> Result<(), Failure> {
        let name = records::name(run.path());
        let help = "check out the commit that its run.json names, or begin a new run";
        if run.path().parent() != Some(&*self.out) {
            let error = anyhow!("{name} is in another folder than --out");
            return Err(Failure::refused(error, help));
        }
        let is_checked_out =
            self.git.commit_of("HEAD")?.as_deref() == Some(&plan.repo_baseline_commit);
        let is_restored = self.restored.as_deref() == Some(run.path());
        if is_checked_out && (is_restored || self.tree_hash()? == plan.repo_tree_hash_before) {
            return Ok(());
        }
        let error = anyhow!("the tree is not the one that {name} began with");
        Err(Failure::refused(error, help))
    }

    fn still_holds(&self, _: &OrderPlan, run: &RunFolder, past: &Past) -> Result<bool, Failure> {
        settle::still_holds(self, run, past)
    }

    fn ready(&self, plan: &mut OrderPlan, run: Option<&RunFolder>) -> Result<Opened, Failure> {
        let (tree, setting) = (self.site.tree()?, self.setting);
        let model = &**setting.model;
        let (guard, at) = prepare::check(self)?;
        let inputs = if let Some(run) = run {
            if setting.goes_on {
                self.may_go_on(plan, run)?;
            }
            plan.branch = branch(at.1);
            let past = Past::read_if_begun(run.path()).map_err(anyhow::Error::from)?;
            records::pass_over(&past.lines, model);
            recorded::inputs((run, &past), plan, &self.read, tree.root())
                .map_err(|error| Failure::refused(error, self.unlike_recorded(run)))?
        } else {
            prepare::anew(self, plan, at)?
        };
        prepare::holds_no_key(&inputs, setting.redactor)?;
        if run.is_none() {
            prepare::first(&inputs).check(model, setting.settings)?;
        }
        let sealed = access::sealed(tree, &guard, setting.settings)?;
        let confinement = access::confine(tree, &sealed, setting.settings, setting.host)?;
        plan.sandbox = confinement.rung;
        Ok(Opened {
            inputs,
            guard: guard.into(),
            confinement,
            sealed,
        })
    }

    fn new_run(&self, plan: &OrderPlan) -> Result<NewRun, Failure> {
        folder::new_run(
            &self.out.join(plan.run_id()),
            self.site.tree()?,
            self.setting,
        )
    }

    fn store(&self, plan: &OrderPlan, ready: &Opened, new: &NewRun) -> Result<Stored, Failure> {
        recorded::store(new.folder(), plan, &self.read, &ready.inputs).map_err(cannot_begin)
    }

    fn observer(&self, _: &OrderPlan, run: &RunFolder) -> Box<dyn Observer> {
        let Setting {
            terms, host, model, ..
        } = self.setting;
        let (counts, log) = (
            Counts::Attempts(terms.max_attempts),
            run.path().display().to_string(),
        );
        observer::observer(host.output, model.id(), counts, run, log)
    }

    /// The artifacts of attempts that are made again go.
    fn dropped(&self, run: &RunFolder, answers: &[Answered]) -> Result<(), Failure> {
        for artifact in answers.iter().filter(|entry| entry.kind == Keep::KIND) {
            let file = artifact
                .request
                .get("file")
                .and_then(Value::as_str)
                .unwrap_or_default();
            code_commit_dir::remove(&run.path().join(file))
                .context("cannot remove an artifact of the attempt that is made again")?;
        }
        Ok(())
    }

    fn world<'w>(
        &'w self,
        plan: &'w OrderPlan,
        ready: &'w Opened,
        ground: Ground<'w>,
    ) -> Result<OrderWorld<'w>, Failure> {
        let Self { setting, site, .. } = self;
        let Setting {
            settings,
            host,
            terms,
            ..
        } = **setting;
        let Opened {
            inputs,
            guard,
            confinement,
            sealed,
        } = ready;
        let Ground {
            record,
            past,
            lock,
            cancel,
            holds_for,
        } = ground;
        let (tree, run) = (site.tree()?, record.folder().path());
        // The order's own cost limit applies if it is lower than that of the settings.
        let asking = Asking {
            spending: spending_of(self.read.order.max_cost, settings),
            ..asking(settings)
        };
        asking
            .spending
            .count(&past.lines, settings.model.value.first());
        let account = account(inputs, settings, own(tree, run)).of(tree);
        let account = sandbox::in_overlay(account, tree, confinement)?;
        let (git, commit) = (self.git.clone(), &plan.repo_baseline_commit);
        let mut baseline = baseline(git, commit, plan.branch.as_deref());
        let warning = baseline
            .begin(guard, run, own(tree, run))
            .map_err(cannot_begin)?;
        if let Some(warning) = warning {
            host.output.warn(&warning.message);
        }
        // From now on the tree is in the middle of this run.
        let unfinished = Unfinished::of(run, &baseline, false);
        unfinished.write(&self.state).map_err(Failure::no_record)?;
        Ok(OrderWorld {
            record,
            verify_script: VERIFY_SCRIPT,
            rules: Rules {
                root: tree.root().to_owned(),
                guard: Rc::clone(guard),
                lock,
            },
            model: Rc::clone(setting.model),
            asking,
            schema: proposal_schema(inputs.form),
            commands: CommandSettings {
                env: sandbox::build_env(settings, host.environment),
                timeout: Duration::from_secs(terms.timeout_seconds),
                limits: sandbox::limits(settings),
                confinement: confinement.clone(),
                sealed: sealed.clone(),
            },
            account,
            baseline,
            holds_for,
            cancel,
        })
    }

    fn lead(
        &self,
        _: &OrderPlan,
        ready: &Opened,
        harness: &mut Journaled<OrderWorld<'_>>,
    ) -> Result<Ended, Stop<Fault>> {
        code_commit_loop_order::order(harness, &ready.inputs)
    }

    fn ended(&self, ended: &Ended, world: &mut OrderWorld<'_>) -> Result<(), Failure> {
        // Without the note, the journal alone says that the run has committed.
        world.record.sync().context("cannot keep a record")?;
        Unfinished::forget(&self.state)?;
        let Some(why) = &ended.not_committed else {
            return Ok(());
        };
        let name = records::name(world.record.folder().path());
        Err(not_committed(why, "the order has passed", &name))
    }

    /// Restores the tree; the run can be resumed.
    fn stopped(&self, world: &mut OrderWorld<'_>) -> Result<(), Failure> {
        let run = world.record.folder().clone();
        let warnings = world
            .put_back()
            .map_err(|error| not_restored(error, run.path()))?;
        let output = self.setting.host.output;
        warnings
            .iter()
            .for_each(|warning| output.warn(&warning.message));
        Ok(Unfinished::of(run.path(), &world.baseline, true).write(&self.state)?)
    }

    fn holds_for(
        &self,
        _: &OrderPlan,
        run: &RunFolder,
        _: &Outcome,
        interrupt: Interrupt<'_>,
    ) -> HoldsFor {
        let around = self.site.trusted.surroundings().ok();
        verdict::of_order(
            &self.site.root,
            around,
            run.path(),
            &self.read.order,
            interrupt,
        )
    }

    /// The tree is restored, and the run can be resumed.
    fn fault(&self, fault: Fault, run: &RunFolder) -> Failure {
        let exit = if matches!(fault, Fault::KeyInPrompt { .. }) {
            Exit::Refused
        } else if matches!(fault, Fault::Interrupted) {
            Exit::Interrupted
        } else {
            Exit::Fault
        };
        let (name, run) = (records::name(run.path()), run.path().display());
        let help = format!(
            "the tree is as it was; code-commit resume {name} goes on with {run}, and so does the same command"
        );
        Failure::new(exit, fault).help(help)
    }

    /// Prints the verdict and the path of the summary (S2 §3).
    fn tell(&self, _: &OrderPlan, over: &Over<'_, Ended>) -> Result<Map<String, Value>, Failure> {
        let (output, path) = (over.output, over.run.path().join(SUMMARY));
        let summary = &over.ended.summary;
        let style = if summary.verdict == Verdict::Pass {
            GOOD
        } else {
            BAD
        };
        let tries = if summary.attempts.len() == 1 {
            "attempt"
        } else {
            "attempts"
        };
        let verdict = output.paint(style, summary.verdict.as_str());
        let attempts = summary.attempts.len();
        let brief = summary
            .attempts
            .last()
            .and_then(|last| last.failure_brief.as_ref());
        let failed = brief.and_then(|brief| {
            let command = printable_name(brief.command.as_ref()?);
            Some(format!(": `{command}` failed with {}", brief.exit_code?))
        });
        output.report(&format!(
            "{verdict} ({}) after {attempts} {tries}{}",
            summary.ended_stage,
            failed.unwrap_or_default()
        ));
        for change in over.changes {
            output.report(&code_commit_report::file_line(&change.stat(), output));
        }
        output.report(&path.display().to_string());
        if let Some(help) = help(over) {
            output.note(&format!("help: {}", printable(&help)));
        }
        let members = [
            ("path", json!(path.to_string_lossy())),
            ("summary", json!(summary)),
        ];
        Ok(members
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect())
    }
}

/// The hint if the model gave no answer.
fn help(over: &Over<'_, Ended>) -> Option<String> {
    let Outcome::ModelUnavailable { cause, .. } = &over.ended.outcome else {
        return None;
    };
    let name = records::name(over.run.path());
    let again =
        (!folder::is_over(over.past)).then(|| format!("code-commit resume {name} asks again"));
    let parts: Vec<String> = cause.remedy.clone().into_iter().chain(again).collect();
    Some(parts.join("; ")).filter(|help| !help.is_empty())
}

/// Restores what commands change besides the order's files when it passes, unless the configuration keeps it.
fn account(inputs: &Inputs, settings: &Settings, own: Vec<PathBuf>) -> ChangeEngine {
    let may_change = match settings.byproducts.value {
        Byproducts::Restore => Policy::scoped(inputs.order.allowed_files.iter().cloned()),
        Byproducts::Keep => Policy::build(Binds::Always)
            .may_write(settings.may_write.iter().map(|pattern| &pattern.value)),
    };
    ChangeEngine::new(Scope {
        who: "a command".into(),
        may_change,
        own,
        ..Scope::default()
    })
}

/// What the harness itself writes into the tree.
fn own(tree: &WorkTree, run: &Path) -> Vec<PathBuf> {
    let state = PathBuf::from(code_commit_names::ours::STATE);
    let out = verdict::out_in_tree(tree.root(), run).into_iter();
    out.chain([state]).collect()
}
