//! The commit loops as loops of the one life: what is opened for a run, its world, its last words.

use std::ffi::OsString;
use std::rc::Rc;

use anyhow::anyhow;
use code_commit_apply::Lock;
use code_commit_changes::ChangeEngine;
use code_commit_dir::Interrupt;
use code_commit_engine::{HoldsFor, Journaled, Outcome, Stop, Stored};
use code_commit_guard::Guard;
use code_commit_llm::Model;
use code_commit_logging::{Redactor, RunFolder};
use code_commit_loop_commit::still_holds;
use code_commit_names::ours::AGENT_CONFIG;
use code_commit_perform::{BuildCommand, CommitWorld, Fault, Observer, Past, Rules};
use code_commit_repo::WorkTree;
use code_commit_report::Counts;
use code_commit_runner::Confinement;
use code_commit_settings::{Environment, Keys, Layer};
use serde_json::{Map, Value};

use super::begun::{first, guard, seal};
use super::files::{self, SaidLog};
use super::inputs;
use super::plan::{Plan, Task};
use super::request::Request;
use super::{begun, changed, commits, fault, tree_checks};
use crate::exit::Failure;
use crate::gitignore::{ADDED, AddedLine, hide_agent_config};
use crate::life::{Facts, Finished, Ground, Life, Loop, Over, short_log};
use crate::model::asking;
use crate::records::{self, NewRun};
use crate::registry::Known;
use crate::sandbox::{self, Otherwise};
use crate::site::Site;
use crate::trusted::Trusted;
use crate::{config, interrupt, observer, preflight, verdict};

/// The two commit loops.
pub(crate) struct Commit<'c> {
    site: &'c Site<'c>,
    tree: &'c WorkTree,
    keys: &'c Keys,
    redactor: Redactor,
    from: From<'c>,
    without_sandbox: Otherwise,
}

/// Where a run comes from.
pub(super) enum From<'c> {
    /// A command with its inputs; it may go on with an unfinished run.
    Command(&'c Request, &'c inputs::Ready),
    /// A recorded run.
    Record {
        /// Go on even if files have changed since the run was stopped.
        force: bool,
        /// Limits that replace the original ones.
        limits: &'c Layer,
    },
    /// A caller that has opened a model.
    Caller(Rc<dyn Model>),
}

/// What is opened before the first step.
pub(crate) struct Opened {
    /// What the model may write.
    guard: Rc<Guard>,
    model: Rc<dyn Model>,
    /// Removed after the run if it is empty.
    _said_log: Option<SaidLog>,
}

impl<'c> Commit<'c> {
    pub(super) fn new(site: &'c Site<'c>, keys: &'c Keys, from: From<'c>) -> Result<Self, Failure> {
        let redactor = site.host.output.strike_out(keys.exposed());
        let tree = site.tree()?;
        Ok(Self {
            site,
            tree,
            keys,
            redactor,
            from,
            without_sandbox: Otherwise::Refuse,
        })
    }

    /// At work under this lock; from now on Ctrl-C is heard.
    pub(super) fn live(&self, lock: Lock) -> Result<Life<'_, Self>, Failure> {
        let (cancel, redactor) = (interrupt::watched()?, self.redactor.clone());
        Ok(Life {
            of: self,
            site: self.site,
            lock: lock.into(),
            cancel,
            redactor,
        })
    }

    fn open(&self, plan: &Plan) -> Result<Rc<dyn Model>, Failure> {
        commits::can_commit(self.site, plan)?;
        let model = self
            .site
            .host
            .models
            .open(&plan.settings, self.keys, self.site.host)?;
        Ok(model.into())
    }

    /// Opens a new run, and stores what was made for it.
    fn begun(
        &self,
        plan: &mut Plan,
        args: &Request,
        ready: &inputs::Ready,
    ) -> Result<(Guard, Rc<dyn Model>), Failure> {
        let (root, output) = (self.tree.root(), self.site.host.output);
        let model = self.open(plan)?;
        first(plan).check(&*model, &plan.settings)?;
        let theirs = ready.theirs(root);
        let mut guard = tree_checks::look_at(self.site, plan, theirs.as_ref(), args)?;
        ready.store(root, output)?;
        plan.added_line = self.hide_agent_config(plan)?;
        if plan.added_line.is_some() {
            guard = begun::guard(self.site, plan)?;
        }
        seal(self.tree, &guard, plan)?;
        Ok((guard, model))
    }

    /// Keeps keys and records out of git (S1 §Safety). S0 may have none of them here.
    fn hide_agent_config(&self, plan: &Plan) -> Result<Option<AddedLine>, Failure> {
        let (root, output) = (self.tree.root(), self.site.host.output);
        if matches!(plan.task, Task::Implement { .. }) && !root.join(AGENT_CONFIG).exists() {
            return Ok(None);
        }
        let added = hide_agent_config(self.site.trusted.surroundings()?, root)?;
        if added.is_some() {
            output.note(ADDED);
        }
        Ok(added)
    }

    /// Opens a run that goes on.
    fn again(
        &self,
        plan: &mut Plan,
        limits: &Layer,
        run: &RunFolder,
    ) -> Result<(Guard, Rc<dyn Model>), Failure> {
        let (root, environment) = (self.tree.root(), self.site.host.environment);
        // A missing build would fail every round, and each repair would be paid for.
        preflight::build_command(root, &plan.settings.build.value, environment)
            .map_err(|missing| Failure::refused(anyhow!(missing.what), missing.hint))?;
        plan.settings = config::unpacked(&plan.settings, root, environment);
        plan.settings.put_flags(limits.clone());
        self.hide_agent_config(plan)?;
        preflight::price(&plan.settings)?;
        let past = Past::read_if_begun(run.path()).map_err(anyhow::Error::from)?;
        let model = self.open(plan)?;
        records::pass_over(&past.lines, &*model);
        Ok((guard(self.site, plan)?, model))
    }
}

impl Loop for Commit<'_> {
    const FACTS: Facts = Facts {
        kind: "commit",
        ..Facts::PLAIN
    };
    type Plan = Plan;
    type Ready = Opened;
    type Fault = Fault;
    type World<'w>
        = CommitWorld<'w>
    where
        Self: 'w;
    type Ended = Outcome;

    fn kind(plan: &Plan) -> &'static str {
        plan.task.kind()
    }

    fn load(&self, run: &RunFolder, known: &Known) -> anyhow::Result<Plan> {
        Plan::load(run, known)
    }

    fn trusted(&self) -> &Trusted {
        &self.site.trusted
    }

    fn is_same(&self, asked: &Plan, recorded: &Plan) -> bool {
        let settings = config::carried(
            &asked.settings,
            self.tree.root(),
            self.site.host.environment,
        );
        settings.has_same_values(&recorded.settings) && asked.asks_for() == recorded.asks_for()
    }

    /// It can go on if it was killed, or ended because the model gave no answer or the machine was unfit, and its changes
    /// were not reverted.
    fn kept(past: &Past) -> Option<usize> {
        let kept = still_holds(&past.answers, past.outcome());
        (past.outcome().is_none() || kept < past.answers.len()).then_some(kept)
    }

    fn may_go_on(&self, plan: &Plan, run: &RunFolder) -> Result<(), Failure> {
        changed::refuse(self.tree, plan, run, self.site.host.environment)
    }

    fn ready(&self, plan: &mut Plan, run: Option<&RunFolder>) -> Result<Opened, Failure> {
        let (guard, model) = match (&self.from, run) {
            (From::Command(args, ready), None) => self.begun(plan, args, ready)?,
            (From::Command(..), Some(run)) => self.again(plan, &Layer::default(), run)?,
            (From::Record { force, limits }, Some(run)) => {
                if !force {
                    self.may_go_on(plan, run)?;
                }
                self.again(plan, limits, run)?
            }
            (From::Record { .. }, None) => (guard(self.site, plan)?, self.open(plan)?),
            (From::Caller(model), _) => (guard(self.site, plan)?, Rc::clone(model)),
        };
        Ok(Opened {
            guard: guard.into(),
            model,
            _said_log: SaidLog::open(&plan.task, self.site, run.is_some())?,
        })
    }

    fn new_run(&self, plan: &Plan) -> Result<NewRun, Failure> {
        files::record(&plan.task, self.tree, self.redactor.clone())
    }

    fn store(&self, plan: &Plan, _: &Opened, new: &NewRun) -> Result<Stored, Failure> {
        new.store_first(&plan.task.layout().query(1), &plan.first_prompt())?;
        let settings =
            config::carried(&plan.settings, self.tree.root(), self.site.host.environment);
        new.store(&Plan {
            settings,
            ..plan.clone()
        })
    }

    fn observer(&self, plan: &Plan, run: &RunFolder) -> Box<dyn Observer> {
        let (log, counts) = (
            short_log(run, self.tree.root()),
            Counts::Rounds(plan.rounds),
        );
        observer::observer(
            self.site.host.output,
            plan.settings.model.value.first(),
            counts,
            run,
            log,
        )
    }

    fn world<'w>(
        &'w self,
        plan: &'w Plan,
        ready: &'w Opened,
        ground: Ground<'w>,
    ) -> Result<CommitWorld<'w>, Failure> {
        let (root, Site { host, .. }) = (self.tree.root(), self.site);
        let Ground {
            record,
            past,
            lock,
            cancel,
            holds_for,
        } = ground;
        // The sandbox protects what exists, and hides the listed records.
        let confinement = sandbox::confine(self.tree, plan, self.without_sandbox, *host)?;
        let asking = asking(&plan.settings);
        asking
            .spending
            .count(&past.lines, plan.settings.model.value.first());
        Ok(CommitWorld {
            record,
            account: account(plan, self.tree, &confinement)?,
            build: build_command(plan, host.environment, confinement),
            asking,
            codebase: plan.task.codebase().clone(),
            layout: plan.task.layout(),
            said_log: plan.task.said_log(root),
            commits: commits::commits(self.site, plan)?,
            rules: Rules {
                root: root.to_owned(),
                guard: Rc::clone(&ready.guard),
                lock,
            },
            holds_for,
            model: Rc::clone(&ready.model),
            cancel,
        })
    }

    fn lead(
        &self,
        plan: &Plan,
        _: &Opened,
        harness: &mut Journaled<CommitWorld<'_>>,
    ) -> Result<Outcome, Stop<Fault>> {
        plan.run(harness)
    }

    fn holds_for(
        &self,
        plan: &Plan,
        _: &RunFolder,
        _: &Outcome,
        interrupt: Interrupt<'_>,
    ) -> HoldsFor {
        verdict::of_commit(&self.site.trusted, plan, interrupt)
    }

    fn fault(&self, error: Fault, run: &RunFolder) -> Failure {
        fault::fault(error, self.tree.root(), run)
    }

    fn tell(&self, _: &Plan, over: &Over<'_>) -> Result<Map<String, Value>, Failure> {
        if let Some(summary) = over.summary {
            summary.print(over.output);
        }
        let (name, can_go_on) = (
            records::name(over.run.path()),
            Self::kept(over.past).is_some(),
        );
        if can_go_on {
            over.output.note(&format!(
                "go on with the same settings: code-commit resume {name}"
            ));
        }
        commits::refusal(over.past, &name).map_or_else(|| Ok(Map::new()), Err)
    }
}

/// Begins a run for a caller that has opened a model, and runs its loop to the end.
pub fn begin(
    site: &Site<'_>,
    plan: Plan,
    model: Rc<dyn Model>,
    redactor: Redactor,
    without_sandbox: Otherwise,
) -> Result<Finished, Failure> {
    let keys = Keys::default();
    let commit = Commit {
        redactor,
        without_sandbox,
        ..Commit::new(site, &keys, From::Caller(model))?
    };
    commit.live(site.lock()?)?.begin(plan)
}

/// What builds may change, in a view of the tree if possible.
pub(crate) fn account(
    plan: &Plan,
    tree: &WorkTree,
    confinement: &Confinement,
) -> Result<ChangeEngine, Failure> {
    sandbox::in_overlay(plan.account(tree), tree, confinement)
}

pub(crate) fn build_command(
    plan: &Plan,
    environment: &Environment,
    confinement: Confinement,
) -> BuildCommand {
    let settings = &plan.settings;
    BuildCommand {
        argv: settings
            .build
            .value
            .argv
            .iter()
            .map(OsString::from)
            .collect(),
        env: sandbox::build_env(settings, environment),
        timeout: Some(settings.build_timeout.value),
        limits: sandbox::limits(settings),
        confinement,
        sealed: plan.sealed.clone(),
    }
}
