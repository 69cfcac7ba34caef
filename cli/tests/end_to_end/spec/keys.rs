//! A supervisor starts one `spec` command several times, under one key.

use crate::scenes::spec::{APPROVE, DONE, PLAN, Scene};

#[test]
fn a_finished_run_of_a_key_is_told_again_as_long_as_its_verdict_holds() {
    let turns = [PLAN, DONE, APPROVE];
    let scene = Scene::new(&[turns, turns, turns].concat());
    let run = |more: &[&str]| {
        let ran = scene.spec(&[&["run", "--key", "ticket-7", "--focus"], more].concat());
        (ran.code, scene.calls(), ran.out, ran.err)
    };
    assert_eq!(run(&["Add X"]).1, 3);
    let (code, calls, out, err) = run(&["Add X"]);
    assert_eq!((code, calls), (Some(0), 3), "{err}");
    assert!(
        err.contains("is already finished; no model was called") && out.contains("  [USED]"),
        "{out}{err}"
    );
    let json = scene
        .spec(&["run", "--key", "ticket-7", "--focus", "Add X", "--json"])
        .out;
    let last: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    crate::spec::schema::hold(std::slice::from_ref(&last));
    assert_eq!(
        (&last["from_record"], &last["outcome"]["outcome"]),
        (&true.into(), &"done".into()),
        "{json}"
    );
    let (code, calls, _, err) = run(&["Add Y"]);
    assert_eq!((code, calls), (Some(3), 3), "{err}");
    assert!(err.contains("the key was used for other work"), "{err}");
    scene.write("src.txt", "by a person\n");
    let (code, calls, _, err) = run(&["Add X"]);
    assert_eq!((code, calls), (Some(0), 6), "{err}");
    assert!(err.contains("no longer as"), "{err}");
    assert_eq!(run(&["Add X"]).1, 6);
    assert_eq!(run(&["Add X", "--new"]).1, 9);
}
