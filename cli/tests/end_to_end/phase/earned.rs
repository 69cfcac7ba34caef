//! Failures count in any file of the verifier's, and nothing else does; and what a pass holds for.

use serde_json::Value;

use crate::scenes::phase::Scene;

/// Before the lines of a kind.
const ENTRY: &str = "entry() { printf 'SPEC: GET / → 200\\nINPUT: GET /\\nOBSERVED: 404\\n'; }\n";

/// Verifiers that know of a failure and do not say so in `failed_specs.md`: how, and what they do.
const HOSTILE: [(&str, &str); 8] = [
    ("in tests/", "mkdir tests; entry > tests/failed_specs.md"),
    ("without an extension", "entry > failed_specs"),
    ("in the report alone", "report \"$(entry)\"; answer Done."),
    (
        "in a code fence of the report",
        "report \"$(echo '```'; entry; echo '```')\"; answer Done.",
    ),
    (
        "as a list of Markdown",
        "report \"$(entry | sed 's/^\\([A-Z]*\\):/- **\\1**:/')\"; answer Done.",
    ),
    (
        "beside an empty list",
        ": > failed_specs.md; entry > failed_specs.md.bak",
    ),
    (
        "with a result below it",
        "entry > notes.md; echo 'RESULT: FAIL' >> notes.md",
    ),
    (
        "with windows' line ends",
        "entry | sed 's/$/\\r/' > failed_specs.txt",
    ),
];

/// Verifiers for whom every contract holds, and what they leave.
const HONEST: [(&str, &str); 8] = [
    ("nothing", ""),
    ("an empty list", ": > failed_specs.md"),
    ("no report", "answer Done."),
    (
        "what holds in the same form",
        "report \"$(entry | sed s/404/200/; echo 'RESULT: PASS')\"; answer Done.",
    ),
    (
        "half an entry",
        "report \"$(entry | head -1)\"; answer Done.",
    ),
    (
        "a list that it removed",
        "entry > failed_specs.txt; rm failed_specs.txt",
    ),
    (
        "a file with a long path",
        "d=$(printf 'd%.0s' $(seq 90)); mkdir -p $d/$d/$d; echo x > $d/$d/$d/notes.md",
    ),
    ("a pipe of that name", "mkfifo failed_specs.txt"),
];

/// Without the line breaks of a terminal.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A phase with one verification at most.
fn scene(turns: &[(&str, &str)]) -> Scene {
    let scene = Scene::new(turns);
    scene.write(
        ".abl/abl.config.yaml",
        "loop: {max_verifier_iterations: 1}\n",
    );
    scene
}

#[test]
fn no_verifier_that_knows_of_a_failure_passes_a_phase_and_no_other_fails_one() {
    let mut verdicts = String::new();
    for (kinds, expected) in [(&HOSTILE[..], 6), (&HONEST, 0)] {
        for (name, lines) in kinds {
            let scene = scene(&[("verifier-1", &format!("{ENTRY}{lines}"))]);
            let ran = scene.run(&["run"]);
            let has_passed = scene.commits("src").contains(&"phase1/passed".to_owned());
            if ran.code != Some(expected) || has_passed != (expected == 0) {
                verdicts += &format!("{name}: {:?}\n{}{}\n", ran.code, ran.out, ran.err);
            }
        }
    }
    assert_eq!(
        verdicts, "",
        "verdicts that were not earned, or refused to those who had"
    );
}

#[test]
fn a_misplaced_failure_is_put_into_its_place_goes_to_the_builder_and_counts_again() {
    let misplaced = format!("{ENTRY}entry > failed_specs.txt");
    let scene = Scene::new(&[("verifier-1", &misplaced), ("verifier-2", &misplaced)]);
    let ran = scene.run(&["run"]);
    assert_eq!(
        (ran.code, scene.turns("builder"), scene.turns("verifier")),
        (Some(0), 3, 3),
        "{ran:?}"
    );
    let logs = scene.files(".abl/logs");
    let prompt = &logs
        .iter()
        .find(|(path, _)| path.ends_with("3-builder-query.txt"))
        .unwrap()
        .1;
    assert!(
        prompt.contains("SPEC: GET / → 200\nINPUT: GET /\nOBSERVED: 404"),
        "{prompt}"
    );
    let steps = ["phase1/verify/step-1", "phase1/verify/step-2"];
    assert_eq!(scene.commits(".abl/tests"), steps);
    let committed = scene.git(".abl/tests", &["ls-tree", "--name-only", "HEAD"]);
    assert_eq!(committed, ["failed_specs.md", "verifier_reports"]);
}

#[test]
fn a_report_that_goes_on_in_one_file_does_not_fail_what_was_mended() {
    let first = format!(
        "{ENTRY}fails 404; mkdir verifier_reports; entry > verifier_reports/all.md; answer Done."
    );
    let then = "echo 'All hold.' >> verifier_reports/all.md; answer Done.";
    let scene = Scene::new(&[("verifier-1", &first), ("verifier-2", then)]);
    let ran = scene.run(&["run"]);
    assert_eq!((ran.code, scene.turns("verifier")), (Some(0), 2), "{ran:?}");
}

/// The last line that `phase ARGS --json` prints, which is a summary.
fn summary(scene: &Scene, args: &[&str]) -> Value {
    let ran = scene.run(&[args, &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
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
    let commit = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@a",
        "commit",
        "-qam",
        "mine",
    ];
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
            scene.git(file.rsplit_once('/').unwrap().0, &commit);
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
    scene.write(
        ".abl/specs/phase2.md",
        "# Phase 2: More\n\n- GET /more → 200\n",
    );
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
