//! The real Gemini CLI, driven by tool calls of a scripted model that really write files.

use std::os::unix::fs::symlink;

use fixtures::server::{Script, Server, Step};
use serde_json::json;

use crate::scene::Scene;

fn write(path: &str, content: &str) -> (String, serde_json::Value) {
    ("write_file".to_owned(), json!({ "file_path": path, "content": content }))
}

fn shell(command: &str) -> (String, serde_json::Value) {
    ("run_shell_command".to_owned(), json!({ "command": command, "description": "looks" }))
}

/// A turn: these tool calls, then words.
fn turn(calls: &[(String, serde_json::Value)]) -> [Step; 2] {
    let calls =
        calls.iter().fold(Step::text("Working."), |step, (name, args)| step.and_call(name, args.clone()));
    [calls, Step::text("Done.")]
}

#[test]
fn two_phases_are_built_and_verified_by_the_real_cli_behind_the_wall() {
    let Some(program) = std::env::var_os("CODE_COMMIT_TEST_GEMINI") else {
        eprintln!("SKIPPED: phases with the real Gemini CLI, because CODE_COMMIT_TEST_GEMINI is not set");
        return;
    };
    let scene = Scene::new(&[]);
    std::fs::remove_file(scene.at("bin/gemini")).unwrap();
    symlink(std::path::Path::new(&program).canonicalize().unwrap(), scene.at("bin/gemini")).unwrap();
    scene.write(".abl/specs/phase2.md", "# Phase 2: Manners\n\n- app NAME → Hello, NAME.\n");
    scene.write(
        ".abl/abl.config.yaml",
        "verifier_commands:\n  app: {command: sh src/app.sh, description: runs the app}\n",
    );
    let failed = "SPEC: GET / → 200\nINPUT: abl-cmd app\nOBSERVED: Hullo\n";
    let steps = [
        turn(&[write("app.sh", "echo Hullo\n"), write("builder_reports/1.md", "built")]),
        turn(&[
            shell("abl-cmd app > seen.txt; ls ../../src"),
            write("failed_specs.md", failed),
            write("verifier_reports/1.md", "one fails"),
        ]),
        turn(&[write("app.sh", "echo Hello.\n"), write("builder_reports/2.md", "mended")]),
        turn(&[shell("abl-cmd app > seen.txt"), write("verifier_reports/2.md", "all hold")]),
        turn(&[write("app.sh", "echo \"Hello, $1.\"\n"), write("builder_reports/3.md", "built")]),
        turn(&[shell("abl-cmd app 'you two' > seen.txt"), write("verifier_reports/3.md", "all hold")]),
    ];
    let server = Server::start(Script::new(steps.into_iter().flatten())).unwrap();
    let environment = [("GOOGLE_GEMINI_BASE_URL", server.origin())];
    let sandbox = if runner::probe(runner::Mode::Bwrap, None).is_ok() { "bwrap" } else { "landlock" };
    for (number, seen) in [("1", "Hello.\n"), ("2", "Hello, you two.\n")] {
        let ran = scene.run_with(&[number, "--sandbox", sandbox], &environment);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(scene.read(".abl/tests/seen.txt"), seen);
    }
    assert_eq!(
        scene.commits("src"),
        [
            "phase1/build/step-1",
            "phase1/build/step-2",
            "phase1/passed",
            "phase2/build/step-1",
            "phase2/passed"
        ]
    );
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
