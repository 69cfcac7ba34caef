//! A supervisor starts one `phase` command several times, under one key.

use crate::scenes::json_schema::Published;
use crate::scenes::phase::Scene;
use crate::scenes::program::must_have;

#[test]
fn a_key_names_one_phase_and_its_pass_is_told_again() {
    let scene = Scene::new(&[]);
    scene.add_phase();
    let run = |args: &[&str]| {
        let ran = scene.run(args);
        (ran.code, scene.turns("builder"), ran.out, ran.err)
    };
    assert_eq!(run(&["run", "--key", "ticket-7"]).1, 1);
    let (code, turns, out, err) = run(&["run", "--key", "ticket-7"]);
    assert_eq!(
        (code, turns, out.trim()),
        (Some(0), 1, "Phase 1 has passed.")
    );
    must_have(&err, "is already finished; no model was called");
    let (_, _, json, _) = run(&["run", "--key", "ticket-7", "--json"]);
    let last: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    let faults = Published::read("agents.schema.json").faults_of("phase-line", &last);
    assert_eq!(faults, Vec::<String>::new(), "{json}");
    assert_eq!(
        (&last["from_record"], &last["outcome"]["outcome"]),
        (&true.into(), &"done".into()),
        "{json}"
    );
    let (code, turns, _, err) = run(&["2", "--key", "ticket-7"]);
    assert_eq!((code, turns), (Some(3), 1));
    assert!(err.contains("the key was used for phase 1"), "{err}");
    let (code, turns, out, _) = run(&["run", "--key", "ticket-8"]);
    assert_eq!((code, turns), (Some(0), 2), "{out}");
    assert!(out.contains("Phase 2 passed"), "{out}");
    scene.write(
        ".abl/specs/phase1.md",
        "# Phase 1: A page\n\n- GET / → 204\n",
    );
    let (code, turns, out, _) = run(&["run", "--key", "ticket-7"]);
    assert_eq!(
        (code, turns),
        (Some(0), 3),
        "its pass was for other specs: {out}"
    );
    assert!(out.contains("Phase 1 passed"), "{out}");
}
