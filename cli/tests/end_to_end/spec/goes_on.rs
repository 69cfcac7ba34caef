//! What comes after the end of a run: going on without paying twice, a person's review, tasks that fail again and again.

use serde_json::{Value, json};

use crate::scenes::program::{Ran, must_have};
use crate::scenes::spec::{APPROVE, DONE, PLAN, Scene, event};
use crate::spec::waiting::{states, watch};

/// The service is down.
const DOWN: &str = "exit 3";

#[test]
fn the_session_files_of_a_run_go_when_another_takes_its_place() {
    let scene = Scene::new(&[
        PLAN,
        DOWN,
        PLAN,
        &format!("ls .cuggino/wip > $HOME/wip; {DONE}"),
        APPROVE,
    ]);
    assert_eq!(scene.run().code, Some(4));
    assert_eq!(
        scene.stored("wip").len(),
        1,
        "the plan of the run that can be gone on with"
    );
    scene.spec(&["run", "--focus", "Add Y"]).exits(0);
    let wip = std::fs::read_to_string(scene.home().join("wip")).unwrap();
    assert_eq!(wip.lines().count(), 1, "{wip}");
}

#[test]
fn no_run_is_begun_or_gone_on_with_while_a_spec_issue_waits() {
    let scene = Scene::new(&[PLAN, DOWN, DONE, APPROVE]);
    assert_eq!(scene.run().code, Some(4));
    scene.write(".cuggino/spec-issues/which.md", "A or B?\n");
    scene.write("mine.md", "not so\n");
    let next: [&[&str]; 4] = [
        &["spec", "run", "--focus", "Y", "--sandbox", "off"],
        &["spec", "run", "--resume"],
        &["resume"],
        &["spec", "review", "mine.md", "--sandbox", "off"],
    ];
    for args in next {
        let ran = Ran::of(&mut scene.command(args, &[])).exits(3);
        assert_eq!(scene.calls(), 2, "{args:?}");
        ran.err_has("a spec issue waits in .cuggino/spec-issues: which.md");
    }
    std::fs::remove_file(scene.root().join(".cuggino/spec-issues/which.md")).unwrap();
    assert_eq!(
        (scene.spec(&["run", "--resume"]).code, scene.calls()),
        (Some(0), 4)
    );
}

#[test]
fn a_persons_review_of_the_last_run_is_what_the_next_plan_answers() {
    let answers = format!("cat $WIP.review.md > $HOME/review; {PLAN}");
    let changes = "say '<REQUEST_CHANGES>the colour is wrong</REQUEST_CHANGES>'";
    let scene = Scene::new(&[
        PLAN, DONE, changes, &answers, DONE, APPROVE, &answers, DONE, APPROVE,
    ]);
    scene.configure(&json!({ "maxIterations": 1, "commit": true }));
    scene.write("mine.md", "The size is wrong, too.\n");
    scene.spec(&["review", "mine.md"]).exits(3);
    assert_eq!(scene.calls(), 0);
    let ran = scene.run();
    ran.out_has("✗ failed after 1 iteration: the review requests changes\n  the colour is wrong\n");
    ran.out_has("code-commit spec review FILE\n");
    let review = || std::fs::read_to_string(scene.home().join("review")).unwrap();
    let args = ["review", "mine.md", "--sandbox", "off"];
    scene.spec(&args).exits(0);
    assert_eq!(scene.calls(), 6);
    assert_eq!(review(), "The size is wrong, too.\n");
    must_have(&scene.prompt(4), "# Review\n");
    assert!(scene.prompt(3).contains("Add X"), "{}", scene.prompt(4));
    assert!(
        !scene.prompt(5).contains("# Review\n"),
        "{}",
        scene.prompt(5)
    );
    let args = [
        "spec",
        "review",
        "-",
        "--focus",
        "Add Y",
        "--sandbox",
        "off",
    ];
    Ran::fed(&mut scene.command(&args, &[]), "From a program.\n").exits(0);
    assert_eq!(review(), "From a program.\n");
    assert!(scene.prompt(7).contains("Add Y"), "{}", scene.prompt(7));
    for (file, text) in [("empty.md", Some(" \n")), ("none.md", None)] {
        text.into_iter().for_each(|text| scene.write(file, text));
        let refused = scene.spec(&["review", file]);
        assert_eq!(
            (refused.code, scene.calls()),
            (Some(3), 9),
            "{file}: {}",
            refused.err
        );
    }
}

#[test]
fn a_task_that_fails_three_times_is_parked_until_it_is_edited_and_the_next_one_is_taken() {
    let scene = Scene::new(&[
        DOWN,
        PLAN,
        DONE,
        APPROVE,
        DOWN,
        DOWN,
        PLAN,
        "echo A > src.txt; say '<DONE>a</DONE>'",
        APPROVE,
    ]);
    scene.write(".cuggino/backlog/a.md", "do A\n");
    scene.write(".cuggino/backlog/b.md", "do B\n");
    let (events, _) = watch(&scene, "ItemCompleted");
    let wanted = "ProcessingItem ItemRetained ProcessingItem ItemCompleted";
    assert_eq!(
        (states(&events).as_str(), scene.calls()),
        (wanted, 4),
        "one waits aside for the next"
    );
    assert!(scene.prompt(2).contains("do B"), "{}", scene.prompt(2));
    let (events, _) = watch(&scene, "ItemRetained");
    assert_eq!(
        (states(&events).as_str(), scene.calls()),
        ("ProcessingItem ItemRetained", 5)
    );
    assert!(!scene.spec(&["status"]).out.contains("Parked"));
    let (events, _) = watch(&scene, "BacklogEmpty");
    let wanted = "ProcessingItem ItemRetained ItemParked BacklogEmpty";
    assert_eq!((states(&events).as_str(), scene.calls()), (wanted, 6));
    let parked = |events: &[Value]| {
        let parked = event(events, "ItemParked");
        (parked["filename"].clone(), parked["reason"].clone())
    };
    let wanted = (
        json!("a.md"),
        json!("has failed three times and waits to be edited"),
    );
    assert_eq!(parked(&events), wanted);
    assert_eq!(
        parked(&watch(&scene, "BacklogEmpty").0),
        wanted,
        "a new watch says it, too"
    );
    let status = scene.spec(&["status"]).out;
    let parked = "Parked until edited: 1\n  .cuggino/backlog/a.md  failed 3 times, the last time: planning: the agent crashed";
    assert!(status.contains(parked), "{status}");
    let status = scene.spec(&["status", "--json"]);
    crate::spec::schema::hold(&status.objects());
    status.out_has("\"event\":\"parked\"");
    scene.write(".cuggino/backlog/a.md", "do A, but only this\n");
    assert_eq!(
        states(&watch(&scene, "BacklogEmpty").0),
        "ProcessingItem ItemCompleted BacklogEmpty"
    );
    assert!(!scene.spec(&["status"]).out.contains("Parked"));
}
