//! A run that is killed at any line of its journal goes on with the same command: the tree ends as it would have, and an answer
//! that has arrived is not paid for again.
//!
//! `KILL_EVERY=1` kills at every line; without it every fifth is tried, which takes seconds.

mod commits;

use std::fs;
use std::process::{Child, Stdio};

use code_commit_fixtures::server::{Script, Step};
use serde_json::{Value, json};

use crate::scenes::kills::every;
use crate::scenes::order::{AFTER, BAD, FILES, GOOD, Scene, greet};

/// A run may be faster than who kills it.
const TRIES: usize = 20;

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

/// A run that was killed when its journal had so many lines, or a few more; none where it was over by then.
fn killed_at(reply: &str, lines: usize) -> Option<(Scene, Vec<Value>)> {
    let scene = scene(reply);
    let killed = kill_at(&scene, lines, &[]);
    let journal = journal(&scene);
    // A kill behind the last line is none: the run is over, and what it changed is there.
    (killed && count(&journal, "ended") == 0).then_some((scene, journal))
}

/// Kills a run at each line in turn and lets it go on; `check` looks at what it leaves in the end.
fn campaign(reply: &str, code: i32, check: impl Fn(&Scene)) {
    let whole = scene(reply);
    assert_eq!(whole.run(&[]).code, Some(code));
    let lines = journal(&whole).len();
    let mut killed = 0;
    for line in (1..=lines).step_by(every()) {
        let Some((scene, before)) = (0..TRIES).find_map(|_| killed_at(reply, line)) else {
            continue;
        };
        killed += 1;
        let (answered, asked) = (count(&before, "answered"), scene.server.requests().len());
        let ran = scene.run(&[]);
        assert_eq!(ran.code, Some(code), "killed at {line}: {ran}");
        check(&scene);
        let attempts = scene.summary()["attempts"].as_array().unwrap().len();
        let asked_again = scene.server.requests().len() - asked;
        assert_eq!(asked_again, attempts - answered, "killed at {line}");
    }
    eprintln!("{killed} kills hit a run of {lines} lines");
    assert!(killed > 0, "no kill hit a run of {lines} lines");
}

#[test]
fn a_run_that_would_pass_passes_after_a_kill_at_any_line() {
    campaign(&greet(GOOD), 0, |scene| {
        assert_eq!(scene.verdict(), "PASS success");
        assert_eq!(scene.project.status().unwrap(), " M src/greet.sh\n");
        assert_eq!(scene.project.read("src/greet.sh").unwrap(), GOOD);
    });
}

#[test]
fn a_run_that_would_fail_leaves_the_baseline_after_a_kill_at_any_line() {
    let untouched = scene(&greet(BAD)).state();
    let files = |state: &std::collections::BTreeMap<String, String>| -> Vec<(String, String)> {
        state
            .iter()
            .filter(|(name, _)| !name.starts_with("git "))
            .map(|(n, c)| (n.clone(), c.clone()))
            .collect()
    };
    campaign(&greet(BAD), 1, |scene| {
        assert_eq!(scene.verdict(), "FAIL acceptance_failed");
        assert_eq!(files(&scene.state()), files(&untouched));
        assert_eq!(scene.project.status().unwrap(), "");
    });
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
