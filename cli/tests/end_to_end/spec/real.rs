//! The real Claude Code, named by `CODE_COMMIT_TEST_CLAUDE`, against a scripted service.

use std::os::unix::fs::symlink;

use code_commit_fixtures::server::{Script, Server, Step};
use serde_json::json;

use crate::scenes::program::Ran;
use crate::scenes::spec::{Scene, all_settings};

pub const KEY: &str = "fake-key-for-tests-1234";

/// A project whose agent is the real one; none, and a loud line, where there is none.
pub fn scene() -> Option<Scene> {
    let Some(program) = std::env::var_os("CODE_COMMIT_TEST_CLAUDE") else {
        eprintln!("SKIPPED: a test of Claude Code because CODE_COMMIT_TEST_CLAUDE is not set");
        return None;
    };
    let scene = Scene::new(&[]);
    let agent = scene.home().join("bin/claude");
    std::fs::remove_file(&agent).unwrap();
    symlink(program, &agent).unwrap();
    Some(scene)
}

/// Exit code, standard output and error of a run whose agent gets these answers.
fn run(scene: &Scene, steps: Vec<Step>, more: &[&str]) -> (Option<i32>, String, String, Server) {
    let server = Server::start(Script::new(steps)).unwrap();
    // Tests may be run by root, for whom Claude Code wants to hear of a sandbox.
    let environment = [
        ("ANTHROPIC_BASE_URL", server.origin()),
        ("ANTHROPIC_API_KEY", KEY),
        ("IS_SANDBOX", "1"),
    ];
    let mut args = vec![
        "spec",
        "run",
        "--focus",
        "Add X",
        "--verbose",
        "--model",
        "claude-test-1",
    ];
    args.extend(more);
    let Ran { code, out, err } = Ran::of(&mut scene.command(&args, &environment));
    (code, out, err, server)
}

/// One command of the agent, then its last words. `$W` is the stem of the session's files.
fn turn(command: &str, words: &str) -> [Step; 2] {
    let stem = "W=$(ls -t .cuggino/wip/*.md 2>/dev/null | head -n 1); W=${W%%.*md}";
    let call = Step::call(
        "Bash",
        json!({ "command": format!("{stem}; {command}"), "description": "work" }),
    );
    [call, Step::text(words)]
}

/// The plan file's name stands in the prompt; a script cannot read it, so the plan takes the name of a finding of the shell.
fn plan() -> [Step; 2] {
    let newest = "$(tr '\\0' '\\n' < /proc/$PPID/cmdline | grep -o '\\.cuggino/wip/[0-9a-f-]*\\.plan\\.md' | head -n 1)";
    let call = Step::call(
        "Bash",
        json!({ "command": format!("printf '# Plan\\n' > {newest}"), "description": "plan" }),
    );
    [call, Step::text("<PLAN_COMPLETE>ready</PLAN_COMPLETE>")]
}

#[test]
fn claude_code_does_two_tasks_a_review_requests_changes_and_then_approves() {
    let Some(scene) = scene() else { return };
    scene.configure(&all_settings());
    let steps = [
        plan(),
        turn("echo one > src.txt", "<PROGRESS>task one</PROGRESS>"),
        turn(
            "echo two > src.txt",
            "<NOTE>seen</NOTE> <DONE>task two</DONE>",
        ),
        turn(
            "cat src.txt",
            "<REQUEST_CHANGES>say three</REQUEST_CHANGES>",
        ),
        plan(),
        turn("echo three > src.txt", "<DONE>task three</DONE>"),
        turn("echo reviewer > src.txt", "<APPROVED>good</APPROVED>"),
    ];
    let (code, out, err, server) = run(&scene, steps.concat(), &[]);
    assert_eq!((code, server.steps_left()), (Some(0), 0), "{out}\n{err}");
    assert_eq!(
        scene.git(&["log", "--format=%s"]),
        "task three\ntask two\ntask one\nfirst\n"
    );
    assert_eq!(scene.read("src.txt"), "three\n");
    assert!(out.contains("▶ Bash: ") && !out.contains(KEY) && !err.contains(KEY));
}

#[test]
fn a_permission_that_claude_code_is_denied_ends_the_run() {
    let Some(scene) = scene() else { return };
    let steps = turn("echo x > src.txt", "<PLAN_COMPLETE>ready</PLAN_COMPLETE>").to_vec();
    let (code, out, err, _server) =
        run(&scene, steps, &["--sandbox", "off", "--permissions", "ask"]);
    assert_eq!(code, Some(4), "{out}\n{err}");
    assert!(
        out.contains("was denied tools that it needed: Bash"),
        "{out}\n{err}"
    );
}
