//! The world of an order, in memory.

use std::collections::BTreeMap;

use code_commit_engine::{
    Answered, AskAnswer, Broke, Cause, Committed, Digest, Durability, Ended, Finish, Journaled,
    Kept, Live, Looked, Measured, Ran, Recorded, Refused, RolledBack, Stamped, Stop, Stored, Tail,
    Text, Tried, Usage, WhyRefused, WriteAnswer, Written,
};
use serde_json::json;

use super::*;
use crate::order::WorkOrder;

pub(super) const REPLY: &str = r#"{"summary": "s", "writes": [{"path": "a", "base_sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "content": "x"}]}"#;

pub(super) fn inputs(over: &serde_json::Value) -> Inputs {
    let mut order = json!({
        "id": "1", "title": "t", "intent": "i", "allowed_files": ["a"], "forbidden": [],
        "acceptance_commands": ["accept one", "accept two"], "context_files": [],
    });
    for (field, value) in over.as_object().unwrap() {
        order[field] = value.clone();
    }
    Inputs {
        form: code_commit_prompt::edits::Form::Files,
        order: WorkOrder::parse(order.to_string().as_bytes()).unwrap(),
        work_order_path: "/o.json".to_owned(),
        repo_path: "/r".to_owned(),
        baseline_commit: "c0".to_owned(),
        tree_hash_before: "t0".to_owned(),
        run_id: "id".to_owned(),
        max_attempts: 2,
        commit: false,
        allowed: Vec::new(),
        context: Vec::new(),
    }
}

/// Answers that all is well, except for commands that begin with one of `failing`; keeps the requests and the
/// journal, and can stop the run.
#[derive(Clone)]
pub(super) struct World {
    pub(super) failing: Vec<&'static str>,
    pub(super) reply: &'static str,
    pub(super) conditions_hold: bool,
    pub(super) has_model: bool,
    /// Commands with such logs break off.
    pub(super) breaks: Option<&'static str>,
    /// The performed requests, one per line.
    pub(super) steps: Vec<String>,
    /// The stored artifacts.
    pub(super) kept: BTreeMap<String, String>,
    pub(super) journal: Vec<Recorded>,
    /// The run is stopped after this many answers.
    pub(super) stop_after: usize,
}

/// The run was stopped.
#[derive(Debug)]
pub(super) struct Stopped;

impl World {
    pub(super) fn failing(commands: &[&'static str]) -> Self {
        Self {
            failing: commands.to_vec(),
            reply: REPLY,
            conditions_hold: true,
            has_model: true,
            breaks: None,
            steps: Vec::new(),
            kept: BTreeMap::new(),
            journal: Vec::new(),
            stop_after: usize::MAX,
        }
    }

    /// Runs the order after these answers; returns its outcome and the final world.
    pub(super) fn run(self, inputs: &Inputs) -> (Option<Finished>, Self) {
        let recorded = self.journal.clone();
        let mut harness = Journaled::new(self, recorded);
        let finished = match order(&mut harness, inputs) {
            Ok(finished) => Some(finished),
            Err(Stop::Fault(Stopped)) => None,
            Err(stop) => panic!("{stop:?}"),
        };
        (finished, harness.world().clone())
    }

    fn step(&mut self, line: String) -> Result<(), Stopped> {
        if self.journal.len() >= self.stop_after {
            return Err(Stopped);
        }
        self.steps.push(line);
        assert!(self.steps.len() < 200, "no end: {:#?}", self.steps);
        Ok(())
    }
}

impl code_commit_engine::World for World {
    type Fault = Stopped;

    fn record(&mut self, entry: &Recorded, _durability: Durability) -> Result<(), Stopped> {
        self.journal.push(entry.clone());
        Ok(())
    }

    fn fetch(&mut self, text: &mut Text) -> Result<(), Stopped> {
        text.fill(self.reply.into());
        Ok(())
    }

    fn fetch_output(&mut self, _: &mut Text) -> Result<(), Stopped> {
        Ok(())
    }

    fn recall(&mut self, _: &Digest) -> Option<String> {
        None
    }

    fn end(&mut self, _: &Outcome) -> Result<(), Stopped> {
        Ok(())
    }
}

impl Live<Stamp> for World {
    fn perform(&mut self, _: &Stamp) -> Result<Stamped, Stopped> {
        self.step("stamp".to_owned())?;
        Ok(Stamped {
            at: "now".to_owned(),
        })
    }
}

impl Live<Look> for World {
    fn perform(&mut self, Look { conditions }: &Look) -> Result<Tried<Looked>, Stopped> {
        self.step(format!("look at {} conditions", conditions.len()))?;
        let failed = if self.conditions_hold {
            Vec::new()
        } else {
            conditions.clone()
        };
        Ok(Tried::Done(Looked { failed }))
    }
}

impl Live<Ask> for World {
    fn perform(&mut self, Ask { round, .. }: &Ask) -> Result<AskAnswer, Stopped> {
        self.step(format!("ask {round}"))?;
        let round = *round;
        if !self.has_model {
            let cause = Cause {
                code: "x".to_owned(),
                message: "gone".to_owned(),
                remedy: None,
            };
            return Ok(AskAnswer::Unanswered(code_commit_engine::Unanswered {
                round,
                cause,
            }));
        }
        Ok(AskAnswer::Answered(Answered {
            round,
            reply: Text::in_file("reply", self.reply),
            raw: Stored {
                file: "raw".to_owned(),
                bytes: 0,
                sha256: String::new(),
            },
            finish: Finish::Complete,
            for_person: None,
            held_key: false,
            usage: Usage::default(),
            served_model: None,
            cost_usd: None,
            elapsed_ms: 0,
        }))
    }
}

impl Live<Write> for World {
    fn perform(
        &mut self,
        Write { attempt, reply, .. }: &Write,
    ) -> Result<Tried<WriteAnswer>, Stopped> {
        self.step(format!("write {attempt}"))?;
        let (attempt, changes) = (*attempt, Vec::new());
        Ok(Tried::Done(if &*reply.text == REPLY {
            let (touched, warnings) = (vec!["a".to_owned()], Vec::new());
            WriteAnswer::Written(Written {
                attempt,
                touched,
                changes,
                warnings,
                verify_script: true,
            })
        } else {
            let (touched, problems) = (Vec::new(), Vec::new());
            WriteAnswer::Refused(Refused {
                attempt,
                why: WhyRefused::Unusable,
                touched,
                problems,
            })
        }))
    }
}

impl Live<Run> for World {
    fn perform(&mut self, Run { log, argv }: &Run) -> Result<Tried<Ran>, Stopped> {
        let command = argv.join(" ");
        self.step(format!("run {command} as {log}"))?;
        if self.breaks.is_some_and(|logs| log.starts_with(logs)) {
            return Ok(Tried::Broke(Broke {
                message: "the disk is gone".to_owned(),
            }));
        }
        let fails = self.failing.iter().any(|one| command.starts_with(one));
        let tail = || Tail {
            file: String::new(),
            text: String::new(),
        };
        Ok(Tried::Done(Ran {
            log: log.clone(),
            argv: argv.clone(),
            ended: Ended::Exited(i32::from(fails)),
            seal_broken: false,
            stdout: tail(),
            stderr: tail(),
            elapsed_ms: 0,
        }))
    }
}

impl Live<RollBack> for World {
    fn perform(&mut self, _: &RollBack) -> Result<RolledBack, Stopped> {
        self.step("roll back".to_owned())?;
        Ok(RolledBack { warnings: vec![] })
    }
}

impl Live<Keep> for World {
    fn perform(&mut self, Keep { file, text }: &Keep) -> Result<Kept, Stopped> {
        self.step(format!("keep {file}"))?;
        self.kept.insert(file.clone(), text.to_string());
        let Digest { bytes, sha256 } = Digest::of(text);
        Ok(Kept {
            stored: Stored {
                file: file.clone(),
                bytes,
                sha256,
            },
        })
    }
}

impl Live<Measure> for World {
    fn perform(&mut self, _: &Measure) -> Result<Tried<Measured>, Stopped> {
        self.step("measure".to_owned())?;
        Ok(Tried::Done(Measured {
            tree_sha256: "t1".to_owned(),
            changes: Vec::new(),
            put_back: Vec::new(),
        }))
    }
}

impl Live<Commit> for World {
    fn perform(&mut self, Commit { message }: &Commit) -> Result<CommitAnswer, Stopped> {
        self.step(format!(
            "commit by the line {}",
            message.lines().next_back().unwrap_or_default()
        ))?;
        let commit = Some("c1".to_owned());
        Ok(CommitAnswer::Committed(Committed {
            repository: None,
            message: None,
            commit,
        }))
    }
}
