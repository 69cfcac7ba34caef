//! What is left of runs, and of orders, at 60, 80 and 120 columns.

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::server::{Script, Step};
use serde_json::json;

use crate::scenes::commit::Scene;
use crate::scenes::screen::Terminal;
use crate::terminal::check;

const WIDTHS: [u16; 3] = [60, 80, 120];
/// In whose name git commits.
const NAMES: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "A"),
    ("GIT_AUTHOR_EMAIL", "a@example.invalid"),
    ("GIT_COMMITTER_NAME", "A"),
    ("GIT_COMMITTER_EMAIL", "a@example.invalid"),
];

/// A project with a run of three rounds.
fn after_a_run() -> Scene {
    let scene = Scene::new(Script::new(
        [TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT].map(Step::text),
    ));
    assert!(
        scene
            .keyed(&scene.flags(), &[])
            .output()
            .unwrap()
            .status
            .success()
    );
    scene
}

/// Compares what `of` the screen is to be seen, at each width, with colour and without, in a project of its own each time.
fn at_all_widths(
    name: &str,
    code: i32,
    scene: impl Fn() -> Scene,
    args: &[&str],
    of: impl Fn(Vec<String>) -> Vec<String>,
) {
    for (look, environment) in [
        ("colour", &NAMES[..]),
        ("plain", &[&NAMES[..], &[("NO_COLOR", "1")]].concat()),
    ] {
        let mut text = String::new();
        let mut last = None;
        for columns in WIDTHS {
            let scene = scene();
            let mut terminal = Terminal::start(scene.keyed(args, environment), columns).unwrap();
            assert_eq!(
                terminal.finish().unwrap(),
                Some(code),
                "{}",
                terminal.lines().join("\n")
            );
            if look == "plain" {
                assert_eq!(
                    terminal.styled_lines(),
                    terminal.lines(),
                    "something is styled in spite of NO_COLOR"
                );
            }
            let lines = of(terminal.styled_lines()).join("\n");
            text.push_str(&format!("── {columns} columns\n{lines}\n\n"));
            last = Some(scene);
        }
        if let Some(scene) = last {
            check(&format!("{name}_{look}"), &scene, &text);
        }
    }
}

#[test]
fn a_run_is_shown() {
    at_all_widths("show", 0, after_a_run, &["show"], |lines| lines);
}

#[test]
fn runs_are_listed() {
    let two = || {
        let scene = after_a_run();
        let summary = format!("{}/summary.json", scene.runs()[0].display());
        let mut noted: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
        // A run that takes ten seconds or more on a busy machine has a shorter figure, and wraps elsewhere.
        noted["elapsed_ms"] = json!(1500);
        std::fs::write(&summary, noted.to_string()).unwrap();
        scene
            .project
            .write("agent-config/reply", b"^^^made.txt\nx\n^^^end\n")
            .unwrap();
        assert!(
            scene
                .keyed(&["apply", "agent-config/reply"], &[])
                .output()
                .unwrap()
                .status
                .success()
        );
        scene
    };
    at_all_widths("runs", 0, two, &["runs"], |lines| lines);
}

#[test]
fn a_run_is_undone() {
    at_all_widths("undo", 0, after_a_run, &["undo"], |lines| lines);
}

#[test]
fn orders_end_in_a_table() {
    let files = [
        "agent-config/a.json",
        "agent-config/b-with-a-longer-name.json",
    ];
    let args = [
        ["order", "run", "--quiet", "--out", "../out"].as_slice(),
        &[
            "--llm-model",
            "scripted/agent-config/proposals.json",
            "--sandbox",
            "off",
        ],
        &["--max-attempts", "1", "--commit", "--keep-going"],
        &files[..],
    ]
    .concat();
    // Above the table stand paths of this machine.
    let table = |lines: Vec<String>| {
        lines
            .rsplit(String::is_empty)
            .next()
            .unwrap_or_default()
            .to_vec()
    };
    at_all_widths("orders", 1, with_orders, &args, table);
}

/// A project with two orders, of which one can be met.
fn with_orders() -> Scene {
    let scene = Scene::new(Script::new([]));
    scene
        .project
        .write("scripts/verify.sh", b"#!/bin/sh\nexit 0\n")
        .unwrap();
    scene.project.commit("a verification").unwrap();
    for (file, path, command) in [
        ("a", "src/a.txt", "true"),
        ("b-with-a-longer-name", "src/b.txt", "false"),
    ] {
        let order = json!({
            "id": file, "title": "A file", "intent": "Write it.", "allowed_files": [path],
            "forbidden": [], "acceptance_commands": [command], "context_files": [],
        });
        let path = format!("agent-config/{file}.json");
        scene
            .project
            .write(&path, order.to_string().as_bytes())
            .unwrap();
    }
    let proposal = |path: &str| {
        let base = code_commit_logging::sha256_hex(b"");
        json!({ "summary": "s", "writes": [{ "path": path, "base_sha256": base, "content": "x\n" }] })
            .to_string()
    };
    let replies = ["src/a.txt", "src/b.txt"].map(|path| json!({ "text": proposal(path) }));
    let script = json!({ "replies": replies }).to_string();
    scene
        .project
        .write("agent-config/proposals.json", script.as_bytes())
        .unwrap();
    scene
}
