//! Several orders in one call.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::scenes::order::{BAD, GOOD, Scene, greet, order, proposal};
use crate::scenes::program::{Ran, interrupt};

/// Three orders: `a` about the greeting, `b` about a new file, `c` about another one.
fn scene(replies: &[&str]) -> Scene {
    let scene = Scene::with(replies);
    scene.place(
        "a.json",
        order(&json!({ "id": "a" })).to_string().as_bytes(),
    );
    for (id, file) in [("b", "src/b.txt"), ("c", "src/c.txt")] {
        let over = json!({
            "id": id, "allowed_files": [file], "context_files": [], "acceptance_commands": [format!("test -f {file}")],
        });
        scene.place(&format!("{id}.json"), order(&over).to_string().as_bytes());
    }
    scene
}

fn run(scene: &Scene, more: &[&str]) -> Ran {
    with_files(scene, more, |args| scene.run(args))
}

fn command(scene: &Scene, more: &[&str]) -> Command {
    with_files(scene, more, |args| scene.command(args))
}

fn with_files<T>(scene: &Scene, more: &[&str], with: impl Fn(&[&str]) -> T) -> T {
    let files = ["a.json", "b.json", "c.json"].map(|name| scene.beside(name).display().to_string());
    let mut args: Vec<&str> = files.iter().map(String::as_str).collect();
    args.extend(["--max-attempts", "1"]);
    args.extend(more);
    with(&args)
}

fn table(ran: &Ran) -> Vec<String> {
    let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    let rows = last["orders"].as_array().unwrap().iter();
    rows.map(|row| {
        format!(
            "{} {}",
            row["verdict"].as_str().unwrap(),
            row["stage"].as_str().unwrap()
        )
    })
    .collect()
}

#[test]
fn with_commit_each_order_finds_what_the_ones_before_have_made() {
    let scene = scene(&[
        &greet(GOOD),
        &proposal("src/b.txt", None, "b"),
        &proposal("src/c.txt", None, "c"),
    ]);
    let ran = run(&scene, &["--commit", "--json"]);
    assert_eq!(
        (ran.code, table(&ran)),
        (Some(0), vec!["PASS success".to_owned(); 3]),
        "{}",
        ran.err
    );
    assert_eq!(scene.status(), "");
    let log = scene.git(&["log", "--format=%s", "-4"]);
    assert_eq!(log.matches("Greet with a comma").count(), 3, "{log}");
}

#[test]
fn with_keep_going_the_others_are_carried_out_and_the_exit_code_is_that_of_the_first_failure() {
    let scene = scene(&[&greet(BAD), &proposal("src/b.txt", None, "b"), "no"]);
    let ran = run(&scene, &["--commit", "--keep-going", "--json"]);
    assert_eq!(
        table(&ran),
        [
            "FAIL acceptance_failed",
            "PASS success",
            "FAIL llm_output_invalid"
        ]
    );
    assert_eq!(ran.code, Some(1));
}

#[test]
fn several_orders_without_commit_are_refused_before_the_first_is_paid_for() {
    let scene = scene(&[&greet(GOOD)]);
    let ran = run(&scene, &["--json"]);
    assert_eq!(
        (ran.code, scene.calls(), scene.runs().len()),
        (Some(3), 0, 0)
    );
    ran.err_has("--commit commits what passes");
}

#[test]
fn an_order_that_cannot_be_carried_out_is_found_before_the_first_one_is_paid_for() {
    for over in [
        json!({ "id": null }),
        json!({ "allowed_files": [".git/config"], "context_files": [] }),
    ] {
        let scene = scene(&[&greet(GOOD)]);
        scene.place("c.json", order(&over).to_string().as_bytes());
        let ran = run(&scene, &["--commit", "--keep-going"]);
        assert_eq!(
            (ran.code, scene.calls(), scene.runs().len()),
            (Some(3), 0, 0)
        );
        ran.err_has("c.json cannot be carried out");
    }
}

#[test]
fn the_same_call_goes_on_behind_what_an_interrupted_one_has_committed() {
    let scene = scene(&[
        &greet(GOOD),
        &proposal("src/b.txt", None, "b"),
        &proposal("src/c.txt", None, "c"),
    ]);
    let [waits, go_on] = ["waits", "go-on"].map(|name| scene.beside(name));
    let wait = format!(
        "sh -c 'test -e src/b.txt || exit 1; touch {}; test -e {} || sleep 600'",
        waits.display(),
        go_on.display()
    );
    let over = json!({
        "id": "b", "allowed_files": ["src/b.txt"], "context_files": [], "acceptance_commands": [wait],
    });
    scene.place("b.json", order(&over).to_string().as_bytes());
    let mut command = command(&scene, &["--commit", "--json"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !waits.exists() {
        std::thread::yield_now();
    }
    interrupt(&child);
    let done = child.wait_with_output().unwrap();
    let stopped = Ran {
        code: done.status.code(),
        out: String::from_utf8(done.stdout).unwrap(),
        err: String::new(),
    };
    assert_eq!(
        (stopped.code, table(&stopped)),
        (
            Some(130),
            vec!["PASS success".to_owned(), "FAIL interrupted".to_owned()]
        )
    );
    let last: Value = serde_json::from_str(stopped.out.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["orders"][1]["attempts"], &last["not_begun"]),
        (&json!(1), &json!(1))
    );
    scene.place("go-on", b"");
    let ran = run(&scene, &["--commit", "--json"]);
    assert_eq!(
        (ran.code, table(&ran)),
        (
            Some(0),
            vec![
                "PASS done before".to_owned(),
                "PASS success".to_owned(),
                "PASS success".to_owned()
            ]
        ),
        "{}",
        ran.err
    );
    assert_eq!((scene.calls(), scene.status().as_str()), (3, ""));
}

#[test]
fn one_table_sums_up_for_a_person() {
    let scene = scene(&[&greet(BAD), "no", &proposal("src/c.txt", None, "c")]);
    let ran = run(&scene, &["--commit", "--keep-going"]);
    let rows: Vec<&str> = ran
        .out
        .lines()
        .filter(|line| line.contains("attempts "))
        .collect();
    assert_eq!(rows.len(), 3, "{}", ran.out);
}
