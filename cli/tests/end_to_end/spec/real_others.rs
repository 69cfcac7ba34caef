//! The real Gemini CLI and Codex, named by `CODE_COMMIT_TEST_GEMINI` and `CODE_COMMIT_TEST_CODEX`, against a scripted service.

use std::os::unix::fs::symlink;
use std::path::Path;

use code_commit_fixtures::server::{Script, Server, Step};
use serde_json::json;

use crate::scenes::program::{Ran, must_have};
use crate::scenes::spec::{Scene, all_settings};

const KEY: &str = "AIzaSySpec-key-of-no-use-0123456789";

/// A project whose agent is the real one; none, and a loud line, where there is none.
fn scene(variable: &str, name: &str) -> Option<Scene> {
    let Some(program) = std::env::var_os(variable) else {
        eprintln!("SKIPPED: specs with the real {name}, because {variable} is not set");
        return None;
    };
    let scene = Scene::new(&[]);
    symlink(
        Path::new(&program).canonicalize().unwrap(),
        scene.home().join("bin").join(name),
    )
    .unwrap();
    scene.configure(&all_settings());
    Some(scene)
}

/// The plan file's name stands in the prompt, which a script cannot read; the agent's command line has it too. Gemini CLI refuses `$(…)`.
const PLAN: &str = r"grep -aohs '\.cuggino/wip/[0-9a-f-]*\.plan\.md' /proc/[0-9]*/cmdline | head -n 1 | xargs cp .specs/a.md";

/// A service whose model plans, does a task and reviews: each agent has one command, called as its CLI wants it, then its last words. The
/// reviewer changes what it approves.
fn service(command: impl Fn(&str) -> Step) -> Server {
    let turn = |line: &str, words: &str| [command(line), Step::text(words)];
    let steps = [
        turn(PLAN, "<PLAN_COMPLETE>ready</PLAN_COMPLETE>"),
        turn(
            "echo one > src.txt; echo plan > .specs/a.md",
            "<NOTE>seen</NOTE>\n<DONE>the task</DONE>",
        ),
        turn(
            "cat src.txt; echo reviewer > src.txt",
            "<APPROVED>good</APPROVED>",
        ),
    ];
    Server::start(Script::new(steps.concat())).unwrap()
}

/// A run in the sandbox comes to an approval; the agents' commands are shown as calls of this tool.
fn check(scene: &Scene, server: &Server, more: &[&str], environment: &[(&str, &str)], tool: &str) {
    let args = [
        "spec",
        "run",
        "--focus",
        "Add X",
        "--max-tokens",
        "1000000",
        "--turn-timeout",
        "2m",
        "--verbose",
    ];
    let args = [&args[..], more].concat();
    let Ran { out, err, .. } = Ran::of(&mut scene.command(&args, environment)).exits(0);
    assert_eq!(scene.git(&["log", "--format=%s"]), "the task\nfirst\n");
    assert_eq!(
        (scene.read("src.txt"), scene.read(".specs/a.md")),
        ("one\n".to_owned(), "# A\n".to_owned())
    );
    let shown = format!("▶ {tool}: ");
    must_have(&out, &shown);
    assert!(!out.contains(KEY) && !err.contains(KEY), "{out}");
    assert_eq!(server.steps_left(), 0);
}

#[test]
fn gemini_cli_plans_does_a_task_and_reviews_in_the_sandbox() {
    let Some(scene) = scene("CODE_COMMIT_TEST_GEMINI", "gemini") else {
        return;
    };
    let settings = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } });
    std::fs::create_dir(scene.home().join(".gemini")).unwrap();
    std::fs::write(
        scene.home().join(".gemini/settings.json"),
        settings.to_string(),
    )
    .unwrap();
    let tool = "run_shell_command";
    let server = service(|line| {
        Step::text("Working.").and_call(tool, json!({ "command": line, "description": "work" }))
    });
    let more = [
        "--agent",
        "gemini",
        "--model",
        "gemini-test-1",
        "--base-url",
        server.origin(),
    ];
    check(&scene, &server, &more, &[("GEMINI_API_KEY", KEY)], tool);
}

#[test]
fn codex_plans_does_a_task_and_reviews_in_the_sandbox() {
    let Some(scene) = scene("CODE_COMMIT_TEST_CODEX", "codex") else {
        return;
    };
    let call = |line: &str| Step::text("Working.").and_call("exec_command", json!({ "cmd": line }));
    let server = service(call);
    let address = format!("{}/v1", server.origin());
    let environment = [
        ("OPENAI_BASE_URL", address.as_str()),
        ("CODEX_API_KEY", KEY),
    ];
    let more = ["--agent", "codex", "--model", "gpt-test-1"];
    check(&scene, &server, &more, &environment, "command_execution");
}
