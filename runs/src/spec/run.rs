//! A run: one focus, until the reviewer approves. Begun on a focus or from a review, or gone on with.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use code_commit_dir::Interrupt;
use code_commit_engine::{Event, HoldsFor, Journaled, Named as _, Outcome, Recorded, Stop};
use code_commit_logging::{Redactor, RunFolder, Stamp};
use code_commit_loop_spec::watch::Item;
use code_commit_loop_spec::{
    BACKLOG, CommitScope, Files, ISSUES, Inputs, Place, Role, STORE, Specs, first_prompt,
    still_holds,
};
use code_commit_names::ours::{PROJECT_FILE, SPEC_CONFIG};
use code_commit_perform::{AgentFault, AgentLimits, AgentUsage, AgentWorld, Observer, Past};
use code_commit_report::{LastWords, printable};
use code_commit_settings::spec::Options;
use code_commit_settings::{self as settings, CommitScope as Scope, Settings};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::agents::{Words, limits};
use crate::driver::{Asked, Context, Driver, Loop, LoopKind, Report, Resumed, TakesBack};
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::project::Project;
use crate::records::{self, NewRun};
use crate::registry::{Known, RUN_JSON};
use crate::spec::observers::Watcher;
use crate::spec::store::{Store, uuid_v7};
use crate::spec::workspace::{Roles, Spec};
use crate::text::{self, read_input};
use crate::{estimate, resume};

/// What a run of the spec loop says where it cannot go on.
pub(super) const WORDS: Words = Words {
    go_on: "continue with: code-commit spec run --resume",
    again: "code-commit spec run --resume",
    worker: "agent",
    key_in: "the focus",
};

/// What agents work on, and how far they may go.
#[derive(Debug, Default)]
pub struct Request {
    /// What to work on; `@FILE` takes it from a file.
    pub focus: Option<String>,
    /// The file with a person's review, which the first plan answers; `-` is standard input.
    pub review: Option<PathBuf>,
    /// How far a run may go.
    pub limits: settings::Options,
    /// Who works.
    pub agent: Options,
    /// Begin a new run, even if one on the same focus is not finished.
    pub new: bool,
    /// The supervisor's own name for this work: a finished run is answered from the record.
    pub key: Option<String>,
    /// Tell what the first prompt takes, and send nothing.
    pub dry_run: bool,
}

/// What a run is to do, as `run.json` has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// What it works on.
    pub inputs: Inputs,
    limits: AgentLimits,
    /// The file of the backlog that it works on.
    pub(super) item: Option<Item>,
    agent: Options,
    /// The supervisor's own name for this work.
    key: Option<String>,
}

impl Plan {
    /// What the run in a folder was begun with; none for an audit.
    fn of(folder: &Path) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(folder.join(RUN_JSON)).ok()?).ok()
    }
}

/// Works on the focus, or goes on with the newest run: also with an unfinished one on the same focus, so that a
/// supervisor that starts the command again pays for no turn twice. The first plan answers a person's review.
pub fn run(root: &Path, request: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let review = request.review.as_deref().map(review_in).transpose()?;
    let project = Project::at(root, host)?;
    let newest = all(&project).next();
    let focus = match (&request.focus, &review, newest) {
        (Some(focus), _, _) => focus_of(root, focus)?,
        (None, Some(_), Some((_, plan))) => plan.inputs.focus,
        (None, Some(_), None) => {
            return Err(Failure::refused(
                anyhow!("there is no run that the review could be about"),
                "say it: --focus TEXT",
            ));
        }
        (None, None, newest) => {
            return go_on(project, newest, request.agent.clone(), &request.limits);
        }
    };
    let spec = open(project, request.agent.clone(), &request.limits)?;
    let mut plan = spec.plan(focus);
    (plan.inputs.review, plan.key) = (review, request.key.clone());
    if request.dry_run {
        return Ok(estimate::tell_of_agent(
            &first_prompt(&plan.inputs),
            host.output,
        ));
    }
    let asked = Asked {
        key: request.key.as_deref(),
        new: request.new,
    };
    spec.live()?.start(plan, asked).map(|done| done.exit)
}

fn review_in(file: &Path) -> Result<String, Failure> {
    match String::from_utf8(read_input(file)?) {
        Ok(review) if !review.trim().is_empty() => Ok(review),
        Ok(_) | Err(_) => Err(Failure::refused(
            anyhow!("{} is empty, or not UTF-8", file.display()),
            "write there what does not match the specs",
        )),
    }
}

/// Continues a run under its name, with the agent that it began with.
pub(crate) fn resume(
    known: &Known,
    args: &resume::Request,
    project: &Project<'_>,
) -> Result<Exit, Failure> {
    let path = known.path(&project.root);
    let name = records::name(&path);
    if !project.is_newest(known) {
        let what = anyhow!("a newer run of the spec loop has begun since {name}");
        return Err(Failure::refused(
            what,
            "only the newest can be resumed: code-commit spec run --resume",
        ));
    }
    if project.is_over(known) != Some(false) {
        return Err(records::closed(&name, "is finished"));
    }
    let newest = Plan::of(&path).map(|plan| (known.clone(), plan));
    go_on(project.clone(), newest, Options::default(), &args.limits)
}

/// The runs of the spec loop, the newest first; audits and talks are none.
pub fn all(project: &Project<'_>) -> impl Iterator<Item = (Known, Plan)> {
    let all = project.registry().all().unwrap_or_default().into_iter();
    all.filter_map(|known| {
        let plan = Plan::of(&known.path(&project.root))?;
        Some((known, plan))
    })
}

fn go_on(
    project: Project<'_>,
    newest: Option<(Known, Plan)>,
    flags: Options,
    limits: &settings::Options,
) -> Result<Exit, Failure> {
    // What an archive may have brought along weakens nothing.
    let trusted = newest.as_ref().filter(|_| project.trusted.tree().is_some());
    let begun = trusted.map(|(_, plan)| plan.agent.clone());
    let spec = open(project, flags.over(begun.unwrap_or_default()), limits)?;
    let driver = spec.live()?;
    let is_over = |known: &Known| spec.workspace.project.is_over(known) == Some(true);
    match newest {
        Some((known, _)) if !is_over(&known) => driver.go_on(&known).map(|done| done.exit),
        Some(_) | None => Err(Failure::nothing_to_do(
            anyhow!("there is no run to continue"),
            "begin one with: code-commit spec run --focus TEXT",
        )),
    }
}

/// The loop for a run that a person has asked for. Not while a spec issue waits: agents would meet it again, and be paid for that (S4
/// §Spec Issue Handling).
fn open<'b>(
    project: Project<'b>,
    options: Options,
    limits: &settings::Options,
) -> Result<Spec<'b>, Failure> {
    let waiting = Store::of(&project)?.issues();
    if !waiting.is_empty() {
        let names = printable(&waiting.join(", "));
        return Err(Failure::refused(
            anyhow!("a spec issue waits in {STORE}/{ISSUES}: {names}"),
            "resolve it in the specs, delete the file, then run the command again",
        ));
    }
    Spec::open(project, options, limits)
}

/// `@path` names a file (S4 §CLI Usage).
fn focus_of(root: &Path, focus: &str) -> Result<String, Failure> {
    let Some(file) = focus.strip_prefix('@') else {
        return match focus.trim() {
            "" => Err(Failure::refused(
                anyhow!("the focus is empty"),
                "say what to work on: --focus TEXT",
            )),
            _ => Ok(focus.to_owned()),
        };
    };
    match text::read(&root.join(file))? {
        Some(text) if !text.trim().is_empty() => Ok(from_file(file, &text)),
        Some(_) | None => Err(Failure::refused(
            anyhow!("{file} does not exist or is empty"),
            "name a file with the focus in it",
        )),
    }
}

/// The focus of a run on a file of the backlog; none if that does not hold what it did when it was listed. The run is about that content,
/// and the file is deleted only with it.
pub(super) fn focus_of_task(root: &Path, item: &Item) -> Result<Option<String>, Failure> {
    let file = format!("{STORE}/{BACKLOG}/{}", item.name);
    let text = text::read(&root.join(&file))?;
    let as_listed =
        text.filter(|text| code_commit_logging::sha256_hex(text.as_bytes()) == item.sha256);
    Ok(as_listed.map(|text| from_file(&file, &text)))
}

fn from_file(file: &str, text: &str) -> String {
    format!("From `{file}`:\n\n{text}")
}

impl Spec<'_> {
    /// A run on this focus.
    pub(super) fn plan(&self, focus: String) -> Plan {
        let (config, settings) = (&self.workspace.config, &self.workspace.settings);
        let scope = match settings.spec.commit_scope {
            Some(Scope::All) => CommitScope::All,
            Some(Scope::Run) | None => CommitScope::Run,
        };
        Plan {
            inputs: Inputs {
                specs: config.specs.clone(),
                max_iterations: config.max_iterations,
                max_turns: settings.spec_max_turns(),
                setup: config.setup.clone(),
                check: config.check.clone(),
                commit: config.commit.then_some(scope),
                agents: self.agents,
                ..Inputs::new(uuid_v7(), focus)
            },
            limits: limits(settings),
            item: None,
            agent: self.options.clone(),
            key: None,
        }
    }

    /// Takes the lock: nobody else works on this tree meanwhile.
    pub(super) fn live(&self) -> Result<Driver<'_, Self>, Failure> {
        let lock = self.workspace.project.lock()?;
        Ok(Driver::new(self, lock, self.cancel.clone()))
    }

    /// Makes a folder for what agents do now.
    pub(super) fn new_folder(&self, end: &str) -> Result<NewRun, Failure> {
        NewRun::create(
            &self.workspace.store.runs,
            &format!("{}{end}", Stamp::now().folder_name()),
            self.redactor.clone(),
            "see that the folder can be written",
        )
    }

    /// Only the newest run can be gone on with. A person may have worked on the tree since: a new run takes it as it is.
    fn leave_unfinished(&self) -> Result<(), Failure> {
        let project = &self.workspace.project;
        let Some((known, plan)) = all(project).next() else {
            return Ok(());
        };
        let run = known.path(&project.root);
        if !goes_on(records::outcome_of(&records::open(&run))?.as_ref()) {
            return Ok(());
        }
        let files = Files::of(&plan.inputs.id);
        self.workspace.store.forget_session(&files);
        if code_commit_changes::has_copies(&run) {
            let name = records::name(&run);
            project.host.output.warn(&format!(
                "{name} was killed while an agent worked: its changes to protected files were kept; code-commit spec run --resume would have restored them"
            ));
        }
        Ok(())
    }
}

impl Loop for Spec<'_> {
    const KIND: LoopKind = LoopKind {
        step: "iteration",
        work: "focus",
        newest_only: true,
        takes_back: TakesBack::Git,
        ..LoopKind::of::<Self>("spec", resume)
    };
    const GOAL: &'static str = "the review approves";
    type Plan = Plan;
    type Ready = ();
    type Fault = AgentFault;
    type World<'w>
        = AgentWorld<'w, Roles>
    where
        Self: 'w;
    type Ended = Outcome;

    fn project(&self) -> &Project<'_> {
        &self.workspace.project
    }

    fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Whether it is the same work, for a person; a file of the backlog is work of its own.
    fn is_same(&self, asked: &Plan, recorded: &Plan) -> bool {
        let inputs = Inputs {
            id: recorded.inputs.id.clone(),
            max_turns: recorded.inputs.max_turns,
            ..asked.inputs.clone()
        };
        let is_same = recorded.inputs == inputs && recorded.agent == asked.agent;
        asked.item == recorded.item && (asked.item.is_some() || is_same)
    }

    fn kept(past: &Past) -> Option<usize> {
        match past.outcome() {
            None => Some(past.answers.len()),
            outcome => goes_on(outcome).then(|| still_holds(&past.answers)),
        }
    }

    fn ready(&self, plan: &mut Plan, _: Option<Resumed<'_>>) -> Result<(), Failure> {
        plan.inputs.max_turns = self.workspace.settings.spec_max_turns();
        Ok(())
    }

    fn new_run(&self, plan: &Plan) -> Result<NewRun, Failure> {
        if plan.inputs.commit.is_some() && self.project().trusted.tree().is_none() {
            let root = self.workspace.root().display();
            return Err(Failure::refused(
                anyhow!("there is nothing to commit to: {root} is not in a git work tree"),
                "git init, or set commit to false in .cuggino.json",
            ));
        }
        self.leave_unfinished()?;
        self.new_folder("")
    }

    fn observer(&self, _: &Plan, run: &RunFolder) -> Box<dyn Observer> {
        Box::new(self.lines.of_run(run))
    }

    fn world<'w>(
        &'w self,
        plan: &'w Plan,
        (): &'w (),
        context: Context<'w>,
    ) -> Result<AgentWorld<'w, Roles>, Failure> {
        let (id, focus) = (&plan.inputs.id, &plan.inputs.focus);
        let (folder, past) = (context.record.folder().clone(), context.past);
        let now = context.holds_for;
        let holds_for = move |outcome: &Outcome, interrupt: Interrupt<'_>| {
            let mut holds_for = now(outcome, interrupt);
            if matches!(outcome, Outcome::Done { .. }) {
                holds_for.tree = reviewed(&folder);
            }
            holds_for
        };
        let watcher = Watcher::new(self, Some(Files::of(id).session()));
        Ok(AgentWorld {
            limits: overruled(plan.limits, &self.workspace.settings),
            used: AgentUsage::of(&past.lines),
            holds_for: Box::new(holds_for),
            ..self.world_of(context.record, id, focus, watcher)
        })
    }

    fn settle(
        &self,
        world: &mut AgentWorld<'_, Roles>,
        past: &Past,
    ) -> Result<Vec<Recorded>, Failure> {
        let restored = |paths: &[String]| {
            let is_configuration = |path: &String| [SPEC_CONFIG, PROJECT_FILE].contains(&&**path);
            // A configuration that was the agent's own has been read already.
            if paths.iter().any(is_configuration) {
                return Err(Failure::refused(
                    anyhow!("the agent had changed the configuration, which was just restored"),
                    "run it again: code-commit spec run --resume",
                ));
            }
            let forgotten = self.workspace.store.forget_copies();
            Ok(forgotten.context("cannot remove what a killed run has left")?)
        };
        let output = self.workspace.project.host.output;
        WORDS.settle::<Specs, _>(world, past, Role::named, restored, output)
    }

    fn lead(
        &self,
        plan: &Plan,
        (): &(),
        harness: &mut Journaled<AgentWorld<'_, Roles>>,
    ) -> Result<Outcome, Stop<AgentFault>> {
        code_commit_loop_spec::spec(harness, &plan.inputs)
    }

    fn holds_for(
        &self,
        plan: &Plan,
        _: &RunFolder,
        outcome: &Outcome,
        _: Interrupt<'_>,
    ) -> HoldsFor {
        match outcome {
            Outcome::ModelUnavailable { .. } | Outcome::Unfit { .. } => HoldsFor::default(),
            Outcome::Done { .. } | Outcome::AttemptsUsedUp { .. } | Outcome::NeedsPerson { .. } => {
                self.verdict_holds_for(&plan.inputs)
            }
        }
    }

    fn fault(&self, fault: AgentFault, run: &RunFolder) -> Failure {
        WORDS.fault(fault, run)
    }

    fn last_words(&self, _: &Plan, report: &Report) -> LastWords {
        let mut words = report.last_words(Self::KIND.step, Self::GOAL);
        if let Outcome::AttemptsUsedUp { .. } = report.ended {
            words.next.push(GO_ON.to_owned());
        }
        words
    }

    fn members(&self, _: &Plan, report: &Report) -> Map<String, Value> {
        let log = report.run.path().display().to_string();
        let line = json!({ "outcome": report.ended, "holds_for": report.holds_for, "log": log });
        line.as_object().cloned().unwrap_or_default()
    }
}

/// After the last iteration.
const GO_ON: &str = "continue from this review, or from one of yours: code-commit spec review FILE";

/// The limits that a run was begun with, under those that flags set now.
fn overruled(begun: AgentLimits, settings: &Settings) -> AgentLimits {
    let now = limits(settings);
    let (cost, tokens, time) = (now.max_cost_usd, now.max_tokens, now.max_time_ms);
    let is_flag = |key| settings.is_flag(key);
    AgentLimits {
        max_cost_usd: cost
            .filter(|_| is_flag("limits.max_cost"))
            .or(begun.max_cost_usd),
        max_tokens: tokens
            .filter(|_| is_flag("limits.max_tokens"))
            .or(begun.max_tokens),
        max_time_ms: time
            .filter(|_| is_flag("limits.max_time"))
            .or(begun.max_time_ms),
    }
}

/// Whether a run can be gone on with: one that was killed or interrupted, and one that ended because its agent could not be used.
fn goes_on(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, None | Some(Outcome::ModelUnavailable { .. }))
}

/// The identity of the tree before its last review: an approval holds for what was reviewed, whatever has changed since.
fn reviewed(folder: &RunFolder) -> Option<String> {
    let past = Past::read(folder.path()).ok()?;
    let of_project = past.holding().filter_map(|line| {
        let Event::Identified(of) = line else {
            return None;
        };
        (of.place == Place::Project.name()).then_some(of.sha256)
    });
    of_project.last()?
}

/// Whether the verdict of a run is about this content of a file of the backlog, and about this tree.
pub(super) fn is_about(folder: &RunFolder, item: &Item, tree: Option<&str>) -> bool {
    let is_its_item = Plan::of(folder.path()).is_some_and(|plan| plan.item.as_ref() == Some(item));
    let past = Past::read(folder.path()).unwrap_or_default();
    let judged = past.end().and_then(|(_, of)| of.tree.as_deref());
    is_its_item && tree.is_some() && judged == tree
}

#[cfg(test)]
mod tests {
    use code_commit_engine::Event;
    use code_commit_logging::Redactor;
    use code_commit_perform::{Record, Silent};

    use super::*;

    #[test]
    fn a_verdict_is_about_one_content_of_a_task_and_about_one_tree() {
        let base = tempfile::tempdir().unwrap();
        let item = |sha256: &str| Item {
            name: "a.md".to_owned(),
            sha256: sha256.to_owned(),
        };
        let folder = RunFolder::create(base.path(), "run", Redactor::default()).unwrap();
        let plan = Plan {
            inputs: Inputs::new("id", "do A"),
            limits: AgentLimits::default(),
            item: Some(item("one")),
            agent: Options::default(),
            key: None,
        };
        folder.store_json(RUN_JSON, &plan).unwrap();
        let mut record = Record::begin(folder.clone(), Silent).unwrap();
        assert!(
            !is_about(&folder, &item("one"), Some("tree")),
            "there is no verdict yet"
        );
        let holds_for = HoldsFor {
            tree: Some("tree".to_owned()),
            ..HoldsFor::default()
        };
        record
            .note(&Event::Ended {
                outcome: Outcome::Done { rounds: 1 },
                holds_for,
            })
            .unwrap();
        assert!(is_about(&folder, &item("one"), Some("tree")));
        for (sha256, tree) in [("two", Some("tree")), ("one", Some("other")), ("one", None)] {
            assert!(!is_about(&folder, &item(sha256), tree), "{sha256} {tree:?}");
        }
    }

    #[test]
    fn a_task_that_is_not_as_it_was_listed_is_not_begun() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(".cuggino/backlog/a.md");
        code_commit_dir::replace(&path, b"one\n").unwrap();
        let item = Item {
            name: "a.md".to_owned(),
            sha256: code_commit_logging::sha256_hex(b"one\n"),
        };
        let focus = || focus_of_task(root.path(), &item).ok().unwrap();
        assert_eq!(focus().unwrap(), "From `.cuggino/backlog/a.md`:\n\none\n");
        code_commit_dir::replace(&path, b"two\n").unwrap();
        assert_eq!(focus(), None);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(focus(), None);
    }
}
