//! What another order finds behind one that was killed in a command.

mod commits;

use std::fs;
use std::process::{Child, Stdio};

use code_commit_fixtures::server::{Script, Step};
use serde_json::{Value, json};

use crate::scenes::order::{AFTER, FILES, GOOD, Scene, greet};

/// The model answers every question alike, so that it does not matter how often it is asked.
fn scene(reply: &str) -> Scene {
    Scene::scripted(
        &FILES,
        Script::new([]).rule("chat/completions", Step::text(reply)),
    )
}

fn journal(scene: &Scene) -> Vec<Value> {
    let Some(run) = scene.runs().pop() else {
        return Vec::new();
    };
    let text = fs::read_to_string(run.join("events.jsonl")).unwrap_or_default();
    text.split_inclusive('\n')
        .filter_map(|line| serde_json::from_str(line.strip_suffix('\n')?).ok())
        .collect()
}

fn count(journal: &[Value], what: &str) -> usize {
    journal
        .iter()
        .filter(|entry| entry["fact"]["what"] == what)
        .count()
}

/// Starts a run and kills it once its journal has `lines` lines; whether it was still alive then.
fn kill_at(scene: &Scene, lines: usize, more: &[&str]) -> bool {
    let mut child: Child = scene
        .command(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    loop {
        if journal(scene).len() >= lines {
            child.kill().unwrap();
            return child.wait().unwrap().code().is_none();
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::yield_now();
    }
}

/// Kills a run while its last command stands still.
fn killed_in_a_command(scene: &Scene) {
    let wait = format!(
        "sh -c '{AFTER}touch stray; test -e {} || sleep 600'",
        scene.beside("go-on").display()
    );
    scene.place_order(&json!({ "acceptance_commands": ["sh tests/run.sh", wait] }));
    let lines = 7;
    assert!(kill_at(scene, lines, &[]), "{:?}", journal(scene));
    assert_eq!(count(&journal(scene), "written"), 1);
}

#[test]
fn another_order_finds_the_baseline_behind_a_killed_run_and_what_somebody_wrote_since_is_kept() {
    let scene = scene(&greet(GOOD));
    let before = scene.state();
    killed_in_a_command(&scene);
    assert_ne!(scene.state(), before);
    scene.project.write("mine", b"mine\n").unwrap();
    scene.place_order(&json!({ "acceptance_commands": ["false"] }));
    let ran = scene.run(&["--max-attempts", "1"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.err.contains("a run was killed here"), "{}", ran.err);
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
    let scene = scene(&greet(GOOD));
    killed_in_a_command(&scene);
    scene.project.commit("I take it as it is").unwrap();
    scene.place("go-on", b"");
    let before = scene.state();
    let ran = scene.run(&["--max-attempts", "1"]);
    assert!(ran.err.contains("is not rolled back"), "{}", ran.err);
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
