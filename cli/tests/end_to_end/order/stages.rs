//! Every stage of S2 §4.3, reached by a real run; after each of them the repository is what it was.

use code_commit_fixtures::server::{Script, Step};
use serde_json::{Value, json};

use crate::scenes::order::{BAD, FILES, GOOD, NOTHING, Scene, greet, proposal};
use crate::scenes::program::{Ran, must_have, start_quietly};

/// Runs the order with these answers; it must fail, at `stage`, and leave the repository as it was.
#[track_caller]
fn check_failure(scene: &Scene, more: &[&str], stage: &str) -> Ran {
    let before = scene.state();
    let ran = scene.run(more);
    assert_eq!(scene.verdict(), format!("FAIL {stage}"), "{ran}");
    assert_eq!(scene.state(), before);
    assert_eq!(scene.summary()["repo_tree_hash_after"], Value::Null);
    ran
}

fn brief(scene: &Scene, attempt: u32) -> Value {
    scene.json(&format!("attempt_{attempt}/failure_brief.json"))
}

#[test]
fn a_base_that_is_no_hash_or_another_spelling_of_it_is_stale() {
    for base in ["", "deadbeef", &NOTHING.to_uppercase()] {
        let write = json!({ "path": "src/new.sh", "base_sha256": base, "content": "x\n" });
        let reply = json!({ "summary": "s", "writes": [write] }).to_string();
        check_failure(
            &Scene::with(&[&reply]),
            &["--max-attempts", "1"],
            "stale_context",
        );
    }
}

#[test]
fn one_file_out_of_scope_keeps_the_allowed_ones_from_being_written() {
    let both = json!({ "summary": "", "writes": [
        { "path": "src/new.sh", "base_sha256": NOTHING, "content": "x" },
        { "path": "src/other.txt", "base_sha256": NOTHING, "content": "x" },
    ]});
    let scene = Scene::with(&[&both.to_string()]);
    check_failure(&scene, &["--max-attempts", "1"], "write_scope_violation");
    assert_eq!(
        scene.json("attempt_1/write_result.json")["touched_files"],
        json!(["src/new.sh", "src/other.txt"])
    );
    must_have(
        brief(&scene, 1)["primary_error_excerpt"].as_str().unwrap(),
        "src/other.txt",
    );
}

#[test]
fn a_wrong_base_hash_ends_in_stale_context() {
    let stale = proposal("src/greet.sh", Some("what it never was"), GOOD);
    let new_that_is_not = proposal("src/greet.sh", None, GOOD);
    let old_that_is_not = proposal("src/new.sh", Some("something"), GOOD);
    // The first of the two could be written.
    let one_of_two = json!({ "summary": "", "writes": [
        { "path": "src/new.sh", "base_sha256": NOTHING, "content": "x\n" },
        { "path": "src/greet.sh", "base_sha256": NOTHING, "content": GOOD },
    ]});
    for reply in [
        stale,
        new_that_is_not,
        old_that_is_not,
        one_of_two.to_string(),
    ] {
        let scene = Scene::with(&[&reply]);
        check_failure(&scene, &["--max-attempts", "1"], "stale_context");
        let journal = scene.recorded("events.jsonl");
        let (_, journal) = journal.split_once("\"what\":\"answered\"").unwrap();
        let is_told = |fact: &str| journal.contains(&format!("\"what\":\"{fact}\""));
        assert!(
            !is_told("rolled-back"),
            "there was nothing to be put back: {journal}"
        );
        assert!(is_told("refused") && !is_told("written"), "{journal}");
        assert!(
            !scene.runs()[0].join("backup/1").exists(),
            "no transaction was begun"
        );
    }
}

#[test]
fn a_write_that_the_system_refuses_ends_in_write_failed() {
    let script = Script::new([
        Step::status(429).header("retry-after", "3"),
        Step::text(&greet(GOOD)),
    ]);
    let scene = Scene::scripted(&FILES, script);
    let mut child = start_quietly(&mut scene.command(&["--max-attempts", "1"]));
    scene.server.wait_for_requests(1);
    // Something stands where the transaction would be made.
    let obstacle = scene.at(".git/code-commit/txn");
    std::fs::create_dir_all(obstacle).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(scene.verdict(), "FAIL write_failed");
    let result = scene.json("attempt_1/write_result.json");
    assert_eq!(
        (
            &result["write_ok"],
            result["errors"].as_array().unwrap().len()
        ),
        (&json!(false), 1)
    );
}

#[test]
fn a_command_that_commits_and_changes_the_branch_is_rolled_back() {
    let scene = Scene::with(&[&greet(BAD)]);
    scene.place_order(&json!({ "acceptance_commands": [
        "sh -c 'git checkout -q -b other; git -c user.name=x -c user.email=x@x commit -qam stray; git branch -q -D other; false'",
    ]}));
    let head = scene.git(&["rev-parse", "--symbolic-full-name", "HEAD"]);
    scene.run(&["--max-attempts", "1"]);
    assert_eq!(
        scene.git(&["rev-parse", "--symbolic-full-name", "HEAD"]),
        head
    );
    assert_eq!(scene.status(), "");
    assert_eq!(scene.read("src/greet.sh"), FILES[2].1);
}
