//! Turns and phases that end badly.

use crate::scenes::phase::Scene;

#[test]
fn stuck_after_five_verifications_shows_what_failed() {
    let turns: Vec<(String, String)> = (1..=5)
        .map(|n| (format!("verifier-{n}"), format!("fails {n}00")))
        .collect();
    let turns: Vec<(&str, &str)> = turns
        .iter()
        .map(|(name, lines)| (name.as_str(), lines.as_str()))
        .collect();
    let scene = Scene::new(&turns);
    let ran = scene.run(&["run"]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(ran.out.contains("OBSERVED: 500"), "{}", ran.out);
    assert_eq!(scene.state(), ("stuck".to_owned(), 5));
    assert_eq!(scene.commits(".abl/tests").len(), 5);
    assert_eq!(
        scene.run(&["run", "--retry"]).code,
        Some(0),
        "a person has looked at it: it begins again"
    );
}

/// Exit code, status, turns of builder and verifier after a first `phase run`, and the exit code of a second one.
fn ends(turns: &[(&str, &str)], more: &[&str]) -> (Option<i32>, String, u32, u32, Option<i32>) {
    let scene = Scene::new(turns);
    let first = scene.run(&[&["run"], more].concat());
    let (status, _) = scene.state();
    let counts = (scene.turns("builder"), scene.turns("verifier"));
    let rows = scene.read(".abl/logs/tokens.csv").lines().count() - 1;
    assert_eq!(
        u32::try_from(rows).unwrap(),
        counts.0 + counts.1,
        "a row for every turn: {first:?}"
    );
    (
        first.code,
        status,
        counts.0,
        counts.1,
        scene.run(&["run"]).code,
    )
}

#[test]
fn a_verifier_that_crashes_is_not_a_pass() {
    let ended = ends(&[("verifier-1", "report x; exit 1")], &[]);
    assert_eq!(ended, (Some(4), "verifying".into(), 1, 1, Some(0)));
}

#[test]
fn exit_zero_without_a_result_is_not_a_pass() {
    for silent in ["report x; exit 0", "report x; say words; exit 0"] {
        let ended = ends(&[("verifier-1", silent)], &[]);
        assert_eq!(
            ended,
            (Some(4), "verifying".into(), 1, 1, Some(0)),
            "{silent}"
        );
    }
}

#[test]
fn an_agent_that_hangs_is_ended_and_leaves_nothing() {
    let hang = "setsid sleep 4343 & sleep 4343";
    let ended = ends(&[("builder-1", hang)], &["--idle-timeout", "1s"]);
    assert_eq!(ended, (Some(4), "building".into(), 1, 0, Some(0)));
    assert!(!crate::phase::happy::is_running("sleep\u{0}4343"));
}
