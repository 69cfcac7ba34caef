//! The commit loops as loops of the driver: what is opened for a run, its world, its last words.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Context as _;
use code_commit_apply::{ApplyError, Lock};
use code_commit_changes::{BACKUP, ChangeEngine};
use code_commit_dir::Interrupt;
use code_commit_engine::{HoldsFor, Journaled, Outcome, Stop, Stored};
use code_commit_guard::Guard;
use code_commit_llm::Model;
use code_commit_logging::{Redactor, RunFolder};
use code_commit_loop_commit::still_holds;
use code_commit_names::ours::AGENT_CONFIG;
use code_commit_perform::{
    BuildCommand, CommandSettings, CommitWorld, Fault, Observer, Past, Rules,
};
use code_commit_repo::WorkTree;
use code_commit_report::{AGAIN, Counts, FileStat, LastWords, phrases};
use code_commit_runner::Confinement;
use code_commit_settings::{Environment, Keys, Options, Origin};

use super::files::{self, SaidLog};
use super::inputs::Ready;
use super::plan::{Plan, Which};
use super::request::Request;
use super::{changed, commits, tree_checks};
use crate::changes::{self, FileChange};
use crate::driver::{Context, Driver, Loop, LoopKind, Report, Resumed};
use crate::exit::{Exit, Failure};
use crate::gitignore::{ADDED, AddedLine, hide_agent_config};
use crate::model::asking;
use crate::project::Project;
use crate::records::{self, NewRun};
use crate::registry::Known;
use crate::sandbox;
use crate::{interrupt, observer, preflight, verdict};

/// Changed files of an interrupted run named in a message.
const NAMED_FILES: usize = 5;

/// The two commit loops.
pub(crate) struct Commit<'c> {
    pub(super) project: &'c Project<'c>,
    pub(super) tree: &'c WorkTree,
    pub(super) keys: &'c Keys,
    pub(super) redactor: Redactor,
    /// The command with its inputs, which may go on with an unfinished run; none if a run was asked for by its name.
    pub(super) command: Option<(&'c Request, &'c Ready)>,
    /// Go on even if files have changed since the run was stopped.
    pub(super) force: bool,
    /// Limits that replace those of a run that goes on.
    pub(super) limits: Options,
}

/// What is opened before the first step.
pub(crate) struct Opened {
    /// What the model may write.
    guard: Rc<Guard>,
    model: Rc<dyn Model>,
    /// What leads git into other repositories.
    dot_gits: Vec<PathBuf>,
    /// Removed after the run if it is empty.
    _said_log: Option<SaidLog>,
}

impl<'c> Commit<'c> {
    pub(super) fn new(project: &'c Project<'c>, keys: &'c Keys) -> Result<Self, Failure> {
        Ok(Self {
            project,
            tree: project.tree()?,
            keys,
            redactor: project.host.output.strike_out(keys.exposed()),
            command: None,
            force: false,
            limits: Options::default(),
        })
    }

    /// At work under this lock; from now on Ctrl-C is heard.
    pub(super) fn live(&self, lock: Lock) -> Result<Driver<'_, Self>, Failure> {
        Ok(Driver::new(
            self,
            lock,
            interrupt::watched(self.project.host.cancel)?,
        ))
    }

    fn open(&self, plan: &Plan) -> Result<Rc<dyn Model>, Failure> {
        commits::can_commit(self.project, plan)?;
        let host = self.project.host;
        Ok(host.models.open(&plan.settings, self.keys, host)?.into())
    }

    /// Opens a new run, and stores what was made for it.
    fn begun(&self, plan: &mut Plan, args: &Request, ready: &Ready) -> Result<Opened, Failure> {
        let (root, output) = (self.tree.root(), self.project.host.output);
        self.look_ahead(plan);
        let model = self.open(plan)?;
        plan.first().check(&*model, &plan.settings)?;
        let theirs = ready.theirs(root);
        let (mut guard, dot_gits) =
            tree_checks::look_at(self.project, plan, theirs.as_ref(), args)?;
        ready.store(root, &plan.settings, output)?;
        plan.added_line = self.hide_agent_config(plan)?;
        if plan.added_line.is_some() {
            guard = self::guard(self.project, plan)?;
        }
        seal(self.project, &guard, &dot_gits, plan)?;
        Ok(Opened {
            guard: guard.into(),
            model,
            dot_gits,
            _said_log: SaidLog::open(plan.task.which, self.project, false)?,
        })
    }

    fn look_ahead(&self, plan: &Plan) {
        let writable = sandbox::writable(self.tree.root(), &plan.settings);
        sandbox::look_ahead(self.project, &plan.settings, writable);
    }

    /// Keeps keys and records out of git (S1 §Safety). S0 may have none of them here.
    fn hide_agent_config(&self, plan: &Plan) -> Result<Option<AddedLine>, Failure> {
        let (root, output) = (self.tree.root(), self.project.host.output);
        if plan.task.which == Which::Implement && !root.join(AGENT_CONFIG).exists() {
            return Ok(None);
        }
        let added = hide_agent_config(self.project.trusted.surroundings()?, root)?;
        if added.is_some() {
            output.note(ADDED);
        }
        Ok(added)
    }

    /// Opens a run that goes on.
    fn again(&self, plan: &mut Plan, past: &Past) -> Result<Opened, Failure> {
        let (root, environment) = (self.tree.root(), self.project.host.environment);
        // A missing build would fail every round, and each repair would be paid for.
        preflight::build_command(root, &plan.settings.build_command(), environment)?;
        plan.settings = plan.settings.unpacked(&self.project.bases());
        plan.settings.put(&self.limits, &Origin::Flag);
        self.look_ahead(plan);
        self.hide_agent_config(plan)?;
        preflight::price(&plan.settings)?;
        let model = self.open(plan)?;
        records::pass_over(&past.lines, &*model);
        let status = self.project.trusted.status(&plan.settings);
        Ok(Opened {
            guard: guard(self.project, plan)?.into(),
            model,
            // What git cannot tell, the run was warned of when it began.
            dot_gits: status.unwrap_or_default().dot_gits,
            _said_log: SaidLog::open(plan.task.which, self.project, true)?,
        })
    }
}

impl Loop for Commit<'_> {
    const KIND: LoopKind = LoopKind::of::<Self>("commit", super::resume);
    type Plan = Plan;
    type Ready = Opened;
    type Fault = Fault;
    type World<'w>
        = CommitWorld<'w>
    where
        Self: 'w;
    type Ended = Outcome;

    fn name(plan: &Plan) -> &'static str {
        plan.task.which.name()
    }

    fn load(&self, run: &RunFolder, known: &Known) -> anyhow::Result<Plan> {
        Plan::load(run, known)
    }

    fn project(&self) -> &Project<'_> {
        self.project
    }

    fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    fn is_same(&self, asked: &Plan, recorded: &Plan) -> bool {
        let settings = asked.settings.carried(&self.project.bases());
        settings.options == recorded.settings.options && asked.asks_for_the_same(recorded)
    }

    /// It can go on if it was killed, or ended because the model gave no answer or the machine was unfit, and its changes
    /// were not reverted.
    fn kept(past: &Past) -> Option<usize> {
        let kept = still_holds(&past.answers, past.outcome());
        (past.outcome().is_none() || kept < past.answers.len()).then_some(kept)
    }

    fn may_go_on(&self, plan: &Plan, run: &RunFolder) -> Result<(), Failure> {
        changed::refuse(self.tree, plan, run, self.project.host.environment)
    }

    fn ready(&self, plan: &mut Plan, recorded: Option<Resumed<'_>>) -> Result<Opened, Failure> {
        let Some((run, past)) = recorded else {
            let (args, ready) = self.command.context("only a command begins a run")?;
            return self.begun(plan, args, ready);
        };
        if self.command.is_none() && !self.force {
            self.may_go_on(plan, run)?;
        }
        self.again(plan, past)
    }

    fn new_run(&self, plan: &Plan) -> Result<NewRun, Failure> {
        files::record(plan.task.which, self.tree, self.redactor.clone())
    }

    fn store(&self, plan: &Plan, _: &Opened, new: &NewRun) -> Result<Stored, Failure> {
        new.store_first(&plan.task.which.layout().query(1), &plan.first_prompt())?;
        let settings = plan.settings.carried(&self.project.bases());
        new.store(&Plan {
            settings,
            ..plan.clone()
        })
    }

    fn observer(&self, plan: &Plan, run: &RunFolder) -> Box<dyn Observer> {
        let (output, counts) = (
            self.project.host.output,
            Counts {
                step: "round",
                most: plan.rounds,
            },
        );
        observer::observer(output, plan.settings.models().first(), counts, run)
    }

    fn world<'w>(
        &'w self,
        plan: &'w Plan,
        ready: &'w Opened,
        context: Context<'w>,
    ) -> Result<CommitWorld<'w>, Failure> {
        let (root, Project { host, .. }) = (self.tree.root(), self.project);
        let Context {
            record,
            past,
            lock,
            cancel,
            holds_for,
        } = context;
        // The sandbox protects what exists, and hides the listed records.
        let confinement = sandbox::confine(self.project, plan, &ready.dot_gits)?;
        let asking = asking(&plan.settings);
        asking
            .spending
            .count(&past.lines, plan.settings.models().first());
        Ok(CommitWorld {
            record,
            account: account(plan, self.project, self.tree, &confinement)?,
            build: build_command(plan, host.environment, confinement),
            asking,
            codebase: plan.task.codebase.text.clone(),
            layout: plan.task.which.layout(),
            said_log: plan.task.which.said_log(root),
            commits: commits::commits(self.project, plan)?,
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
        verdict::of_commit(&self.project.trusted, plan, interrupt)
    }

    fn fault(&self, error: Fault, run: &RunFolder) -> Failure {
        fault(error, self.tree.root(), run)
    }

    fn last_words(&self, _: &Plan, report: &Report) -> LastWords {
        let mut words = report.last_words(Self::KIND.step, Self::GOAL);
        let has_changed = !report.changes.is_empty();
        if !has_changed {
            words.verdict.push_str("; no file was changed");
        }
        let diff = match (&report.summary.commit, self.project.trusted.tree()) {
            (Some(_), _) => "git show",
            (None, Some(_)) => "git diff",
            (None, None) => "code-commit diff",
        };
        let resume = Self::kept(&report.past)
            .map(|_| format!("code-commit resume {}", records::name(report.run.path())));
        let again = !words.is_good && words.next.is_empty() && resume.is_none();
        let more = [
            resume,
            has_changed.then(|| diff.to_owned()),
            again.then(|| AGAIN.to_owned()),
            has_changed.then(|| "code-commit undo".to_owned()),
        ];
        words.next.extend(more.into_iter().flatten());
        words
    }

    fn refusal(&self, report: &Report) -> Result<(), Failure> {
        let name = records::name(report.run.path());
        commits::refusal(&report.past, &name).map_or(Ok(()), Err)
    }
}

/// The guard for the `.gitignore` files of now and what the plan protects.
pub(crate) fn guard(project: &Project<'_>, plan: &Plan) -> Result<Guard, Failure> {
    project.trusted.guard(plan.policy(project.tree()?))
}

/// Adds everything that no build may change in this tree.
pub(crate) fn seal(
    project: &Project<'_>,
    guard: &Guard,
    dot_gits: &[PathBuf],
    plan: &mut Plan,
) -> Result<(), Failure> {
    let tree = project.tree()?;
    // In this order: a sandbox protects the first of them.
    let protected = sandbox::protected(tree, guard, &plan.settings)?;
    let mut known: HashSet<PathBuf> = plan.sealed.iter().cloned().collect();
    let dot_gits = sandbox::sealed_dot_gits(&project.root, dot_gits, &plan.settings);
    let policy = plan.policy(tree);
    let index = tree.index()?;
    let tracked: HashSet<&Path> = index.iter().map(|one| one.path).collect();
    // Ignore rules that git itself ignores are a tool's product, which the tool writes anew.
    let decides = guard
        .protected_anywhere()
        .filter(|path| policy.refuses(path).is_some())
        .map(PathBuf::from)
        .filter(|path| tracked.contains(path.as_path()) || !guard.ignores(path));
    let more = dot_gits.chain(protected).chain(decides);
    plan.sealed
        .extend(more.filter(|path| known.insert(path.clone())));
    Ok(())
}

/// What builds may change, in a view of the tree if possible.
pub(crate) fn account(
    plan: &Plan,
    project: &Project<'_>,
    tree: &WorkTree,
    confinement: &Confinement,
) -> Result<ChangeEngine, Failure> {
    let git = commits::git(project, &plan.settings).ok();
    sandbox::in_overlay(plan.account(tree).asking(git), tree, confinement)
}

pub(crate) fn build_command(
    plan: &Plan,
    environment: &Environment,
    confinement: Confinement,
) -> BuildCommand {
    let settings = &plan.settings;
    let argv = settings.build_command().argv.into_iter();
    BuildCommand {
        argv: argv.map(OsString::from).collect(),
        settings: CommandSettings {
            env: sandbox::build_env(settings, environment),
            timeout: Some(settings.build_timeout()),
            limits: sandbox::limits(settings),
            confinement,
            sealed: plan.sealed.clone(),
        },
    }
}

/// Why the run was stopped from the outside.
pub(crate) fn fault(error: Fault, root: &Path, folder: &RunFolder) -> Failure {
    let name = records::name(folder.path());
    if matches!(error, Fault::KeyInPrompt { .. }) {
        return Failure::refused(error, "remove the key from the query and the code roll-up");
    }
    if matches!(error, Fault::Interrupted) {
        return Failure::new(Exit::Interrupted, error).help(after_interruption(root, folder));
    }
    if matches!(error, Fault::Seal { .. }) {
        let help = "check these files and repair them by hand; nothing was built after this";
        return Failure::new(Exit::TreeNotRestored, error).help(help);
    }
    if matches!(error, Fault::Restore(_)) || leaves_tree_changed(&error) {
        let kept = folder.path().join(BACKUP);
        let help = format!(
            "the old contents are in {}; what happened: code-commit show {name}",
            kept.display()
        );
        return Failure::new(Exit::TreeNotRestored, error).help(help);
    }
    let go_on = format!("then continue: code-commit resume {name}");
    if matches!(error, Fault::Apply(ApplyError::Changed { .. })) {
        return Failure::refused(
            error,
            format!("nothing of the reply was written; look at the file, {go_on}"),
        );
    }
    Failure::new(Exit::Fault, error).help(format!("fix that, {go_on}"))
}

/// Whether a transaction failed and could not be reverted.
pub fn leaves_tree_changed(fault: &Fault) -> bool {
    matches!(fault, Fault::Apply(error) if error.leaves_tree_changed())
}

/// What has changed, and what to do.
fn after_interruption(root: &Path, folder: &RunFolder) -> String {
    let name = records::name(folder.path());
    let go_on = format!("continue with: code-commit resume {name}");
    let stats: Vec<FileStat> = changes::of_run(root, folder.path())
        .unwrap_or_default()
        .iter()
        .map(FileChange::stat)
        .collect();
    if stats.is_empty() {
        return go_on;
    }
    let files: Vec<String> = stats
        .iter()
        .map(|file| format!("{} {}", file.status, file.path))
        .collect();
    let files = phrases::first(&files, NAMED_FILES);
    format!("changed so far: {files}; {go_on}; put them back with: code-commit undo {name}")
}
