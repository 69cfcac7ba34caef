//! Runs in the formats of other tools.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT, TOUCHES_GIT};
use serde_json::{Value, json};

use crate::scenes::json_schema::Published;
use crate::scenes::program::{Ran, tool};
use crate::scenes::{commit, order, phase, spec};

/// The records in what was printed, each of which fits the published schema.
#[track_caller]
fn records(printed: &str) -> Vec<Value> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/agent-trace-0.1.0.schema.json");
    let schema = Published::at(&file);
    let records: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for record in &records {
        assert_eq!(schema.faults(record), [""; 0], "{record}");
    }
    records
}

/// `PATH: MODEL FIRST-LAST …` of a record.
fn ranges(record: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().unwrap().clone();
    let mut lines = Vec::new();
    for file in list(&record["files"]) {
        for conversation in list(&file["conversations"]) {
            let model = conversation["contributor"]["model_id"]
                .as_str()
                .unwrap_or("?")
                .to_owned();
            let of = |range: &Value| format!(" {}-{}", range["start_line"], range["end_line"]);
            let all: String = list(&conversation["ranges"]).iter().map(of).collect();
            lines.push(format!("{}: {model}{all}", file["path"].as_str().unwrap()));
        }
    }
    lines
}

#[test]
fn the_lines_of_a_run_are_attributed_to_its_model_and_to_the_commit_that_holds_them() {
    let scene = commit::Scene::with_replies([TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let before = scene
        .project
        .git(&["status", "--porcelain", "--ignored"])
        .unwrap();
    let trace = || records(&scene.run(&["trace", "--format", "agent-trace"]).out);
    let first = trace();
    assert_eq!(
        ranges(&first[0]),
        [
            "README.md: gemini/gemini-test 1-3",
            "src/greet.sh: gemini/gemini-test 1-1 3-3"
        ]
    );
    assert_eq!(first[0].get("vcs"), None, "the lines are not committed");
    assert_eq!(
        scene
            .project
            .git(&["status", "--porcelain", "--ignored"])
            .unwrap(),
        before,
        "nothing is in the tree"
    );
    scene.project.commit("by a person").unwrap();
    let head = scene.project.git(&["rev-parse", "HEAD"]).unwrap();
    assert_eq!(
        trace()[0]["vcs"],
        json!({ "type": "git", "revision": head.trim() })
    );
    let file = scene.project.beside().join("records.jsonl");
    let ran = scene.run(&[
        "trace",
        "--format",
        "agent-trace",
        "-o",
        file.to_str().unwrap(),
    ]);
    assert_eq!(
        (
            ran.code,
            records(&std::fs::read_to_string(&file).unwrap()).len()
        ),
        (Some(0), 1),
        "{ran}"
    );
}

/// The note of the commit that is checked out.
const NOTE: [&str; 4] = ["notes", "--ref=code-commit", "show", "HEAD"];

/// The note is this record, but for its time, which is that of the commit and not that of its line in the journal, and
/// with the identity of its change.
#[track_caller]
fn assert_is_noted(record: &Value, note: &str) {
    let [note] = &mut records(note)[..] else {
        panic!("{note}")
    };
    let patch_id = note["metadata"]["dev.code-commit"]
        .as_object_mut()
        .unwrap()
        .remove("patch_id");
    assert!(
        patch_id.is_some_and(|id| id.as_str().unwrap().len() == 40),
        "{note}"
    );
    for key in ["id", "vcs", "files", "metadata"] {
        assert_eq!(note[key], record[key], "{key}");
    }
}

#[test]
fn each_commit_of_a_run_has_a_record_and_a_note() {
    let scene = order::Scene::with(&[&order::greet(order::BAD), &order::greet(order::GOOD)]);
    assert_eq!(scene.run(&["--commit"]).code, Some(0));
    let trace = ["trace", "--format", "agent-trace"];
    let of_order = records(&Ran::of(&mut scene.program(&trace)).out);
    assert_is_noted(&of_order[0], &scene.project.git(&NOTE).unwrap());
    assert_eq!(ranges(&of_order[0]), ["src/greet.sh: openai/test 2-2"]);
    assert_eq!(
        of_order[0]["vcs"]["revision"],
        scene.project.git(&["rev-parse", "HEAD"]).unwrap().trim()
    );

    let scene = spec::Scene::new(&[spec::PLAN, spec::DONE, spec::APPROVE]);
    scene.configure(&spec::all_settings());
    scene.run();
    let of_spec = records(&Ran::of(&mut scene.command(&trace, &[])).out);
    assert_eq!(of_spec.len(), 1);
    assert_is_noted(&of_spec[0], &scene.git(&NOTE));
    assert_eq!(
        of_spec[0]["vcs"]["revision"],
        scene.git(&["rev-parse", "HEAD"]).trim()
    );
    assert_eq!(of_spec[0]["files"][0]["path"], "src.txt");

    let turns = [
        ("builder-1", "echo one > app"),
        ("verifier-1", "fails 404"),
        ("builder-2", "echo two > app"),
    ];
    let scene = phase::Scene::new(&turns);
    assert_eq!(scene.run(&["run"]).code, Some(0));
    let of_phase = records(&scene.code_commit(&trace, &[]).out);
    let folder = scene.project("src");
    let noted = Ran::of(&mut tool(
        "git",
        &folder,
        &scene.at("home"),
        &["notes", "--ref=code-commit", "show", "HEAD~"],
    ));
    assert!(
        of_phase
            .iter()
            .any(|record| record["id"] == records(&noted.out)[0]["id"]),
        "{noted}"
    );
    let builds: Vec<String> = of_phase
        .iter()
        .flat_map(ranges)
        .filter(|line| line.starts_with("src/app"))
        .collect();
    assert_eq!(
        builds,
        ["src/app: gemini-test 1-1", "src/app: gemini-test 1-1"]
    );
}

/// The spans of the newest run, read back by the official mapping; `None` without it, and a loud line.
fn spans(printed: &str) -> Option<Vec<Value>> {
    let Some(packages) = std::env::var_os("CODE_COMMIT_TEST_OTLP") else {
        eprintln!(
            "SKIPPED: OTLP by the official mapping, because CODE_COMMIT_TEST_OTLP does not name opentelemetry-proto"
        );
        return None;
    };
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/end_to_end/trace/read_otlp.py"
    );
    let mut command = Command::new("python3");
    command
        .arg(script)
        .env("PYTHONPATH", packages)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(printed.as_bytes())
        .unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{printed}");
    let text = String::from_utf8(done.stdout).unwrap();
    Some(
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

#[test]
fn a_run_is_a_trace_of_rounds_calls_and_builds() {
    let scene = commit::Scene::with_replies([TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let printed = scene.run(&["trace", "--format", "otlp"]).out;
    assert_eq!(
        printed.lines().count(),
        1,
        "one document a line, as collectors read them"
    );
    let Some(spans) = spans(&printed) else { return };
    let told: Vec<String> = spans
        .iter()
        .map(|span| format!("{} < {} {}", span["name"], span["parent"], span["status"]))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    "commit" < null 1
    "round 1" < "commit" 0
    "chat gemini-test" < "round 1" 0
    "round 2" < "commit" 0
    "chat gemini-test" < "round 2" 0
    "build" < "round 2" 2
    "round 3" < "commit" 0
    "chat gemini-test" < "round 3" 0
    "build" < "round 3" 1
    "build" < "round 3" 0
    "#);
    let call = &spans[2]["attributes"];
    for (key, value) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("gcp.gemini")),
        ("gen_ai.request.model", json!("gemini-test")),
        ("gen_ai.usage.input_tokens", json!(815)),
    ] {
        assert_eq!(call[key], value, "{key} of {call}");
    }
}

#[test]
fn turns_of_agents_and_commands_of_orders_are_spans_too() {
    let names = |spans: &[Value]| {
        spans
            .iter()
            .map(|span| span["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let scene = order::Scene::with(&[&order::greet(order::GOOD)]);
    assert_eq!(scene.run(&[]).code, Some(0));
    let trace = ["trace", "--format", "otlp"];
    let Some(of_order) = spans(&Ran::of(&mut scene.program(&trace)).out) else {
        return;
    };
    assert_eq!(of_order[0]["attributes"]["code_commit.verdict"], "PASS");
    assert!(
        names(&of_order).contains(&"command".to_owned()),
        "{of_order:?}"
    );
    let scene = spec::Scene::new(&[spec::PLAN, spec::DONE, spec::APPROVE]);
    scene.configure(&spec::all_settings());
    scene.run();
    let of_spec = spans(&Ran::of(&mut scene.command(&trace, &[])).out).unwrap();
    let agents: Vec<String> = names(&of_spec)
        .into_iter()
        .filter(|name| name.starts_with("invoke_agent"))
        .collect();
    assert_eq!(agents.len(), 3, "{agents:?}");
}
