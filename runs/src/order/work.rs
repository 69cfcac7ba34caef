//! A work order as a loop of the driver: what is checked and opened before its run, its world and its words.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use code_commit_apply::Lock;
use code_commit_changes::{ChangeEngine, Scope};
use code_commit_dir::{Interrupt, NEVER};
use code_commit_engine::{
    Event, HoldsFor, Journaled, Keep, Outcome, Recorded, Request as _, Stop, Stored,
};
use code_commit_guard::{Guard, Policy};
use code_commit_llm::Model;
use code_commit_logging::{Redactor, RunFolder};
use code_commit_loop_order::{
    Finished as Ended, Inputs, SUMMARY, VERIFY_SCRIPT, Verdict, proposal_schema, still_holds,
};
use code_commit_names::Binds;
use code_commit_perform::{Asking, CommandSettings, Fault, Observer, OrderWorld, Past, Rules};
use code_commit_repo::{Git, WorkTree};
use code_commit_report::{Counts, LastWords, phrases};
use code_commit_runner::{Cancel, Confinement};
use code_commit_settings::{Byproducts, Keys, Origin, Settings};
use serde_json::{Map, Value, json};

use crate::commit::commits::not_committed;
use crate::driver::{Context, Driver, Loop, LoopKind, Report, Resumed};
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::kind::Resumption;
use crate::model::asking;
use crate::order::plan::{self, OrderPlan, Terms, is_over};
use crate::order::preflight::Read;
use crate::order::prepare::{Checked, first, git, spending_of};
use crate::order::unfinished::{
    Unfinished, baseline, branch, clear_up, has_committed, not_restored,
};
use crate::order::{access, folder, preflight, unfinished};
use crate::project::Project;
use crate::records::{self, NewRun, cannot_begin};
use crate::registry::Known;

use crate::{observer, sandbox, verdict};

/// What all orders of one call share.
pub(super) struct Setting<'s> {
    pub host: Host<'s>,
    /// Where run folders are made.
    pub out: &'s Path,
    pub terms: &'s Terms,
    pub settings: &'s Settings,
    pub model: &'s Rc<dyn Model>,
    pub redactor: &'s Redactor,
    pub cancel: &'s Cancel,
}

/// A work order, with what its run needs.
pub(crate) struct Order<'s> {
    pub(super) setting: &'s Setting<'s>,
    pub(super) project: &'s Project<'s>,
    pub(super) read: Read,
    /// The supervisor's name for this work.
    pub(super) key: Option<String>,
    /// Begin a new run, whatever is recorded.
    pub(super) is_new: bool,
    /// Whether one run was asked for by its name.
    pub(super) is_named: bool,
    pub(super) git: Git,
    /// The harness's own folder.
    pub(super) state: PathBuf,
    /// For run folders.
    pub(super) out: PathBuf,
    /// The run that the tree was in the middle of; since then it was restored.
    pub(super) restored: Option<PathBuf>,
}

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
        project: &'s Project<'s>,
        lock: &Lock,
    ) -> Result<Self, Failure> {
        let git = git(project, setting.settings)?;
        Ok(Self {
            restored: clear_up(project, &git, lock)?,
            out: setting.out.to_owned(),
            state: project.state()?,
            key: None,
            is_new: false,
            is_named: false,
            setting,
            project,
            read,
            git,
        })
    }

    /// At work under this lock.
    pub(super) fn live(&self, lock: Lock) -> Driver<'_, Self> {
        Driver::new(self, lock, self.setting.cancel.clone())
    }

    /// The plan of a new run, but for what is looked up when it begins.
    pub(super) fn plan(&self) -> OrderPlan {
        let setting = self.setting;
        OrderPlan {
            kind: Self::KIND.name.to_owned(),
            record_format: code_commit_perform::RECORD_FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            begun_utc: code_commit_logging::Stamp::now().rfc3339(),
            work_order_hash: self.read.order.hash.clone(),
            repo_baseline_commit: String::new(),
            branch: None,
            repo_tree_hash_before: String::new(),
            config_hash: setting.terms.hash(),
            terms: setting.terms.clone(),
            settings: setting.settings.carried(&self.project.bases()),
            key: self.key.clone(),
            sandbox: code_commit_runner::Backend::Off,
            inputs: Stored {
                file: String::new(),
                bytes: 0,
                sha256: String::new(),
            },
            trusted: self.project.trusted.base(),
        }
    }
}

/// Continues a run under its name, with the order and the settings that it began with, and with other limits if given.
fn resume(known: &Known, args: &Resumption, project: &Project<'_>) -> Result<Exit, Failure> {
    let (host, root) = (project.host, &project.root);
    let keys = Keys::find(host.environment, root);
    let redactor = &host.output.strike_out(keys.exposed());
    let folder = RunFolder::open(known.path(root), redactor.clone());
    let (plan, read) = plan::load(known, &folder)
        .map_err(|error| Failure::refused(error, "begin a new run: code-commit order run"))?;
    let mut settings = plan.settings.unpacked(&project.bases());
    settings.put(&args.limits, &Origin::Flag);
    let setting = Setting {
        host,
        out: folder.path().parent().unwrap_or(folder.path()),
        terms: &plan.terms,
        settings: &settings,
        model: &preflight::model(&settings, &keys, host)?.into(),
        redactor,
        cancel: &crate::interrupt::watched(host.cancel)?,
    };
    let lock = project.lock()?;
    let order = Order {
        key: plan.key.clone(),
        is_named: true,
        ..Order::open(read, &setting, project, &lock)?
    };
    order.live(lock).go_on(known).map(|done| done.exit)
}

impl Loop for Order<'_> {
    const KIND: LoopKind = LoopKind {
        step: "attempt",
        work: "order",
        by_content: true,
        own_summary: Some(SUMMARY),
        in_tree: unfinished::in_tree,
        ..LoopKind::of::<Self>("order", resume)
    };
    type Plan = OrderPlan;
    type Ready = Opened;
    type Fault = Fault;
    type World<'w>
        = OrderWorld<'w>
    where
        Self: 'w;
    type Ended = Ended;

    fn project(&self) -> &Project<'_> {
        self.project
    }

    fn redactor(&self) -> &Redactor {
        self.setting.redactor
    }

    fn is_same(&self, asked: &OrderPlan, recorded: &OrderPlan) -> bool {
        recorded.work_order_hash == asked.work_order_hash
            && recorded.terms.hash() == asked.terms.hash()
            && recorded.terms.commit == asked.terms.commit
    }

    fn kept(past: &Past) -> Option<usize> {
        (!is_over(past)).then(|| still_holds(&past.answers))
    }

    fn load(&self, run: &RunFolder, known: &Known) -> anyhow::Result<OrderPlan> {
        Ok(plan::load(known, run)?.0)
    }

    /// Of one that passed and made its commit, all.
    fn held(&self, plan: &OrderPlan, past: &Past) -> Result<usize, Failure> {
        let all = past.answers.len();
        let has_ended = past.outcome().is_some();
        if !has_ended && has_committed(plan, &self.git)? {
            return Ok(all);
        }
        Ok(Self::kept(past).unwrap_or(all))
    }

    /// What it shows and the tree that it restores are those of its beginning.
    fn may_go_on(&self, plan: &OrderPlan, run: &RunFolder) -> Result<(), Failure> {
        let name = records::name(run.path());
        let help = "check out the commit that its run.json names, or begin a new run";
        if run.path().parent() != Some(&*self.out) {
            let error = anyhow!("{name} is in another folder than --out");
            return Err(Failure::refused(error, help));
        }
        if has_committed(plan, &self.git)? {
            return Ok(());
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

    /// Whether it committed what it was to commit, and that commit is in the history, or the tree is as the run left it.
    fn still_holds(&self, _: &OrderPlan, run: &RunFolder, past: &Past) -> Result<bool, Failure> {
        let not_committed = |line: &Event| matches!(line, Event::NotCommitted(_));
        let Some(summary) = plan::summary(run, past).filter(|_| is_over(past)) else {
            return Ok(false);
        };
        if past.lines.iter().any(not_committed) {
            return Ok(false);
        }
        let commit = past.lines.iter().find_map(commit_of);
        if commit.map_or(Ok(false), |commit| self.git.has_in_history(commit))? {
            return Ok(true);
        }
        let after = summary
            .repo_tree_hash_after
            .unwrap_or(summary.repo_tree_hash_before);
        // It leaves out modes and symlinks.
        let now = verdict::of_order(&self.project.trusted, run.path(), &self.read.order, NEVER);
        Ok(past.end().is_some_and(|(_, then)| *then == now) && self.tree_hash()? == after)
    }

    fn ready(
        &self,
        plan: &mut OrderPlan,
        recorded: Option<Resumed<'_>>,
    ) -> Result<Opened, Failure> {
        let (tree, setting) = (self.project.tree()?, self.setting);
        let model = &**setting.model;
        let writable = setting.settings.writable().into_iter().collect();
        sandbox::look_ahead(self.project, setting.settings, writable);
        let Checked {
            guard,
            head,
            dot_gits,
        } = self.check()?;
        let inputs = if let Some((run, past)) = recorded {
            if self.is_named {
                self.may_go_on(plan, run)?;
            }
            plan.branch = branch(head);
            records::pass_over(&past.lines, model);
            let inputs = plan
                .recorded_inputs(&self.read, tree.root(), run, past)
                .map_err(|error| Failure::refused(error, self.unlike_recorded(run)))?;
            self.holds_no_key(&inputs)?;
            inputs
        } else {
            let inputs = self.anew(plan, head)?;
            first(&inputs).check(model, setting.settings)?;
            inputs
        };
        let sealed = access::sealed(self.project, &guard, &dot_gits, setting.settings)?;
        let confinement = access::confine(self.project, &sealed, &dot_gits, setting.settings)?;
        plan.sandbox = confinement.backend;
        Ok(Opened {
            inputs,
            guard: guard.into(),
            confinement,
            sealed,
        })
    }

    fn new_run(&self, plan: &OrderPlan) -> Result<NewRun, Failure> {
        folder::new_run(self, plan)
    }

    fn store(&self, plan: &OrderPlan, ready: &Opened, new: &NewRun) -> Result<Stored, Failure> {
        plan.store(&new.made(), &self.read, &ready.inputs)
            .map_err(cannot_begin)
    }

    fn observer(&self, _: &OrderPlan, run: &RunFolder) -> Box<dyn Observer> {
        let Setting {
            terms, host, model, ..
        } = self.setting;
        let counts = Counts {
            step: "attempt",
            most: terms.max_attempts,
        };
        observer::observer(host.output, model.id(), counts, run)
    }

    /// The artifacts of attempts that are made again go.
    fn dropped(&self, run: &RunFolder, answers: &[Recorded]) -> Result<(), Failure> {
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
        context: Context<'w>,
    ) -> Result<OrderWorld<'w>, Failure> {
        let (setting, project) = (self.setting, self.project);
        let Setting {
            settings,
            host,
            terms,
            ..
        } = *setting;
        let Opened {
            inputs,
            guard,
            confinement,
            sealed,
        } = ready;
        let Context {
            record,
            past,
            lock,
            cancel,
            holds_for,
        } = context;
        let (tree, run) = (project.tree()?, record.folder().path());
        // The order's own cost limit applies if it is lower than that of the settings.
        let asking = Asking {
            spending: spending_of(self.read.order.max_cost, settings),
            ..asking(settings)
        };
        asking
            .spending
            .count(&past.lines, settings.models().first());
        let account = account(inputs, settings, own(tree, run)).of(tree);
        let account = account.asking(Some(self.git.clone()));
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
                timeout: Some(Duration::from_secs(terms.timeout_seconds)),
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
        verdict::of_order(
            &self.project.trusted,
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
            "the tree is restored; continue {run} with code-commit resume {name}, or with the same command"
        );
        Failure::new(exit, fault).help(help)
    }

    /// The verdict (S2 §3).
    fn last_words(&self, _: &OrderPlan, report: &Report<Ended>) -> LastWords {
        let summary = &report.ended.summary;
        let attempts = phrases::count(summary.attempts.len() as u64, Self::KIND.step);
        let brief = summary
            .attempts
            .last()
            .and_then(|last| last.failure_brief.as_ref());
        let failed = brief.and_then(|brief| {
            let (command, code) = (brief.command.as_ref()?, brief.exit_code?);
            Some(format!(": `{command}` exited with {code}"))
        });
        LastWords {
            is_good: summary.verdict == Verdict::Pass,
            verdict: format!(
                "{} ({}) after {attempts}{}",
                summary.verdict.as_str(),
                summary.ended_stage,
                failed.unwrap_or_default()
            ),
            next: help(report),
            ..LastWords::default()
        }
    }

    fn members(&self, _: &OrderPlan, report: &Report<Ended>) -> Map<String, Value> {
        let path = report.run.path().join(SUMMARY);
        let members = [
            ("path", json!(path.to_string_lossy())),
            ("summary", json!(report.ended.summary)),
        ];
        members
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

fn commit_of(line: &Event) -> Option<&str> {
    if let Event::Committed(committed) = line {
        committed.commit.as_deref()
    } else {
        None
    }
}

/// What to do if the model gave no answer.
fn help(report: &Report<Ended>) -> Vec<String> {
    let Outcome::ModelUnavailable { cause, .. } = &report.ended.outcome else {
        return Vec::new();
    };
    let name = records::name(report.run.path());
    let again = (!is_over(&report.past)).then(|| format!("code-commit resume {name}"));
    cause.remedy.clone().into_iter().chain(again).collect()
}

/// Restores what commands change besides the order's files when it passes, unless the configuration keeps it.
fn account(inputs: &Inputs, settings: &Settings, own: Vec<PathBuf>) -> ChangeEngine {
    let may_change = match settings.byproducts() {
        Byproducts::Restore => Policy::scoped(inputs.order.allowed_files.iter().cloned()),
        Byproducts::Keep => Policy::build(Binds::Always)
            .may_write(settings.build.may_write.iter().map(|pattern| &pattern.0)),
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
