//! What a pass of a phase is about, and that nobody pays for the template.

use serde_json::Value;

use crate::scenes::phase::Scene;

/// Without the line breaks of a terminal.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The last line that `phase ARGS --json` prints, which is a summary.
fn summary(scene: &Scene, args: &[&str]) -> Value {
    let ran = scene.run(&[args, &["--json"]].concat()).exits(0);
    let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], "summary", "{}", ran.out);
    assert_eq!(last["outcome"]["outcome"], "done", "{last}");
    last
}

#[test]
fn a_pass_is_void_once_source_tests_or_description_have_changed() {
    let scene = Scene::new(&[
        ("builder-1", "echo code > app"),
        ("verifier-1", "echo test > test.sh"),
    ]);
    assert_eq!(scene.run(&["PHASE=1"]).code, Some(0));
    for (file, is_committed, args, said, turns) in [
        (
            "src/app",
            false,
            "1",
            "passed for another source than there is now: it is verified again",
            (1, 2),
        ),
        (
            "src/app",
            true,
            "run",
            "passed for another source than there is now: it is verified again",
            (1, 3),
        ),
        (
            ".abl/tests/test.sh",
            false,
            "1",
            "passed by other tests than there are now: it is verified again",
            (1, 4),
        ),
        (
            ".abl/project.md",
            false,
            "1",
            "or another project.md: it is open again",
            (2, 5),
        ),
    ] {
        assert_eq!(
            summary(&scene, &["1"])["from_record"],
            true,
            "{file}: nothing has changed yet"
        );
        scene.write(file, &format!("sabotage {args}\n"));
        if is_committed {
            scene.commit(file.rsplit_once('/').unwrap().0, &["-am", "mine"]);
        }
        let ran = scene.run(&[args]);
        let err = on_one_line(&ran.err);
        assert!(ran.code == Some(0) && err.contains(said), "{file}: {ran:?}");
        assert_eq!(
            (scene.turns("builder"), scene.turns("verifier")),
            turns,
            "{file}"
        );
    }
    assert_eq!(
        summary(&scene, &["run"])["phase"],
        1,
        "every phase has passed"
    );
    scene.write("src/app", "a change that a person vouches for\n");
    assert_eq!(scene.run(&["trust", "1"]).code, Some(0));
    assert_eq!(summary(&scene, &["1"])["from_record"], true);
}

#[test]
fn a_report_is_no_test_and_a_later_phase_vouches_for_an_earlier_one() {
    let scene = Scene::new(&[("builder-2", "echo more > app")]);
    scene.add_phase();
    assert_eq!(scene.run(&["run"]).code, Some(0));
    scene.write(".abl/tests/verifier_reports/mine.md", "read\n");
    assert_eq!(scene.run(&["1"]).out.trim(), "Phase 1 has passed.");
    assert_eq!(scene.run(&["run"]).code, Some(0));
    assert_eq!(
        scene.run(&["1"]).out.trim(),
        "Phase 1 has passed.",
        "phase 2 was verified with its contracts"
    );
    assert_eq!(scene.turns("verifier"), 2);
}

#[test]
fn the_untouched_template_is_refused_before_anything_is_paid() {
    let scene = Scene::new(&[]);
    scene.write(
        ".abl/specs/phase1.md",
        include_str!("../../../src/commands/phase/init/phase1.md"),
    );
    for args in [&["run"][..], &["1"], &["run", "--dry-run"]] {
        let ran = scene.run(args);
        assert!(
            ran.code == Some(3) && ran.err.contains("phase1.md is still the template"),
            "{args:?}: {ran:?}"
        );
    }
    assert_eq!(scene.turns("builder"), 0);
}
