//! The sandbox around the commands, once for each kind that works here.

use std::ffi::OsStr;

use code_commit_fixtures::server::{Script, Step};
use serde_json::json;

use crate::scenes::order::{BAD, FILES, GOOD, Scene, greet};
use crate::scenes::program::Ran;

/// The docker daemon that the tests may use, if it does not listen in the usual place.
const DOCKER: &str = "CODE_COMMIT_TEST_DOCKER_HOST";

/// Commands can write the tree, but neither git's data nor the verification script, and see no network and no home.
fn check_sandbox(backend: &str, docker_host: Option<&OsStr>) {
    let scene = Scene::with(&[&greet(GOOD)]);
    scene.protect_tests();
    scene.hide_key();
    scene.place_order(&json!({ "acceptance_commands": [
        "sh tests/run.sh",
        "sh -c 'touch src/made-by-a-command'",
        "sh -c '! touch .git/config.new'",
        "sh -c '! sh -c \"echo x >> scripts/verify.sh\"'",
        "sh -c '! ls out'",
        "sh -c '! sh -c \"echo x >> tests/run.sh\"'",
        "sh -c '! grep . gemini-key.txt'",
        "sh -c '! cat logs/*/events.jsonl'",
    ]}));
    // A run of implement in the same tree.
    for (file, text) in [
        (".gitignore", "*\n"),
        ("1/run.json", "{}\n"),
        ("1/events.jsonl", "a hint\n"),
    ] {
        scene.write(&format!("logs/{file}"), text.as_bytes());
    }
    let mut command = scene.command(&["--sandbox", backend, "--max-attempts", "1"]);
    let ran = Ran::of(command.envs(docker_host.map(|host| ("DOCKER_HOST", host))));
    if ran.code == Some(3) && scene.runs().is_empty() {
        eprintln!(
            "SKIPPED: the {backend} sandbox, which does not work here: {}",
            ran.err.trim()
        );
        return;
    }
    assert_eq!(ran.code, Some(0), "{ran}");
    ran.err_has("a command changed src/made-by-a-command, which it may not; it was restored");
    assert!(!scene.root().join("src/made-by-a-command").exists());
}

#[test]
fn commands_are_held_by_namespaces() {
    check_sandbox("namespaces", None);
}

#[test]
fn commands_are_held_by_landlock() {
    check_sandbox("landlock", None);
}

#[test]
fn commands_are_held_by_docker() {
    check_sandbox("docker", std::env::var_os(DOCKER).as_deref());
}

/// The first command of an attempt makes what the second one needs; the first attempt fails.
#[test]
fn commands_see_what_those_before_them_changed_and_only_ignored_files_outlast_the_attempt() {
    let makes = "echo report > src/report.xml\necho run >> ignored/product\nrm src/other.txt\n";
    let uses = "test -f src/report.xml && test ! -e src/other.txt && exec sh tests/run.sh\n";
    let more = [("tests/makes.sh", makes), ("tests/uses.sh", uses)];
    for sandbox in ["auto", "landlock", "off"] {
        let files = [&FILES[..], &more].concat();
        let scene = Scene::scripted(
            &files,
            Script::new([BAD, GOOD].map(|new| Step::text(&greet(new)))),
        );
        scene.write("ignored/there", "");
        scene.place_order(&json!({
            "acceptance_commands": ["sh tests/makes.sh", "sh tests/uses.sh"],
            "preconditions": [{ "file_exists": "src/other.txt" }, { "file_absent": "src/report.xml" }],
            "postconditions": [{ "file_exists": "src/report.xml" }, { "file_absent": "src/other.txt" }],
        }));
        let ran = scene.run(&["--sandbox", sandbox, "--max-attempts", "2"]);
        if ran.code == Some(3) && scene.runs().is_empty() {
            eprintln!(
                "SKIPPED: the {sandbox} sandbox, which does not work here: {}",
                ran.err.trim()
            );
            continue;
        }
        assert_eq!(
            (ran.code, scene.verdict().as_str()),
            (Some(0), "PASS success"),
            "{sandbox}: {ran}"
        );
        ran.err_has("a command changed src/other.txt, src/report.xml, which it may not");
        assert_eq!(scene.status(), " M src/greet.sh\n", "{sandbox}");
        // Once in each attempt.
        assert_eq!(scene.read("ignored/product"), "run\nrun\n", "{sandbox}");
        assert!(
            !scene.root().join(".git/code-commit/view").exists(),
            "{sandbox}"
        );
    }
}
