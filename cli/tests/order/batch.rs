//! Several orders in one call.

use serde_json::{Value, json};

use crate::harness::{BAD, GOOD, Ran, Scene, greet, order, proposal};

/// Three orders: `a` about the greeting, `b` about a new file, `c` about another one.
fn scene(replies: &[&str]) -> Scene {
    let scene = Scene::with(replies);
    scene.place("a.json", order(&json!({ "id": "a" })).to_string().as_bytes());
    for (id, file) in [("b", "src/b.txt"), ("c", "src/c.txt")] {
        let over = json!({
            "id": id, "allowed_files": [file], "context_files": [], "acceptance_commands": [format!("test -f {file}")],
        });
        scene.place(&format!("{id}.json"), order(&over).to_string().as_bytes());
    }
    scene
}

fn run(scene: &Scene, more: &[&str]) -> Ran {
    let files = ["a.json", "b.json", "c.json"].map(|name| scene.beside(name).display().to_string());
    let mut args: Vec<&str> = files.iter().map(String::as_str).collect();
    args.extend(["--max-attempts", "1"]);
    args.extend(more);
    scene.run(&args)
}

fn table(ran: &Ran) -> Vec<String> {
    let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    let rows = last["orders"].as_array().unwrap().iter();
    rows.map(|row| format!("{} {}", row["verdict"].as_str().unwrap(), row["stage"].as_str().unwrap()))
        .collect()
}

#[test]
fn with_commit_each_order_finds_what_the_ones_before_have_made() {
    let scene = scene(&[&greet(GOOD), &proposal("src/b.txt", None, "b"), &proposal("src/c.txt", None, "c")]);
    let ran = run(&scene, &["--commit", "--json"]);
    assert_eq!((ran.code, table(&ran)), (Some(0), vec!["PASS success".to_owned(); 3]), "{}", ran.err);
    assert_eq!(scene.project.status().unwrap(), "");
    let log = scene.project.git(&["log", "--format=%s", "-4"]).unwrap();
    assert_eq!(log.matches("Greet with a comma").count(), 3, "{log}");
}

#[test]
fn the_first_order_that_fails_ends_the_call() {
    let scene = scene(&[&greet(BAD), &proposal("src/b.txt", None, "b")]);
    let ran = run(&scene, &["--commit", "--json"]);
    assert_eq!((ran.code, table(&ran)), (Some(1), vec!["FAIL acceptance_failed".to_owned()]));
    assert_eq!(scene.server.requests().len(), 1);
}

#[test]
fn with_keep_going_the_others_are_carried_out_and_the_exit_code_is_that_of_the_first_failure() {
    let scene = scene(&[&greet(BAD), &proposal("src/b.txt", None, "b"), "no"]);
    let ran = run(&scene, &["--commit", "--keep-going", "--json"]);
    assert_eq!(table(&ran), ["FAIL acceptance_failed", "PASS success", "FAIL llm_output_invalid"]);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn without_commit_the_second_order_finds_a_tree_that_is_not_clean() {
    let scene = scene(&[&greet(GOOD)]);
    let ran = run(&scene, &["--json"]);
    assert_eq!(
        (ran.code, table(&ran)),
        (Some(3), vec!["PASS success".to_owned(), "FAIL not begun".to_owned()])
    );
    assert!(ran.err.contains("is not clean: src/greet.sh"), "{}", ran.err);
}

#[test]
fn one_table_sums_up_for_a_person() {
    let scene = scene(&[&greet(BAD), "no", &proposal("src/c.txt", None, "c")]);
    let ran = run(&scene, &["--keep-going"]);
    let rows: Vec<&str> = ran.out.lines().filter(|line| line.contains("attempts ")).collect();
    assert_eq!(rows.len(), 3, "{}", ran.out);
}
