//! A run: one focus, until the reviewer approves.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use code_commit_dir::Interrupt;
use code_commit_engine::{HoldsFor, Journaled, Line, Named as _, Outcome, Recorded, Stop};
use code_commit_logging::{RunFolder, Stamp};
use code_commit_loop_spec::watch::Item;
use code_commit_loop_spec::{CommitScope, Files, Inputs, Place, Role, Specs, still_holds};
use code_commit_names::ours::{PROJECT_FILE, SPEC_CONFIG};
use code_commit_perform::{AgentFault, AgentLimits, AgentUsage, AgentWorld, Observer, Past};
use code_commit_settings::{CommitScope as Scope, Origin, Settings};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agents::{Words, limits};
use crate::exit::Failure;
use crate::life::{Facts, Ground, Life, Loop, Over, TakesBack};
use crate::records::{self, NewRun};
use crate::registry::{Known, RUN_JSON};
use crate::site::Site;
use crate::spec::lines::{Ear, Lines};
use crate::spec::mending::Mending;
use crate::spec::options::AgentOptions;
use crate::spec::workspace::{Team, Workspace};
use crate::spec::{project, summary, uuid};
use crate::trusted::Trusted;

/// What a run of the spec loop says where it cannot go on.
pub(super) const WORDS: Words = Words {
    go_on: "go on with: code-commit spec run --resume",
    again: "code-commit spec run --resume",
    worker: "agent",
    key_in: "the focus",
};

/// What a run is to do, as `run.json` has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Begun {
    #[serde(rename = "loop")]
    pub(super) which: String,
    pub(super) version: String,
    /// What it works on.
    pub inputs: Inputs,
    #[serde(default)]
    pub(super) limits: AgentLimits,
    /// The file of the backlog that it works on.
    pub(super) item: Option<Item>,
    #[serde(default)]
    pub(super) agent: AgentOptions,
    /// The supervisor's own name for this work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
}

impl Begun {
    pub(super) fn new(
        workspace: &Workspace<'_>,
        inputs: Inputs,
        item: Option<Item>,
        key: Option<String>,
    ) -> Self {
        let (which, version) = (
            Spec::FACTS.kind.to_owned(),
            env!("CARGO_PKG_VERSION").to_owned(),
        );
        let (limits, agent) = (limits(&workspace.settings), workspace.args.clone());
        Self {
            which,
            version,
            inputs,
            limits,
            item,
            agent,
            key,
        }
    }
}

pub(super) fn inputs(workspace: &Workspace<'_>, focus: String) -> Result<Inputs, Failure> {
    let config = &workspace.config;
    let scope = match workspace.settings.commit_scope.value {
        Some(Scope::All) => CommitScope::All,
        Some(Scope::Run) | None => CommitScope::Run,
    };
    Ok(Inputs {
        id: uuid::v7()?,
        focus,
        specs: config.specs.clone(),
        max_iterations: config.max_iterations,
        max_turns: workspace.settings.spec_max_turns.value,
        setup: config.setup.clone(),
        check: config.check.clone(),
        commit: config.commit.then_some(scope),
        agents: workspace.agents(),
        review: None,
    })
}

/// The limits that a run was begun with, under those that flags set now.
fn overruled(begun: AgentLimits, settings: &Settings) -> AgentLimits {
    let flags = limits(settings);
    let is_flag = |origin| origin == Origin::Flag;
    AgentLimits {
        max_cost_usd: if is_flag(settings.max_cost.origin) {
            flags.max_cost_usd
        } else {
            begun.max_cost_usd
        },
        max_tokens: if is_flag(settings.max_tokens.origin) {
            flags.max_tokens
        } else {
            begun.max_tokens
        },
        max_time_ms: if is_flag(settings.max_time.origin) {
            flags.max_time_ms
        } else {
            begun.max_time_ms
        },
    }
}

/// The spec loop, with what its runs share.
pub(crate) struct Spec<'s> {
    pub(super) site: &'s Site<'s>,
    pub(super) workspace: &'s Workspace<'s>,
    pub(super) lines: &'s Lines,
}

impl<'s> Spec<'s> {
    pub(super) fn new(site: &'s Site<'s>, workspace: &'s Workspace<'s>, lines: &'s Lines) -> Self {
        Self {
            site,
            workspace,
            lines,
        }
    }

    /// Takes the lock: nobody else works on this tree meanwhile.
    pub(super) fn live(&self) -> Result<Life<'_, Self>, Failure> {
        let (cancel, redactor) = (
            self.workspace.cancel.clone(),
            self.workspace.redactor.clone(),
        );
        Ok(Life {
            of: self,
            site: self.site,
            lock: self.site.lock()?.into(),
            cancel,
            redactor,
        })
    }

    /// Only the newest run can be gone on with. A person may have worked on the tree since: a new run takes it as it is.
    fn leave_unfinished(&self) -> Result<(), Failure> {
        let Some((known, begun)) = newest(self.site) else {
            return Ok(());
        };
        let run = known.path(&self.site.root);
        if !goes_on(records::outcome_of(&records::open(&run))?.as_ref()) {
            return Ok(());
        }
        project::forget_session(&self.site.root, &Files::of(&begun.inputs.id));
        if code_commit_changes::has_copies(&run) {
            let name = records::name(&run);
            self.site.host.output.warn(&format!(
                "{name} was killed while an agent worked: what that agent changed and may not is left as it is now; code-commit spec run --resume would have put it back"
            ));
        }
        Ok(())
    }
}

impl Loop for Spec<'_> {
    const FACTS: Facts = Facts {
        kind: "spec",
        step: "iteration",
        work: "focus",
        newest_only: true,
        takes_back: TakesBack::Git,
        ..Facts::PLAIN
    };
    type Plan = Begun;
    type Ready = ();
    type Fault = AgentFault;
    type World<'w>
        = AgentWorld<'w, Team>
    where
        Self: 'w;
    type Ended = Outcome;

    fn trusted(&self) -> &Trusted {
        &self.site.trusted
    }

    /// Whether it is the same work, for a person; a file of the backlog is work of its own.
    fn is_same(&self, asked: &Begun, recorded: &Begun) -> bool {
        let inputs = Inputs {
            id: recorded.inputs.id.clone(),
            max_turns: recorded.inputs.max_turns,
            ..asked.inputs.clone()
        };
        asked.item == recorded.item
            && (asked.item.is_some()
                || (recorded.inputs == inputs && recorded.agent == asked.agent))
    }

    fn kept(past: &Past) -> Option<usize> {
        match past.outcome() {
            None => Some(past.answers.len()),
            outcome => goes_on(outcome).then(|| still_holds(&past.answers)),
        }
    }

    fn ready(&self, plan: &mut Begun, _: Option<&RunFolder>) -> Result<(), Failure> {
        plan.inputs.max_turns = self.workspace.settings.spec_max_turns.value;
        Ok(())
    }

    fn new_run(&self, plan: &Begun) -> Result<NewRun, Failure> {
        let Workspace { runs, redactor, .. } = self.workspace;
        if plan.inputs.commit.is_some() && self.site.trusted.tree().is_none() {
            let root = self.site.root.display();
            return Err(Failure::refused(
                anyhow!("there is nothing to commit to: {root} is not in a git work tree"),
                "git init, or set commit to false in .cuggino.json",
            ));
        }
        self.leave_unfinished()?;
        let name = Stamp::now().folder_name();
        NewRun::create(
            runs,
            &name,
            redactor.clone(),
            "see that the folder can be written",
        )
    }

    fn observer(&self, _: &Begun, run: &RunFolder) -> Box<dyn Observer> {
        self.lines.of_run(run);
        Box::new(self.lines.clone())
    }

    fn world<'w>(
        &'w self,
        plan: &'w Begun,
        (): &'w (),
        ground: Ground<'w>,
    ) -> Result<AgentWorld<'w, Team>, Failure> {
        let Self {
            workspace, site, ..
        } = self;
        let Ground {
            record,
            past,
            holds_for,
            ..
        } = ground;
        let (files, output) = (Files::of(&plan.inputs.id), site.host.output);
        let folder = record.folder().clone();
        let holds_for = move |outcome: &Outcome, interrupt: Interrupt<'_>| {
            let now = holds_for(outcome, interrupt);
            match outcome {
                Outcome::Done { .. } => HoldsFor {
                    tree: reviewed(&folder),
                    ..now
                },
                Outcome::AttemptsUsedUp { .. }
                | Outcome::NeedsPerson { .. }
                | Outcome::Unfit { .. }
                | Outcome::ModelUnavailable { .. } => now,
            }
        };
        let ear = Ear::new(self.lines.clone(), &workspace.root, Some(&files));
        let no_wall = (!workspace.has_wall()).then_some(output);
        let watch = Box::new(Mending::new(ear, &workspace.root, files.session(), no_wall));
        Ok(AgentWorld {
            limits: overruled(plan.limits, &workspace.settings),
            used: AgentUsage::of(&past.lines),
            session: Some(plan.inputs.id.clone()),
            holds_for: Box::new(holds_for),
            ..workspace.world(
                record,
                workspace.team(&plan.inputs.focus, &files),
                watch,
                &workspace.cancel,
            )
        })
    }

    fn settle(
        &self,
        world: &mut AgentWorld<'_, Team>,
        past: &Past,
    ) -> Result<Vec<Recorded>, Failure> {
        let restored = |paths: &[String]| {
            // A configuration that was the agent's own has been read already.
            if paths
                .iter()
                .any(|path| [SPEC_CONFIG, PROJECT_FILE].contains(&path.as_str()))
            {
                let why =
                    anyhow!("the agent had changed the configuration, which was just restored");
                return Err(Failure::refused(
                    why,
                    "run it again: code-commit spec run --resume",
                ));
            }
            let forgotten = project::forget_copies(&self.workspace.runs);
            Ok(forgotten.context("cannot remove what a killed run has left")?)
        };
        WORDS.settle::<Specs, _>(world, past, Role::named, restored, self.site.host.output)
    }

    fn lead(
        &self,
        plan: &Begun,
        (): &(),
        harness: &mut Journaled<AgentWorld<'_, Team>>,
    ) -> Result<Outcome, Stop<AgentFault>> {
        code_commit_loop_spec::spec(harness, &plan.inputs)
    }

    fn holds_for(
        &self,
        plan: &Begun,
        _: &RunFolder,
        outcome: &Outcome,
        _: Interrupt<'_>,
    ) -> HoldsFor {
        match outcome {
            Outcome::ModelUnavailable { .. } | Outcome::Unfit { .. } => HoldsFor::default(),
            Outcome::Done { .. } | Outcome::AttemptsUsedUp { .. } | Outcome::NeedsPerson { .. } => {
                self.workspace.holds_for(&plan.inputs)
            }
        }
    }

    fn fault(&self, fault: AgentFault, run: &RunFolder) -> Failure {
        WORDS.fault(fault, run)
    }

    fn tell(&self, _: &Begun, over: &Over<'_>) -> Result<Map<String, Value>, Failure> {
        Ok(summary::tell(over))
    }
}

/// The newest run of the spec loop, and what it was begun with.
pub(super) fn newest(site: &Site<'_>) -> Option<(Known, Begun)> {
    let all = site.registry().all().unwrap_or_default();
    all.into_iter()
        .find_map(|known| begun(&known.path(&site.root)).map(|begun| (known, begun)))
}

/// Whether a run can be gone on with: one that was killed or interrupted, and one that ended because its agent could not be used.
pub(super) fn goes_on(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, None | Some(Outcome::ModelUnavailable { .. }))
}

/// The identity of the tree before its last review: an approval holds for what was reviewed, whatever has changed since.
fn reviewed(folder: &RunFolder) -> Option<String> {
    let past = Past::read(folder.path()).ok()?;
    let of_project = past.holding().filter_map(|line| {
        if let Line::Identified(of) = line {
            Some(of).filter(|of| of.place == Place::Project.name())
        } else {
            None
        }
    });
    of_project.last()?.sha256
}

/// What the run in a folder was begun with; none for an audit.
pub(super) fn begun(folder: &Path) -> Option<Begun> {
    serde_json::from_str(&std::fs::read_to_string(folder.join(RUN_JSON)).ok()?).ok()
}

/// Whether the verdict of a run is about this content of a file of the backlog, and about this tree.
pub(super) fn is_about(folder: &RunFolder, item: &Item, tree: Option<&str>) -> bool {
    let is_its_item = begun(folder.path()).is_some_and(|begun| begun.item.as_ref() == Some(item));
    let past = Past::read(folder.path()).unwrap_or_default();
    let judged = past
        .end()
        .and_then(|(_, holds_for)| holds_for.tree.as_deref());
    is_its_item && tree.is_some() && judged == tree
}

#[cfg(test)]
mod tests {
    use code_commit_engine::Note;
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
        let begun = Begun {
            which: "spec".to_owned(),
            version: "1".to_owned(),
            inputs: Inputs::new("id", "do A"),
            limits: AgentLimits::default(),
            item: Some(item("one")),
            agent: AgentOptions::default(),
            key: None,
        };
        folder.store_json(RUN_JSON, &begun).unwrap();
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
            .note(&Note::Ended {
                outcome: Outcome::Done { rounds: 1 },
                holds_for,
            })
            .unwrap();
        assert!(is_about(&folder, &item("one"), Some("tree")));
        for (sha256, tree) in [("two", Some("tree")), ("one", Some("other")), ("one", None)] {
            assert!(!is_about(&folder, &item(sha256), tree), "{sha256} {tree:?}");
        }
    }
}
