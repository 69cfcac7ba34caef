//! The harness is killed, and the next `phase run` goes on.

use crate::phase::docker::Daemon;
use crate::scenes::kills::every;
use crate::scenes::phase::Scene;

/// The agent kills the harness, its parent, without warning.
const KILL: &str = "kill -9 $PPID; sleep 5";

#[test]
fn a_kill_in_any_turn_costs_that_turn_and_no_other() {
    for (name, builder, verifier) in [
        ("builder-1", 3, 2),
        ("verifier-1", 2, 3),
        ("builder-2", 3, 2),
        ("verifier-2", 2, 3),
    ] {
        let fails = (
            "fails 404",
            if name == "verifier-1" {
                "verifier-2"
            } else {
                "verifier-1"
            },
        );
        let scene = Scene::new(&[(fails.1, fails.0), (name, KILL)]);
        let killed = scene.run(&["run"]);
        assert_eq!(killed.code, None, "{name}: {killed:?}");
        let ran = scene.run(&["run"]);
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
        assert!(ran.err.contains("resuming"), "{name}: {}", ran.err);
        assert_eq!(
            (scene.turns("builder"), scene.turns("verifier")),
            (builder, verifier),
            "{name}"
        );
        assert_eq!(
            scene.read(".abl/logs/tokens.csv").lines().count(),
            6,
            "{name}: a header, four turns that came to their end, and the one that was killed"
        );
        let killed = format!(",{},gemini", name.split('-').next().unwrap());
        let rows = scene.read(".abl/logs/tokens.csv");
        let unknown: Vec<&str> = rows
            .lines()
            .filter(|row| row.contains(" (no usage reported),,,,,"))
            .collect();
        assert!(
            unknown.len() == 1 && unknown[0].contains(&killed),
            "{name}: {rows}"
        );
        assert_eq!(
            scene.commits("src").last().unwrap(),
            "phase1/passed",
            "{name}"
        );
    }
}

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

/// The journal of the only run; empty where there is none.
fn journal(scene: &Scene) -> String {
    let journal = scene
        .files(".abl/logs")
        .into_iter()
        .find(|(path, _)| path.ends_with("events.jsonl"));
    journal.map(|(_, text)| text).unwrap_or_default()
}

/// How many facts of this kind are in it.
fn facts(journal: &str, what: &str) -> usize {
    journal.matches(&format!("\"what\":\"{what}\"")).count()
}

#[test]
fn ctrl_c_after_any_line_ends_the_run_at_once_and_the_next_one_goes_on() {
    for kept in (1..).step_by(every()) {
        let scene = Scene::new(&[]);
        let mut run = scene.started(&["run", "--sandbox", "off"]);
        let mut count = 0;
        for _ in run.lines() {
            count += 1;
            if count == kept {
                run.interrupt();
            }
        }
        let code = run.wait();
        scene.assert_no_process(&format!("{kept}"));
        if count < kept {
            assert!(kept > 15, "there are lines to be interrupted after");
            return;
        }
        // The last lines come when there is nothing left to be interrupted.
        assert!(
            code == Some(130) || (code == Some(0) && kept > 10),
            "{kept}: {code:?}"
        );
        let rows =
            std::fs::read_to_string(scene.project(".abl/logs/tokens.csv")).unwrap_or_default();
        let begun = facts(&journal(&scene), "turn-begins");
        assert_eq!(rows.lines().skip(1).count(), begun, "{kept}: {rows}");
        let ran = scene.run(&["run"]);
        assert_eq!(ran.code, Some(0), "{kept}: {ran:?}");
        let turns = scene.turns("builder") + scene.turns("verifier");
        assert!((2..=3).contains(&turns), "{kept}: {turns} turns");
        assert_eq!(
            scene.commits("src"),
            ["phase1/build/step-1", "phase1/passed"],
            "{kept}"
        );
    }
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
    let ran = scene.run_with(&args, &environment);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((scene.turns("builder"), scene.turns("verifier")), (2, 1));
}

#[test]
fn without_a_sandbox_the_next_run_ends_what_a_killed_one_has_left() {
    let scene = Scene::new(&[("builder-1", LONG)]);
    let args = ["run", "--sandbox", "off"];
    let (_, is_killed) = scene.killed(&args, &[], |line| line.contains("working"));
    assert!(is_killed);
    // Any run on the machine ends them: what this one says of it depends on the tests that run beside it.
    let ran = scene.run_with(&args, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    scene.assert_no_process("off");
}

#[test]
fn without_a_sandbox_a_command_that_works_on_no_phase_ends_what_a_killed_one_has_left() {
    let scene = Scene::new(&[("builder-1", LONG)]);
    let (_, is_killed) = scene.killed(&["run", "--sandbox", "off"], &[], |line| {
        line.contains("working")
    });
    assert!(is_killed);
    scene.run(&["check"]);
    scene.assert_no_process("off");
}
