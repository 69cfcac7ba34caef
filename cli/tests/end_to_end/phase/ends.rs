//! Turns and phases that end badly.

use crate::scenes::phase::Scene;

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
fn an_agent_that_hangs_is_ended_and_leaves_nothing() {
    let hang = "setsid sleep 4343 & sleep 4343";
    let ended = ends(&[("builder-1", hang)], &["--idle-timeout", "1s"]);
    assert_eq!(ended, (Some(4), "building".into(), 1, 0, Some(0)));
    assert!(!crate::phase::happy::is_running("sleep\u{0}4343"));
}
