//! The commands that need no model.

use crate::harness::Scene;

#[test]
fn init_rollup_and_a_query_are_all_that_a_new_folder_needs() {
    let scene = Scene::new(&[("hello.sh", "echo hello\n")], fixtures::server::Script::new([]));
    let first = scene.run(&["init"]);
    insta::assert_snapshot!(first, @"");
    let again = scene.run(&["init"]);
    assert!(again.out.starts_with("everything is there already"), "{again}");
    assert!(scene.project.status().unwrap().contains("?? build.sh"));
    assert!(!scene.project.status().unwrap().contains("agent-config"));
}

#[test]
fn the_demo_shows_a_refusal_a_failure_and_a_repair() {
    let scene = Scene::with_replies([]);
    let temporary = scene.project.beside().display().to_string();
    let ran = scene.run_with(&["demo", "--sandbox", "off"], &[("TMPDIR", &temporary)]);
    assert_eq!(ran.code, Some(0), "{ran}");
    for seen in ["reply refused", "the build fails", "the build passes", "Done after 3 rounds", "+    echo \"Hello, ${1:-world}!\""] {
        assert!(ran.to_string().contains(seen), "{seen} is missing in {ran}");
    }
}

#[test]
fn parse_prints_one_object_about_a_good_reply() {
    let scene = Scene::with_replies([]);
    scene.project.write("reply", b"^^^a.txt\none\n^^^end\n^^^b.txt\n^^^delete\n&&&start\nhello\n&&&end\n").unwrap();
    insta::assert_snapshot!(scene.run(&["parse", "--json", "reply"]), @"");
    insta::assert_snapshot!(scene.run(&["parse", "reply"]), @"");
}

#[test]
fn parse_points_at_everything_that_is_wrong() {
    let scene = Scene::with_replies([]);
    scene.project.write("reply", b"^^^a.txt\none\n\n&&&start\nhello\n").unwrap();
    insta::assert_snapshot!(scene.run(&["parse", "--json", "reply"]), @"");
    insta::assert_snapshot!(scene.run(&["parse", "reply"]), @"");
}

#[test]
fn guard_says_which_paths_and_why_not() {
    let scene = Scene::with_replies([]);
    let ran = scene.run(&["guard", "--json", "src/new.rs", "../x", ".git/config", "agent-config/query.txt", "build.sh"]);
    insta::assert_snapshot!(ran, @"");
    insta::assert_snapshot!(scene.run(&["guard", "src/new.rs", "build.sh"]), @"");
}

#[test]
fn apply_writes_all_or_nothing_and_can_be_undone() {
    let scene = Scene::with_replies([]);
    scene.project.write("agent-config/reply", b"^^^a.txt\none\n^^^end\n^^^src/greet.sh\n^^^delete\n").unwrap();
    scene.project.write("agent-config/bad", b"^^^a.txt\none\n^^^end\n^^^build.sh\n^^^delete\n").unwrap();
    insta::assert_snapshot!("apply_refused", scene.run(&["apply", "--json", "agent-config/bad"]));
    insta::assert_snapshot!("apply_dry", scene.run(&["apply", "--dry-run", "agent-config/reply"]));
    assert_eq!(scene.project.status().unwrap(), "");
    insta::assert_snapshot!("apply_json", scene.run(&["apply", "--json", "agent-config/reply"]));
    assert_eq!(scene.project.status().unwrap(), " D src/greet.sh\n?? a.txt\n");
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(scene.project.status().unwrap(), "");
}
