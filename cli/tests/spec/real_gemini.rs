//! The real Gemini CLI, named by `CODE_COMMIT_TEST_GEMINI`, against a scripted service.

#![expect(clippy::disallowed_methods, reason = "the program is named by the environment")]

use std::os::unix::fs::symlink;
use std::path::Path;

use fixtures::server::{Script, Server, Step};
use serde_json::json;

use crate::harness::{Scene, all_settings};

const KEY: &str = "AIzaSySpec-key-of-no-use-0123456789";

/// A command of the agent, then its last words.
fn turn(command: &str, words: &str) -> [Step; 2] {
    let call = Step::text("Working.")
        .and_call("run_shell_command", json!({ "command": command, "description": "work" }));
    [call, Step::text(words)]
}

/// The plan file's name stands in the prompt, which a script cannot read; the run's record has it too. The CLI refuses `$(…)`.
fn plan() -> [Step; 2] {
    let id = r#"sed -n 's/.*"id": *"\([0-9a-f-]*\)".*/\1/p' .git/code-commit/spec/*/run.json"#;
    let write = "xargs -I ID cp .specs/a.md .cuggino/wip/ID.plan.md";
    turn(&format!("{id} | {write}"), "<PLAN_COMPLETE>ready</PLAN_COMPLETE>")
}

#[test]
fn gemini_cli_plans_does_a_task_and_reviews_behind_the_wall() {
    let Some(program) = std::env::var_os("CODE_COMMIT_TEST_GEMINI") else {
        eprintln!("SKIPPED: specs with the real Gemini CLI, because CODE_COMMIT_TEST_GEMINI is not set");
        return;
    };
    let scene = Scene::new(&[]);
    symlink(Path::new(&program).canonicalize().unwrap(), scene.home().join("bin/gemini")).unwrap();
    let settings = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } });
    std::fs::create_dir(scene.home().join(".gemini")).unwrap();
    std::fs::write(scene.home().join(".gemini/settings.json"), settings.to_string()).unwrap();
    scene.configure(&all_settings());
    let steps = [
        plan(),
        turn("echo one > src.txt; echo plan > .specs/a.md", "<NOTE>seen</NOTE>\n<DONE>the task</DONE>"),
        turn("cat src.txt; echo reviewer > src.txt", "<APPROVED>good</APPROVED>"),
    ];
    let server = Server::start(Script::new(steps.concat())).unwrap();
    let args = ["spec", "run", "--focus", "Add X", "--agent", "gemini", "--model", "gemini-test-1"];
    let args = [&args[..], &["--base-url", server.origin(), "--max-tokens", "1000000", "--verbose"]].concat();
    let done = scene.command(&args, &[("GEMINI_API_KEY", KEY)]).output().unwrap();
    let [out, err] = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert_eq!(done.status.code(), Some(0), "{out}\n{err}");
    assert_eq!(scene.git(&["log", "--format=%s"]), "the task\nfirst\n");
    assert_eq!((scene.read("src.txt"), scene.read(".specs/a.md")), ("one\n".to_owned(), "# A\n".to_owned()));
    assert!(out.contains("▶ run_shell_command: ") && !out.contains(KEY) && !err.contains(KEY), "{out}");
    assert_eq!(server.steps_left(), 0);
}
