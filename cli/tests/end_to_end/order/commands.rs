//! S2 §2.1, §6.4–6.6: how commands are run.

use std::fs::File;

use serde_json::{Value, json};

use crate::scenes::order::{GOOD, Scene, greet, unverified};
use crate::scenes::program::Ran;
use code_commit_fixtures::server::{Script, Step};

/// The result of the only acceptance command.
fn result_of(command: &str, more: &[&str]) -> (Scene, Value) {
    let scene = Scene::with(&[&greet(GOOD)]);
    scene.place_order(&json!({ "acceptance_commands": [command] }));
    let mut args = vec!["--max-attempts", "1"];
    args.extend(more);
    let ran = scene.run(&args);
    assert!(matches!(ran.code, Some(0 | 1)), "{ran}");
    let result = scene.json("attempt_1/acceptance_result.json")[0].clone();
    (scene, result)
}

#[test]
fn a_command_that_cannot_be_started_failed_with_minus_one() {
    let (scene, result) = result_of("./no-such-program --flag", &[]);
    assert_eq!(
        (&result["exit_code"], scene.verdict().as_str()),
        (&json!(-1), "FAIL acceptance_failed")
    );
    assert!(
        result["stderr_trunc"]
            .as_str()
            .unwrap()
            .contains("was not found"),
        "{result}"
    );
}

#[test]
fn a_command_that_hangs_is_stopped_at_its_time_limit() {
    let (scene, result) = result_of("sh -c 'echo begun; sleep 600'", &["--timeout-seconds", "1"]);
    assert_eq!(
        (&result["exit_code"], scene.verdict().as_str()),
        (&json!(124), "FAIL acceptance_failed")
    );
    assert_eq!(result["stdout_trunc"], "begun\n");
    assert!(
        result["stderr_trunc"]
            .as_str()
            .unwrap()
            .contains("stopped after 1 s"),
        "{result}"
    );
}

#[test]
fn commands_run_at_the_root_with_no_input_and_without_keys() {
    let scene = Scene::with(&[&greet(GOOD)]);
    scene.place_order(
        &json!({ "acceptance_commands": ["sh -c 'pwd; cat; env | grep -c KEY || true'"] }),
    );
    // Begun elsewhere, with an input of its own.
    let mut command = scene.command(&["--repo", ".."]);
    command
        .current_dir(scene.root().join("src"))
        .stdin(File::open(scene.beside("order.json")).unwrap());
    Ran::of(&mut command).exits(0);
    let result = &scene.json("attempt_1/acceptance_result.json")[0];
    assert_eq!(
        result["stdout_trunc"],
        format!("{}\n0\n", scene.root().display())
    );
}

#[test]
fn without_a_script_the_fixed_list_verifies_in_its_order() {
    let files = unverified();
    let scene = Scene::scripted(&files, Script::new([Step::text(&greet(GOOD))]));
    // In the place of Python, which may not be here, one that does nothing and does it well.
    let tools = scene.beside("tools");
    std::fs::create_dir(&tools).unwrap();
    std::os::unix::fs::symlink("/bin/true", tools.join("python")).unwrap();
    let mut command = scene.command(&["--max-attempts", "1"]);
    let paths = command
        .get_envs()
        .find_map(|(name, value)| value.filter(|_| name == "PATH"))
        .unwrap();
    let path =
        std::env::join_paths(std::iter::once(tools).chain(std::env::split_paths(paths))).unwrap();
    Ran::of(command.env("PATH", path)).exits(0);
    let verify = scene.json("attempt_1/verify_result.json");
    let commands: Vec<String> = verify.as_array().unwrap().iter().map(words).collect();
    assert_eq!(
        commands,
        [
            "python -m compileall -q .",
            "python -m pip --version",
            "python -m pytest -q"
        ]
    );
}

/// The command of a result.
fn words(result: &Value) -> String {
    let words = result["command"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap());
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_script_that_the_change_creates_is_the_verification() {
    let files = unverified();
    let reply = crate::scenes::order::proposal("scripts/verify.sh", None, "echo from the change\n");
    let scene = Scene::scripted(&files, Script::new([Step::text(&reply)]));
    scene.place_order(&json!({ "allowed_files": ["scripts/verify.sh"], "context_files": [], "acceptance_commands": ["true"] }));
    assert_eq!(scene.run(&[]).code, Some(0));
    assert_eq!(
        scene.json("attempt_1/verify_result.json")[0]["stdout_trunc"],
        "from the change\n"
    );
}
