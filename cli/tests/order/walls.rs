//! The wall around the commands, once for each kind that works here.

use serde_json::json;

use crate::harness::{GOOD, Scene, greet};

/// Commands can write the tree, but neither git's data nor the verification script, and see no network and no home.
fn check_wall(rung: &str) {
    let scene = Scene::with(&[&greet(GOOD)]);
    scene.place_order(&json!({ "acceptance_commands": [
        "sh tests/run.sh",
        "sh -c 'touch src/made-by-a-command'",
        "sh -c '! touch .git/config.new'",
        "sh -c '! sh -c \"echo x >> scripts/verify.sh\"'",
        "sh -c '! ls out'",
    ]}));
    let ran = scene.run(&["--sandbox", rung, "--max-attempts", "1"]);
    if ran.code == Some(3) && scene.runs().is_empty() {
        eprintln!("SKIPPED: the {rung} wall because it cannot be had here: {}", ran.err.trim());
        return;
    }
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(scene.root().join("src/made-by-a-command").exists());
}

#[test]
fn commands_are_held_by_bubblewrap() {
    check_wall("bwrap");
}

#[test]
fn commands_are_held_by_landlock() {
    check_wall("landlock");
}
