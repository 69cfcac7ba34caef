//! What `--json` prints and what the journals of specs hold, against `docs/schemas/agents.schema.json`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::scenes::files;
use crate::scenes::json_schema::Published;
use crate::scenes::spec::{APPROVE, PLAN, Scene, all_settings};
use crate::spec::waiting::watch;

/// Every line is one that the schema knows. All tests that look at lines ask for this.
pub fn hold(lines: &[Value]) {
    let schema = Published::read("agents.schema.json");
    let found: Vec<String> = lines
        .iter()
        .flat_map(|line| schema.faults_of("spec-line", line))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// The facts of all journals below a folder, each of which the schema knows.
pub fn recorded(folder: &Path) -> Vec<String> {
    let schema = Published::read("agents.schema.json");
    let mut kinds = Vec::new();
    for journal in journals(folder) {
        for line in std::fs::read_to_string(journal).unwrap().lines() {
            let entry: Value = serde_json::from_str(line).unwrap();
            let found = schema.faults_of("entry", &entry);
            assert!(found.is_empty(), "{found:#?}");
            kinds.push(entry["fact"]["what"].as_str().unwrap().to_owned());
        }
    }
    kinds
}

fn journals(folder: &Path) -> impl Iterator<Item = PathBuf> {
    files::below(folder)
        .into_iter()
        .filter(|path| path.ends_with("events.jsonl"))
}

fn kinds_of(lines: &[Value]) -> Vec<String> {
    lines
        .iter()
        .map(|line| line["event"].as_str().unwrap().to_owned())
        .collect()
}

fn distinct(mut words: Vec<String>) -> String {
    words.sort();
    words.dedup();
    words.join(" ")
}

/// Agents that use tools and touch what is not theirs.
const EVERYTHING: [&str; 7] = [
    PLAN,
    "echo x > .specs/a.md; tool Read src.txt; say 'one <NOTE>n</NOTE> two'; say '<PROGRESS>first</PROGRESS>'",
    "say '<DONE>nothing was left to do</DONE>'",
    "say '<REQUEST_CHANGES>no</REQUEST_CHANGES>'",
    "line '{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"is_error\":true,\"content\":\"no\"}]}}'; printf '# Plan\\n' > $WIP.plan.md; say '<PLAN_COMPLETE>again</PLAN_COMPLETE>'",
    "echo more > src.txt; say '<DONE>all</DONE>'",
    APPROVE,
];

#[test]
fn every_line_that_a_run_prints_and_records_fits_the_schema() {
    let scene = Scene::new(&EVERYTHING);
    scene.configure(&all_settings());
    let (code, lines) = scene.events();
    assert_eq!(code, Some(0), "{lines:#?}");
    insta::assert_snapshot!(distinct(kinds_of(&lines)), @"AgentMessage Approved ChangesPutBack CheckCommandOutput CommitPerformed Done ImplementingStart IterationStart LoopApproved Note PlanComplete PlanningStart Progress RequestChanges ReviewingStart SetupCommandOutput SystemMessage ToolCall ToolResult summary");
    insta::assert_snapshot!(distinct(recorded(&scene.root())), @"announced checkpointed ended identified shell-ran surveyed turn-begins turned was-read wrote");
}

#[test]
fn what_a_watch_and_its_audit_print_fits_the_schema() {
    let scene = Scene::new(&["say '<TO_BE_DISCUSSED>one</TO_BE_DISCUSSED>'"]);
    scene.configure(&json!({ "audit": true }));
    let (lines, _) = watch(&scene, "AuditEnded");
    insta::assert_snapshot!(distinct(kinds_of(&lines)), @"AuditEnded AuditStarted BacklogEmpty SystemMessage TbdItemFound ToBeDiscussed");
    assert!(!recorded(&scene.root()).is_empty());
    hold(&scene.spec(&["status", "--json"]).objects());
}
