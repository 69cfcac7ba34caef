//! `resume` for the runs of orders, and one folder of runs for many clones.

use std::fs;

use code_commit_fixtures::server::{Script, Step};

use crate::scenes::files;
use crate::scenes::order::{FILES, GOOD, KEY, Scene, greet, without_durations};
use crate::scenes::program::{Ran, interrupt, must_have, start_heard};

/// A command of the program in the repository, with the key.
fn ask(scene: &Scene, args: &[&str]) -> Ran {
    Ran::of(scene.program(args).env("OPENAI_API_KEY", KEY))
}

/// An order whose last command waits for a file beside the repository, stopped by Ctrl-C while it waits.
fn interrupted() -> Scene {
    let scene = Scene::answering(&greet(GOOD));
    let more = [
        "--max-attempts",
        "1",
        "--llm-temperature",
        "0.5",
        "--timeout-seconds",
        "60",
    ];
    let mut child = scene.standing_still(&more);
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
    let asked = scene.calls();
    ask(&scene, &["resume"]).exits(0);
    assert_eq!(scene.verdict(), "PASS success");
    assert_eq!((scene.calls(), scene.recorded("run.json")), (asked, plan));
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
    let id = files::name(&scene.runs()[0]);
    let help = stopped
        .out
        .lines()
        .find(|line| line.starts_with("  next: "))
        .unwrap();
    must_have(help, "check the key");
    must_have(help, &format!("code-commit resume {id}"));
    ask(&scene, &["resume"]).exits(0);
    assert_eq!(
        (scene.verdict().as_str(), scene.calls()),
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
fn twelve_clones_with_one_folder_for_runs_each_keep_their_own_record() {
    let scene = Scene::answering(&greet(GOOD));
    let clones: Vec<_> = (0..12)
        .map(|number| scene.beside(format!("clone-{number}")))
        .collect();
    for clone in &clones {
        scene.git(&[
            "clone",
            "-q",
            scene.root().to_str().unwrap(),
            clone.to_str().unwrap(),
        ]);
    }
    let start = |clone: &std::path::PathBuf| {
        let mut command = scene.command(&["--repo", clone.to_str().unwrap()]);
        start_heard(&mut command)
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
        let shown = Ran::of(scene.program(&["show"]).current_dir(clone)).exits(0);
        shown.out_has("ended: PASS");
        assert_eq!(
            fs::read_to_string(clone.join("src/greet.sh")).unwrap(),
            GOOD
        );
    }
    assert_eq!(scene.runs().len(), 12);
    assert!(scene.calls() <= 12);
}

#[test]
fn resume_refuses_an_order_that_is_over_and_one_whose_tree_has_gone() {
    let scene = interrupted();
    scene.write("later.txt", "x");
    scene.project.commit("later").unwrap();
    let gone = ask(&scene, &["resume"]).exits(3);
    gone.err_has("the tree is not the one");
    assert_eq!(scene.status(), "");

    let scene = Scene::with(&[&greet(GOOD)]);
    scene.run(&[]);
    let over = ask(&scene, &["resume"]).exits(7);
    over.err_has(" is finished");
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
    let refused = ask(&scene, &["resume"]).exits(3);
    refused.err_has("has changed since the run began");
}
