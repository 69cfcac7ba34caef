//! Everything that a loop needs and meets, in memory.

use llm::Usage;
use logging::Stored;
use perform::{Ended, Finish, Tail, Text, WhyRefused};
use serde_json::json;

use super::*;

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

pub(super) fn text(content: &str) -> Text {
    Text::new(
        Stored { file: "t".to_owned(), bytes: content.len() as u64, sha256: String::new() },
        content.into(),
    )
}

/// What the world answers: all is well but for the commands whose first word is in `failing`.
pub(super) struct World {
    pub(super) failing: Vec<&'static str>,
    pub(super) reply: &'static str,
    pub(super) conditions_hold: bool,
}

impl World {
    pub(super) fn failing(commands: &[&'static str]) -> Self {
        Self { failing: commands.to_vec(), reply: REPLY, conditions_hold: true }
    }

    pub(super) fn answer(&self, step: &OrderStep) -> OrderFact {
        match step {
            OrderStep::Stamp => OrderFact::Stamped { at: "now".to_owned() },
            OrderStep::Look { conditions } => {
                let failed = if self.conditions_hold { Vec::new() } else { conditions.clone() };
                OrderFact::Looked { failed }
            }
            OrderStep::Ask { attempt, .. } => OrderFact::Call(answered(*attempt, self.reply)),
            OrderStep::Write { attempt, answer, .. } if &*answer.reply == REPLY => OrderFact::Written {
                attempt: *attempt,
                touched: vec!["a".to_owned()],
                changes: Vec::new(),
                warnings: Vec::new(),
                verify_script: true,
            },
            OrderStep::Write { attempt, .. } => OrderFact::Refused {
                attempt: *attempt,
                why: WhyRefused::Unusable,
                touched: Vec::new(),
                problems: Vec::new(),
            },
            OrderStep::Run { log, argv } => {
                let command = argv.join(" ");
                let fails = self.failing.iter().any(|failing| command.starts_with(failing));
                let tail = || Tail { file: String::new(), text: String::new() };
                OrderFact::Ran {
                    log: log.clone(),
                    argv: argv.clone(),
                    ended: Ended::Exited(i32::from(fails)),
                    seal_broken: false,
                    stdout: tail(),
                    stderr: tail(),
                    elapsed_ms: 0,
                }
            }
            OrderStep::RollBack => OrderFact::RolledBack { warnings: vec![] },
            OrderStep::Keep { file, text } => {
                let sha256 = crate::ids::sha256_hex(text.as_bytes());
                let stored = Stored { file: file.clone(), bytes: 0, sha256 };
                OrderFact::Kept { stored }
            }
            OrderStep::Measure => OrderFact::Measured { tree_sha256: "t1".to_owned() },
            OrderStep::Commit { .. } => OrderFact::Committed { commit: Some("c1".to_owned()) },
        }
    }

    /// Lets the loop run to its end; its steps, a line each.
    pub(super) fn run(&self, decide: &mut OrderLoop) -> String {
        let mut steps = Vec::new();
        while let Next::Do(step) = decide.next() {
            steps.push(line(&step));
            decide.learn(&self.answer(&step));
            assert!(steps.len() < 200, "no end: {steps:#?}");
        }
        steps.join("\n")
    }
}

fn answered(round: u32, reply: &str) -> CallFact {
    let reply = text(reply);
    CallFact::Answered {
        round,
        raw: reply.stored.clone(),
        reply,
        finish: Finish::Complete,
        held_key: false,
        usage: Usage::default(),
        served_model: None,
        cost_usd: None,
        elapsed_ms: 0,
    }
}

fn line(step: &OrderStep) -> String {
    match step {
        OrderStep::Stamp => "stamp".to_owned(),
        OrderStep::Look { conditions } => format!("look at {} conditions", conditions.len()),
        OrderStep::Ask { attempt, .. } => format!("ask {attempt}"),
        OrderStep::Write { attempt, .. } => format!("write {attempt}"),
        OrderStep::Run { log, argv } => format!("run {} as {log}", argv.join(" ")),
        OrderStep::RollBack => "roll back".to_owned(),
        OrderStep::Keep { file, .. } => format!("keep {file}"),
        OrderStep::Measure => "measure".to_owned(),
        OrderStep::Commit { message } => {
            format!("commit by the line {}", message.lines().next_back().unwrap_or_default())
        }
    }
}
