//! What another order finds behind one that was killed in a command.

mod commits;

use std::fs;

use serde_json::json;

use crate::scenes::order::{GOOD, Scene, greet};

/// Kills a run while its last command stands still.
fn killed_in_a_command(scene: &Scene) {
    let mut child = scene.standing_still(&[]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn another_order_finds_the_baseline_behind_a_killed_run_and_what_somebody_wrote_since_is_kept() {
    let scene = Scene::answering(&greet(GOOD));
    let before = scene.state();
    killed_in_a_command(&scene);
    assert_ne!(scene.state(), before);
    scene.write("mine", "mine\n");
    scene.place_order(&json!({ "acceptance_commands": ["false"] }));
    let ran = scene.run(&["--max-attempts", "1"]).exits(1);
    ran.err_has("a run was killed here");
    assert_eq!(scene.state(), before);
    let kept = scene
        .runs()
        .iter()
        .flat_map(|run| fs::read_dir(run.join("backup")).unwrap())
        .any(|entry| {
            let path = entry.unwrap().path();
            path.display().to_string().contains("/left") && path.join("mine").is_file()
        });
    assert!(kept);
}

#[test]
fn what_was_committed_behind_a_killed_run_is_left_alone() {
    let scene = Scene::answering(&greet(GOOD));
    killed_in_a_command(&scene);
    scene.project.commit("I take it as it is").unwrap();
    scene.place("go-on", b"");
    let before = scene.state();
    let ran = scene.run(&["--max-attempts", "1"]);
    ran.err_has("is not rolled back");
    assert_eq!(
        scene.state()["git rev-parse HEAD"],
        before["git rev-parse HEAD"]
    );
}

/// To a process, or with a minus before it to a group.
pub fn signal(name: &str, to: &str) {
    assert!(
        std::process::Command::new("kill")
            .args([name, "--", to])
            .status()
            .unwrap()
            .success()
    );
}
