//! `runs`, `show`, `resume` and `undo` for the runs of orders.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use code_commit_fixtures::server::{Script, Step};
use serde_json::{Value, json};

use crate::scenes::files;
use crate::scenes::order::{AFTER, BAD, FILES, GOOD, KEY, Scene, greet, without_durations};
use crate::scenes::program::{Ran, interrupt};

/// A command of the program in the repository, with the key.
fn ask(scene: &Scene, args: &[&str]) -> Ran {
    Ran::of(scene.program(args).env("OPENAI_API_KEY", KEY))
}

/// An order whose last command waits for a file beside the repository, stopped by Ctrl-C while it waits.
fn interrupted() -> Scene {
    let scene = Scene::scripted(
        &FILES,
        Script::new([]).rule("chat/completions", Step::text(&greet(GOOD))),
    );
    let wait = format!(
        "sh -c '{AFTER}touch stray; test -e {} || sleep 600'",
        scene.beside("go-on").display()
    );
    scene.place_order(&json!({ "acceptance_commands": ["sh tests/run.sh", wait] }));
    let more = [
        "--max-attempts",
        "1",
        "--llm-temperature",
        "0.5",
        "--timeout-seconds",
        "60",
    ];
    let mut child = scene
        .command(&more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !scene.root().join("stray").exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    scene
}

#[test]
fn resume_goes_on_with_an_order_under_the_settings_that_it_began_with() {
    let scene = interrupted();
    let plan = scene.recorded("run.json");
    scene.place("go-on", b"");
    fs::remove_file(scene.beside("order.json")).unwrap();
    let asked = scene.server.requests().len();
    let resumed = ask(&scene, &["resume"]);
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.out, resumed.err);
    assert_eq!(scene.verdict(), "PASS success");
    assert_eq!(
        (scene.server.requests().len(), scene.recorded("run.json")),
        (asked, plan)
    );
}

#[test]
fn clean_removes_the_run_of_an_order_once_it_is_over() {
    let scene = interrupted();
    let stays = ask(&scene, &["clean", "--keep", "0"]);
    assert_eq!(
        (stays.code, scene.runs().len()),
        (Some(0), 1),
        "{}",
        stays.err
    );
    assert!(
        stays.out.contains("not over: code-commit resume "),
        "{}",
        stays.out
    );
    scene.place("go-on", b"");
    assert_eq!(ask(&scene, &["resume"]).code, Some(0));
    assert_eq!(ask(&scene, &["clean", "--keep", "0"]).code, Some(0));
    assert_eq!(
        (scene.runs().len(), ask(&scene, &["runs"]).out.as_str()),
        (0, "")
    );
    assert_eq!(fs::read_dir(scene.beside("out")).unwrap().count(), 0);
}

#[test]
fn an_order_without_an_answer_says_what_can_be_done_and_resume_asks_again() {
    let steps = [
        Step::status(401).message("who are you?"),
        Step::text(&greet(GOOD)),
    ];
    let scene = Scene::scripted(&FILES, Script::new(steps));
    let stopped = scene.run(&[]);
    assert_eq!(
        (stopped.code, scene.verdict().as_str()),
        (Some(4), "FAIL exception")
    );
    let id = scene.runs()[0]
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let help = stopped
        .out
        .lines()
        .find(|line| line.starts_with("  next: "))
        .unwrap();
    assert!(
        help.contains("check the key") && help.contains(&format!("code-commit resume {id}")),
        "{help}"
    );
    let resumed = ask(&scene, &["resume"]);
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.out, resumed.err);
    assert_eq!(
        (scene.verdict().as_str(), scene.server.requests().len()),
        ("PASS success", 2)
    );
    assert_eq!(scene.summary()["attempts"].as_array().unwrap().len(), 1);
    let stale = scene.runs()[0].join("attempt_1/failure_brief.json");
    assert!(!stale.exists(), "an attempt that passes has no brief");
    let listed = ask(&scene, &["runs"]);
    let wanted =
        format!("{id}  order: PASS (success), attempts 1, cost unknown, [T]  Greet with a comma\n");
    assert_eq!(without_durations(&listed.out), wanted);
    assert!(ask(&scene, &["resume"]).err.contains(" is finished"));
}

#[test]
fn an_order_that_goes_on_says_in_which_attempt() {
    let scene = interrupted();
    scene.place("go-on", b"");
    let resumed = ask(&scene, &["resume"]);
    assert!(
        resumed.err.contains("\nattempt 1/1  wrote src/greet.sh\n"),
        "{}",
        resumed.err
    );
    assert!(!resumed.err.contains("preflight"), "{}", resumed.err);
}

/// `order run` of the same order in another clone of the repository, with the same folder for runs.
fn in_another_clone(scene: &Scene) -> Ran {
    let other = scene.beside("other");
    scene
        .project
        .git(&[
            "clone",
            "-q",
            scene.root().to_str().unwrap(),
            other.to_str().unwrap(),
        ])
        .unwrap();
    let more = [
        "--max-attempts",
        "1",
        "--llm-temperature",
        "0.5",
        "--timeout-seconds",
        "60",
    ];
    let ran =
        Ran::of(&mut scene.command(&[&more[..], &["--repo", other.to_str().unwrap()]].concat()));
    assert_eq!(
        fs::read_to_string(other.join("src/greet.sh")).unwrap(),
        GOOD,
        "{ran:?}"
    );
    ran
}

#[test]
fn a_clone_goes_on_with_its_own_run_after_another_has_done_the_same_order_in_the_same_folder() {
    let scene = interrupted();
    scene.place("go-on", b"");
    assert_eq!(in_another_clone(&scene).code, Some(0));
    let asked = scene.server.requests().len();
    let resumed = ask(&scene, &["resume"]);
    assert_eq!(
        (resumed.code, scene.server.requests().len()),
        (Some(0), asked),
        "{resumed}"
    );
    let shown = ask(&scene, &["show"]);
    assert!(
        shown.code == Some(0) && shown.out.contains("ended: PASS"),
        "{shown}"
    );
    assert_eq!(scene.runs().len(), 2);
}

#[test]
fn twelve_clones_with_one_folder_for_runs_each_keep_their_own_record() {
    let scene = Scene::scripted(
        &FILES,
        Script::new([]).rule("chat/completions", Step::text(&greet(GOOD))),
    );
    let clones: Vec<_> = (0..12)
        .map(|number| scene.beside(&format!("clone-{number}")))
        .collect();
    for clone in &clones {
        scene
            .project
            .git(&[
                "clone",
                "-q",
                scene.root().to_str().unwrap(),
                clone.to_str().unwrap(),
            ])
            .unwrap();
    }
    let start = |clone: &std::path::PathBuf| {
        let mut command = scene.command(&["--repo", clone.to_str().unwrap()]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let started: Vec<_> = clones.iter().map(start).collect();
    for child in started {
        let done = child.wait_with_output().unwrap();
        assert_eq!(
            done.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
    for clone in &clones {
        let shown = Ran::of(scene.program(&["show"]).current_dir(clone));
        assert!(
            shown.code == Some(0) && shown.out.contains("ended: PASS"),
            "{shown}"
        );
        assert_eq!(
            fs::read_to_string(clone.join("src/greet.sh")).unwrap(),
            GOOD
        );
    }
    assert_eq!(scene.runs().len(), 12);
    assert!(scene.server.requests().len() <= 12);
}

#[test]
fn a_clone_whose_order_another_has_done_meanwhile_still_puts_its_tree_back() {
    let scene = interrupted();
    let before = scene.project.read("src/greet.sh").unwrap();
    // As if the harness had been killed before it put the tree back.
    let note = scene.root().join(".git/code-commit/order.json");
    let text = files::text(&note).replace("\"restored\": true", "\"restored\": false");
    fs::write(&note, text).unwrap();
    scene.project.write("src/greet.sh", b"half\n").unwrap();
    scene.place("go-on", b"");
    assert_eq!(in_another_clone(&scene).code, Some(0));
    let asked = scene.server.requests().len();
    scene.place_order(&json!({ "title": "another" }));
    scene.run(&["--max-attempts", "1"]);
    assert_eq!(
        scene.project.read("src/greet.sh").unwrap(),
        GOOD,
        "by the other order"
    );
    assert_eq!(scene.server.requests().len(), asked + 1);
    let left = files::below(&scene.beside("out"));
    let is_kept = |path: &Path| path.ends_with("src/greet.sh") && files::text(path) == "half\n";
    assert!(
        left.iter().any(|path| is_kept(path)) && before == FILES[2].1,
        "{left:?}"
    );
}

#[test]
fn resume_refuses_an_order_that_is_over_and_one_whose_tree_has_gone() {
    let scene = interrupted();
    scene.project.write("later.txt", b"x").unwrap();
    scene.project.commit("later").unwrap();
    let gone = ask(&scene, &["resume"]);
    assert_eq!(gone.code, Some(3), "{}", gone.err);
    assert!(gone.err.contains("the tree is not the one"), "{}", gone.err);
    assert_eq!(scene.project.status().unwrap(), "");

    let scene = Scene::with(&[&greet(GOOD)]);
    scene.run(&[]);
    let over = ask(&scene, &["resume"]);
    assert_eq!(over.code, Some(7));
    assert!(over.err.contains(" is finished"), "{}", over.err);
}

#[test]
fn a_plan_that_was_changed_is_not_gone_on_with() {
    let scene = interrupted();
    let file = scene.runs()[0].join("run.json");
    let plan = fs::read_to_string(&file)
        .unwrap()
        .replace("\"timeout_seconds\": 60", "\"timeout_seconds\": 61");
    scene.place("plan", plan.as_bytes());
    fs::rename(scene.beside("plan"), &file).unwrap();
    let refused = ask(&scene, &["resume"]);
    assert_eq!(refused.code, Some(3), "{}", refused.err);
    assert!(
        refused.err.contains("has changed since the run began"),
        "{}",
        refused.err
    );
}

#[test]
fn runs_lists_orders_with_their_verdict() {
    let scene = Scene::with(&[&greet(BAD), &greet(GOOD)]);
    scene.run(&["--max-attempts", "1"]);
    let failed = scene.runs();
    scene.run(&["--max-attempts", "2"]);
    let passed = scene
        .runs()
        .into_iter()
        .find(|run| !failed.contains(run))
        .unwrap();
    let name = |run: &std::path::Path| run.file_name().unwrap().to_str().unwrap().to_owned();
    let listed = Ran::of(&mut scene.program(&["runs"]));
    let wanted = format!(
        "{}  order: PASS (success), attempts 1, cost unknown, [T]  Greet with a comma\n\
         {}  order: FAIL (acceptance_failed), attempts 1, cost unknown, [T]  Greet with a comma\n",
        name(&passed),
        name(&failed[0])
    );
    assert_eq!(without_durations(&listed.out), wanted);
    let listed = interrupted().program(&["runs"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&listed.stdout)
            .ends_with("order: not finished, attempts 1  Greet with a comma\n")
    );
}

#[test]
fn show_tells_what_happened_to_an_order() {
    let scene = Scene::with(&[&greet(BAD), &greet(GOOD)]);
    scene.run(&[]);
    let shown = Ran::of(&mut scene.program(&["show"]));
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    let run = scene.runs()[0].clone();
    let text = shown
        .out
        .replace(run.to_str().unwrap(), "RUN")
        .replace(run.file_name().unwrap().to_str().unwrap(), "ID");
    insta::with_settings!({filters => vec![(r"[\d,]+ (B|tokens|out)\b", "N $1"), (r"\d+\.\d (kB|s)\b", "N $1")]}, {
        insta::assert_snapshot!(text, @r#"
        ID
        Greet with a comma
        attempt 1  test replied, cost unknown, N tokens in, N out, N s (attempt_1/prompt.txt, attempt_1/response.txt)
        attempt 1  The reply was written
        attempt 1  M src/greet.sh
        attempt 1  bash scripts/verify.sh: exit code 0, N s (attempt_1/verify_1_stdout.txt, attempt_1/verify_1_stderr.txt)
        attempt 1  sh tests/run.sh: exit code 3, N s (attempt_1/acceptance_1_stdout.txt, attempt_1/acceptance_1_stderr.txt)
        attempt 1  rolled back: the tree is restored to its state before the first attempt
        attempt 2  test replied, cost unknown, N tokens in, N out, N s (attempt_2/prompt.txt, attempt_2/response.txt)
        attempt 2  The reply was written
        attempt 2  M src/greet.sh
        attempt 2  bash scripts/verify.sh: exit code 0, N s (attempt_2/verify_1_stdout.txt, attempt_2/verify_1_stderr.txt)
        attempt 2  sh tests/run.sh: exit code 0, N s (attempt_2/acceptance_1_stdout.txt, attempt_2/acceptance_1_stderr.txt)
        ended: PASS (success)
        2 attempts · N tokens in, N out · cost unknown · N s · RUN
        diff --git a/src/greet.sh b/src/greet.sh
        --- a/src/greet.sh
        +++ b/src/greet.sh
        @@ -1,2 +1,2 @@
         #!/bin/sh
        -echo hello $1
        +echo "hello, $1"
        "#);
    });
    let shown = Ran::of(&mut scene.program(&["show", "--json"]));
    let told: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(told["summary"], scene.summary());
}

#[test]
fn undo_of_an_order_that_failed_says_that_nothing_is_left_of_it() {
    let scene = Scene::with(&[&greet(BAD)]);
    scene.run(&["--max-attempts", "1"]);
    let undone = Ran::of(&mut scene.program(&["undo"]));
    assert_eq!(undone.code, Some(7));
    assert!(
        undone.err.contains("or that was rolled back"),
        "{}",
        undone.err
    );
}
