//! What a verdict of a phase holds for: specs, source and verifier.

use serde_json::Value;

use crate::scenes::phase::Scene;
use crate::scenes::program::must_have;

const SPEC: &str = ".abl/specs/phase1.md";
const EDITED: &str = "# Phase 1: A page\n\n- GET / → 200\n- GET /about → 200\n";

#[test]
fn a_phase_that_is_stuck_stays_so_until_specs_or_source_or_a_flag_say_otherwise() {
    let fails: Vec<(String, &str)> = (1..=4)
        .map(|n| (format!("verifier-{n}"), "fails 404"))
        .collect();
    let fails: Vec<(&str, &str)> = fails
        .iter()
        .map(|(name, lines)| (name.as_str(), *lines))
        .collect();
    let scene = Scene::new(&fails);
    scene.write(
        ".abl/abl.config.yaml",
        "loop: {max_verifier_iterations: 1}\n",
    );
    let run = |args: &[&str]| {
        let ran = scene.run(&[&["run"], args].concat());
        (ran.code, scene.turns("verifier"), ran.out)
    };
    assert_eq!(run(&[]).0, Some(6));
    let (code, turns, said) = run(&[]);
    assert_eq!((code, turns), (Some(6), 1), "nobody is asked again: {said}");
    assert!(
        said.contains("neither specs, source nor verifier have changed since"),
        "{said}"
    );
    must_have(&said, "OBSERVED: 404");
    must_have(&said, "phase run --retry");
    let (code, turns, _) = run(&["--retry"]);
    assert_eq!((code, turns), (Some(6), 2));
    scene.write("src/by-a-person", "mended\n");
    let (code, turns, _) = run(&[]);
    assert_eq!((code, turns), (Some(6), 3));
    scene.write(SPEC, EDITED);
    let (code, turns, _) = run(&[]);
    assert_eq!((code, turns), (Some(6), 4));
    assert_eq!(run(&[]).1, 4);
    assert_eq!(scene.run(&["reopen", "1"]).code, Some(0));
    assert_eq!(run(&[]).0, Some(0));
}

#[test]
fn specs_that_are_edited_while_a_run_is_stopped_are_noticed_when_it_goes_on() {
    let scene = Scene::new(&[]);
    let (_, is_killed) = scene.killed(&["run", "--sandbox", "off"], &[], |line| {
        line.contains(r#""what":"committed""#)
    });
    assert!(is_killed);
    scene.write(SPEC, EDITED);
    let ran = scene.run(&["run"]).exits(0);
    ran.err_has("the specs of phase 1 changed");
    assert_eq!(scene.turns("builder"), 2);
}

#[test]
fn a_phase_whose_verifier_has_changed_is_verified_again_and_not_built() {
    let scene = Scene::new(&[]);
    assert_eq!(scene.run(&["run"]).code, Some(0));
    scene.write("prompts/verifier.md", "Verify phase <<PHASE>> by heart.\n");
    let again = scene.run(&["run"]).exits(0);
    again.err_has("another prompt or other commands: it is verified again");
    assert_eq!((scene.turns("builder"), scene.turns("verifier")), (1, 2));
}

#[test]
fn a_verdict_names_the_tree_the_specs_and_the_verifier_that_it_holds_for() {
    let scene = Scene::new(&[]);
    let ran = scene.run(&["run", "--json"]);
    let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    let hashes = ["tree", "specification", "decider"]
        .map(|name| last["holds_for"][name].as_str().unwrap().len());
    assert_eq!(hashes, [64; 3], "{last}");
    let state: Value = serde_json::from_str(&scene.read(".abl/state.json")).unwrap();
    assert_eq!(state["passes"]["1"], last["holds_for"]);
    let journal = scene
        .files(".abl/logs")
        .into_iter()
        .find(|(path, _)| path.ends_with("events.jsonl"))
        .unwrap()
        .1;
    let ended: Value = serde_json::from_str(journal.lines().last().unwrap()).unwrap();
    assert_eq!(ended["fact"]["holds_for"], last["holds_for"]);
}
