//! The harness is killed, and the next `phase run` goes on.

use crate::phase::docker::Daemon;
use crate::scenes::phase::Scene;

/// The agent kills the harness, its parent, without warning.
const KILL: &str = "kill -9 $PPID; sleep 5";

#[test]
fn a_kill_between_a_commit_and_its_fact_makes_no_second_commit() {
    let scene = Scene::new(&[("verifier-1", KILL)]);
    assert_eq!(scene.run(&["run"]).code, None);
    let (journal, text) = scene
        .files(".abl/logs")
        .into_iter()
        .find(|(path, _)| path.ends_with("events.jsonl"))
        .unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let made = lines
        .iter()
        .position(|line| line.contains("\"committed\""))
        .unwrap();
    std::fs::write(&journal, lines[..made].concat()).unwrap();
    assert_eq!(scene.run(&["run"]).code, Some(0));
    assert_eq!(
        scene.commits("src"),
        ["phase1/build/step-1", "phase1/passed"]
    );
}

/// An agent that says that it works and goes on for a minute, with a child that has let go of it.
const LONG: &str = "setsid sleep 60 & say working; sleep 60";

#[test]
fn a_harness_that_is_killed_leaves_no_container() {
    let Some(daemon) = Daemon::start() else {
        return;
    };
    let environment = [("DOCKER_HOST", daemon.host())];
    let scene = Scene::new(&[("builder-1", LONG)]);
    let args = ["run", "--sandbox", "docker"];
    let (_, is_killed) = scene.killed(&args, &environment, |line| line.contains("working"));
    assert!(is_killed);
    scene.assert_no_process("docker");
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !daemon.containers().is_empty() {
        assert!(std::time::Instant::now() < end, "{}", daemon.containers());
    }
    scene.run_with(&args, &environment).exits(0);
    assert_eq!((scene.turns("builder"), scene.turns("verifier")), (2, 1));
}

#[test]
fn without_a_sandbox_whatever_command_comes_next_ends_what_a_killed_run_has_left() {
    let args = ["run", "--sandbox", "off"];
    for next in [&args[..], &["check"]] {
        let scene = Scene::new(&[("builder-1", LONG)]);
        let (_, is_killed) = scene.killed(&args, &[], |line| line.contains("working"));
        assert!(is_killed);
        // Any run on the machine ends them: what this one says of it depends on the tests that run beside it.
        scene.run_with(next, &[]).exits(0);
        scene.assert_no_process("off");
    }
}
