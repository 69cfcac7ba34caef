//! The real Gemini CLI, driven by tool calls of a scripted model that really write files.

use std::os::unix::fs::symlink;

use code_commit_fixtures::server::{Script, Server, Step};
use serde_json::json;

use crate::scenes::phase::Scene;

fn write(path: &str, content: &str) -> (String, serde_json::Value) {
    (
        "write_file".to_owned(),
        json!({ "file_path": path, "content": content }),
    )
}

fn shell(command: &str) -> (String, serde_json::Value) {
    (
        "run_shell_command".to_owned(),
        json!({ "command": command, "description": "looks" }),
    )
}

/// A turn: these tool calls, then words.
fn turn(calls: &[(String, serde_json::Value)]) -> [Step; 2] {
    let calls = calls
        .iter()
        .fold(Step::text("Working."), |step, (name, args)| {
            step.and_call(name, args.clone())
        });
    [calls, Step::text("Done.")]
}

/// A project whose agent is the real one, or a loud line.
fn scene(variable: &str, name: &str) -> Option<Scene> {
    let Some(program) = std::env::var_os(variable) else {
        eprintln!("SKIPPED: phases with the real {name}, because {variable} is not set");
        return None;
    };
    code_commit_runner::helper_is(env!("CARGO_BIN_EXE_code-commit"));
    if let Err(reason) = code_commit_runner::probe(code_commit_runner::Mode::Namespaces, None) {
        eprintln!("SKIPPED: phases with the real {name}, because {reason}");
        return None;
    }
    let scene = Scene::new(&[]);
    let place = scene.at("bin").join(name);
    if place.exists() {
        std::fs::remove_file(&place).unwrap();
    }
    symlink(
        std::path::Path::new(&program).canonicalize().unwrap(),
        place,
    )
    .unwrap();
    Some(scene)
}

#[test]
fn a_phase_is_built_and_verified_by_the_real_codex_in_the_sandbox() {
    let Some(scene) = scene("CODE_COMMIT_TEST_CODEX", "codex") else {
        return;
    };
    scene.write(".env", "CODEX_API_KEY=sk-key-that-opens-nothing-43\n");
    let codex = |line: &str| {
        [
            Step::text("Working.").and_call("exec_command", json!({ "cmd": line })),
            Step::text("Done."),
        ]
    };
    let steps = [
        codex(
            "echo 'echo Hello' > app.sh; mkdir -p builder_reports; echo built > builder_reports/1.md; ls ../.abl/tests",
        ),
        codex(
            "abl-cmd get-spec 1 > seen.txt; mkdir -p verifier_reports; echo looked > verifier_reports/1.md; ls ../../src",
        ),
    ];
    let server = Server::start(Script::new(steps.into_iter().flatten())).unwrap();
    let address = format!("{}/v1", server.origin());
    let flags = [
        "run",
        "--sandbox",
        "namespaces",
        "-b",
        "codex/gpt-own",
        "-v",
        "codex/gpt-own",
    ];
    let ran = scene.run_with(&flags, &[("OPENAI_BASE_URL", address.as_str())]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        scene.commits("src"),
        ["phase1/build/step-1", "phase1/passed"]
    );
    assert_eq!(scene.read("src/app.sh"), "echo Hello\n");
    assert!(scene.read(".abl/tests/seen.txt").contains("# Phase 1"));
    let rows = scene.read(".abl/logs/tokens.csv");
    assert_eq!(rows.matches(",gpt-own,").count(), 2, "{rows}");
    let heard: String = server
        .requests()
        .iter()
        .map(|seen| String::from_utf8_lossy(&seen.body).into_owned())
        .collect();
    assert_eq!(
        heard.matches("No such file or directory").count(),
        2,
        "neither sees the other's folder: {heard}"
    );
}

#[test]
fn a_phase_that_fails_once_is_built_and_verified_by_the_real_cli_in_the_sandbox() {
    let Some(scene) = scene("CODE_COMMIT_TEST_GEMINI", "gemini") else {
        return;
    };
    scene.write(
        ".abl/abl.config.yaml",
        "verifier_commands:\n  app: {command: sh src/app.sh, description: runs the app}\n",
    );
    let failed = "SPEC: GET / → 200\nINPUT: abl-cmd app\nOBSERVED: Hullo\n";
    let steps = [
        turn(&[
            write("app.sh", "echo Hullo\n"),
            write("builder_reports/1.md", "built"),
        ]),
        turn(&[
            shell("abl-cmd app > seen.txt; ls ../../src"),
            write("failed_specs.md", failed),
            write("verifier_reports/1.md", "one fails"),
        ]),
        turn(&[
            write("app.sh", "echo \"Hello, $1.\"\n"),
            write("builder_reports/2.md", "mended"),
        ]),
        turn(&[
            shell("abl-cmd app 'you two' > seen.txt"),
            write("verifier_reports/2.md", "all hold"),
        ]),
    ];
    let server = Server::start(Script::new(steps.into_iter().flatten())).unwrap();
    let environment = [("GOOGLE_GEMINI_BASE_URL", server.origin())];
    let args = ["run", "--sandbox", "namespaces"];
    scene.run_with(&args, &environment).exits(0);
    assert_eq!(scene.read(".abl/tests/seen.txt"), "Hello, you two.\n");
    let built = [
        "phase1/build/step-1",
        "phase1/build/step-2",
        "phase1/passed",
    ];
    assert_eq!(scene.commits("src"), built);
    assert_eq!(scene.commits(".abl/tests"), ["phase1/verify/step-1"]);
    assert_eq!(server.steps_left(), 0);
    let asked = server.requests();
    let look = asked
        .iter()
        .map(|seen| String::from_utf8_lossy(&seen.body).into_owned())
        .find(|body| body.contains("../../src"))
        .unwrap();
    assert!(!look.contains("Hullo\\\\n"), "{look}");
}
