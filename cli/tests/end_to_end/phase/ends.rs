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
fn a_builder_that_crashes_is_tried_once_more_and_then_a_person_hears_of_it() {
    let once = ends(&[("builder-1", "exit 7")], &[]);
    assert_eq!(once, (Some(0), "completed".into(), 2, 1, Some(0)));
    let twice = ends(&[("builder-1", "exit 7"), ("builder-2", "kill -9 $$")], &[]);
    assert_eq!(twice, (Some(4), "building".into(), 2, 0, Some(0)));
}

#[test]
fn a_verifier_that_crashes_is_not_a_pass() {
    let ended = ends(
        &[
            ("verifier-1", "report x; exit 1"),
            ("verifier-2", "report x; exit 1"),
        ],
        &[],
    );
    assert_eq!(ended, (Some(4), "verifying".into(), 1, 2, Some(0)));
}

#[test]
fn exit_zero_without_a_result_is_not_a_pass() {
    let ended = ends(
        &[
            ("verifier-1", "report x; exit 0"),
            ("verifier-2", "report x; say words; exit 0"),
        ],
        &[],
    );
    assert_eq!(ended, (Some(4), "verifying".into(), 1, 2, Some(0)));
}

#[test]
fn an_answer_cut_off_before_its_report_is_not_a_pass_although_the_cli_says_success() {
    let ended = ends(
        &[
            ("verifier-1", "answer 'I am about to'"),
            ("verifier-2", "answer 'I am'"),
        ],
        &[],
    );
    assert_eq!(ended, (Some(4), "verifying".into(), 1, 2, Some(0)));
}

#[test]
fn a_quota_of_the_day_stops_at_once() {
    let quota = r#"echo '{"type":"result","status":"error","error":{"type":"unknown","message":"You exhausted your daily quota"},"stats":{}}'; exit 173"#;
    let ended = ends(&[("builder-1", quota)], &[]);
    assert_eq!(ended, (Some(4), "building".into(), 1, 0, Some(0)));
}

#[test]
fn an_agent_that_hangs_is_ended_and_leaves_nothing() {
    let hang = "setsid sleep 4343 & sleep 4343";
    let ended = ends(
        &[("builder-1", hang), ("builder-2", hang)],
        &["--idle-timeout", "1s"],
    );
    assert_eq!(ended, (Some(4), "building".into(), 2, 0, Some(0)));
    assert!(!crate::phase::happy::is_running("sleep\u{0}4343"));
}

#[test]
fn an_entry_without_input_goes_back_to_the_verifier_once() {
    let malformed = "printf 'SPEC: GET / → 200\\nOBSERVED: 404\\n' > failed_specs.md";
    let scene = Scene::new(&[("verifier-1", malformed), ("verifier-2", "fails 404")]);
    assert_eq!(scene.run(&["run"]).code, Some(0));
    assert_eq!((scene.turns("builder"), scene.turns("verifier")), (2, 3));
    let logs = scene.files(".abl/logs");
    let again = &logs
        .iter()
        .find(|(path, _)| path.ends_with("3-verifier-query.txt"))
        .unwrap()
        .1;
    assert!(again.contains("the entry has no INPUT:"), "{again}");
}

#[test]
fn failures_in_a_table_or_in_prose_go_back_to_the_verifier_once_and_never_pass() {
    for list in [
        "| Contract | Observed |\\n|---|---|\\n| GET / → 200 | 404 |\\n",
        "GET / gives 404.\\n",
    ] {
        let lists = format!("printf '{list}' > failed_specs.md");
        let written = Scene::new(&[("verifier-1", &lists), ("verifier-2", "fails 404")]);
        assert_eq!(written.run(&["run"]).code, Some(0), "{list}");
        assert_eq!(
            (written.turns("builder"), written.turns("verifier")),
            (2, 3),
            "{list}"
        );
        let logs = written.files(".abl/logs");
        let again = &logs
            .iter()
            .find(|(path, _)| path.ends_with("3-verifier-query.txt"))
            .unwrap()
            .1;
        assert!(
            again.contains("no line begins with SPEC: (if every contract holds, remove the file)"),
            "{again}"
        );
        let obstinate = Scene::new(&[("verifier-1", &lists), ("verifier-2", &lists)]);
        assert_eq!(obstinate.run(&["run"]).code, Some(0), "{list}");
        assert_eq!(
            (obstinate.turns("builder"), obstinate.turns("verifier")),
            (2, 3),
            "{list}: it was no pass"
        );
    }
}

#[test]
fn a_builder_that_never_reports_is_warned_about_told_so_and_verified_all_the_same() {
    let silent = "answer 'All done.'";
    let scene = Scene::new(&[
        ("builder-1", silent),
        ("builder-2", silent),
        ("verifier-1", "fails 404"),
        (
            "builder-3",
            "report x; rm -r builder_reports; answer 'Removed it.'",
        ),
    ]);
    let ran = scene.run(&["run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let warning = "warning: the builder wrote no report into builder_reports/";
    assert_eq!(ran.err.matches(warning).count(), 3, "{}", ran.err);
    let logs = scene.files(".abl/logs");
    for turn in ["2-builder", "4-builder"] {
        let (_, prompt) = logs
            .iter()
            .find(|(path, _)| path.ends_with(format!("{turn}-query.txt")))
            .unwrap();
        assert!(
            prompt.contains("wrote no report into `builder_reports/`"),
            "{turn}: {prompt}"
        );
    }
}

#[test]
fn a_project_without_a_key_or_an_agent_is_refused() {
    let scene = Scene::new(&[]);
    scene.write(".env", "");
    assert_eq!(scene.run(&["run"]).code, Some(3));
    let ran = scene.run(&["run", "--builder-model", "claude-opus"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.err.contains("npm install"), "{}", ran.err);
}
