//! What decides whether an order is fulfilled is not changed by the commands that look (DESIGN §5 Seal).

use serde_json::json;

use crate::scenes::order::{FILES, GOOD, Scene, greet};
use crate::scenes::program::{Ran, must_have};

/// An order whose only acceptance command is this script, in a project whose user protects `tests/**`.
fn run(script: &str) -> (Scene, Ran) {
    let scene = prepared(script);
    let ran = scene.run(&["--max-attempts", "1"]);
    (scene, ran)
}

fn prepared(script: &str) -> Scene {
    let scene = Scene::with(&[&greet(GOOD)]);
    scene.protect_tests();
    scene.place("script", script.as_bytes());
    let command = format!("sh {}", scene.beside("script").display());
    scene.place_order(&json!({ "acceptance_commands": [command] }));
    scene
}

#[test]
fn a_command_that_rewrites_a_protected_file_has_failed_whatever_its_exit_code() {
    let (scene, ran) = run("echo 'exit 0' > tests/run.sh; exec sh tests/run.sh");
    assert_eq!(
        (ran.code, scene.verdict().as_str()),
        (Some(1), "FAIL acceptance_failed")
    );
    let result = scene.json("attempt_1/acceptance_result.json")[0].clone();
    assert_eq!(result["exit_code"], -1);
    let told = "the command, or somebody else while it ran, changed tests/run.sh; it was restored, and the command counts as failed";
    assert!(
        result["stderr_trunc"].as_str().unwrap().contains(told),
        "{result}"
    );
    ran.err_has(told);
    assert_eq!(scene.read("tests/run.sh"), FILES[4].1);
    let journal = scene.recorded("events.jsonl");
    must_have(&journal, "\"warning\":{\"code\":\"seal\"");
}

#[test]
fn the_verification_script_is_sealed_without_being_named() {
    let (scene, ran) = run("echo 'exit 0' > scripts/verify.sh");
    assert_eq!(
        (ran.code, scene.verdict().as_str()),
        (Some(1), "FAIL acceptance_failed")
    );
    assert_eq!(scene.read("scripts/verify.sh"), FILES[1].1);
}
