//! `clean` knows the runs of specs, audits and talks.

use std::fs;

use crate::scenes::files;
use crate::scenes::program::Ran;
use crate::scenes::spec::{APPROVE, DONE, PLAN, Scene, is_there};

const PROGRAM: &str = env!("CARGO_BIN_EXE_code-commit");
/// An audit that finds nothing.
const LOOK: &str = "say 'All is as the specs say.'";

fn clean(scene: &Scene, args: &[&str]) -> Ran {
    Ran::of(&mut scene.command(&[&["clean"], args].concat(), &[]))
}

/// The folders of runs, audits and talks whose names end so.
fn folders(scene: &Scene, end: &str) -> Vec<String> {
    let mut names = files::names(scene.root().join(".git/code-commit/spec"));
    names.retain(|name| {
        name.trim_end_matches(|c: char| c == '-' || c.is_ascii_digit())
            .ends_with(end)
    });
    names
}

#[test]
fn audits_and_talks_that_are_over_go_and_each_kind_keeps_its_own() {
    let scene = Scene::new(&[LOOK, LOOK, PLAN, DONE, APPROVE]);
    for _ in 0..2 {
        assert_eq!(scene.spec(&["audit"]).code, Some(0));
    }
    assert_eq!(scene.run().code, Some(0));
    // As a talk leaves it that has written what it was not to.
    for name in ["2026-01-01-00-00-00-plan", "2026-01-02-00-00-00-plan-2"] {
        scene.write(
            &format!(".git/code-commit/spec/{name}/backup/left/src.txt"),
            "by the agent\n",
        );
    }
    let done = clean(&scene, &["--keep", "1"]);
    assert!(
        done.code == Some(0) && done.out.contains("2 runs removed, "),
        "{done}"
    );
    assert_eq!(folders(&scene, "-plan"), ["2026-01-02-00-00-00-plan-2"]);
    assert_eq!(
        (folders(&scene, "-audit").len(), folders(&scene, "").len()),
        (1, 3),
        "{done}"
    );
    let done = clean(&scene, &["--keep", "0", "--json"]);
    for kind in ["audit", "plan", "spec"] {
        assert!(done.out.contains(&format!("\"loop\":\"{kind}\"")), "{done}");
    }
    assert_eq!(folders(&scene, ""), [""; 0]);
}

#[test]
fn what_is_no_audit_and_no_talk_stays() {
    let scene = Scene::new(&[LOOK]);
    assert_eq!(scene.spec(&["audit"]).code, Some(0));
    let audit = folders(&scene, "-audit").pop().unwrap();
    let spec = scene.root().join(".git/code-commit/spec");
    fs::rename(spec.join(&audit), scene.home().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(scene.home().join("elsewhere"), spec.join(&audit)).unwrap();
    scene.write(
        ".git/code-commit/spec/2026-01-01-00-00-00-plan/mine.txt",
        "mine\n",
    );
    scene.write(".git/code-commit/spec/plan-audit-mine/events.jsonl", "");
    let done = clean(&scene, &["--keep", "0"]);
    assert!(
        done.out.contains("a symlink leads there") && done.out.contains("it is not a run folder"),
        "{done}"
    );
    assert!(
        done.out.ends_with("0 runs removed, 0 B; 2 left\n"),
        "{done}"
    );
    assert!(is_there(&scene.home().join("elsewhere/events.jsonl")) && is_there(&spec.join(&audit)));
    assert_eq!(folders(&scene, "").len(), 3);
}

#[test]
fn nothing_is_removed_while_an_audit_is_under_way() {
    let look =
        format!("'{PROGRAM}' clean --keep 0 > $HOME/said 2>&1; echo $? >> $HOME/said; {LOOK}");
    let scene = Scene::new(&[LOOK, &look]);
    for _ in 0..2 {
        assert_eq!(scene.spec(&["audit"]).code, Some(0));
    }
    let said = fs::read_to_string(scene.home().join("said")).unwrap();
    assert!(
        said.contains("is in progress") && said.ends_with("\n3\n"),
        "{said}"
    );
    assert_eq!(folders(&scene, "-audit").len(), 2);
}
