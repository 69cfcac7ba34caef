//! Watch, audit, status, and going on after Ctrl-C.

use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};

use crate::scenes::program::{interrupt, start_heard};
use crate::scenes::spec::{APPROVE, DONE, PLAN, Scene, assert_is_uuid_v7};

/// Runs the watch until it says `last`, then sends Ctrl-C; gives the events until then, and what it said on standard error.
pub fn watch(scene: &Scene, last: &str) -> (Vec<Value>, String) {
    let mut child =
        start_heard(&mut scene.command(&["spec", "watch", "--sandbox", "off", "--json"], &[]));
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let mut events = Vec::new();
    for event in lines.by_ref() {
        let is_last = event["event"] == last;
        events.push(event);
        if is_last {
            break;
        }
    }
    interrupt(&child);
    let behind: Vec<Value> = lines.collect();
    let end = behind.last().cloned().unwrap_or_default();
    assert_eq!(
        (&end["event"], &end["exit"]),
        (&json!("error"), &json!(130)),
        "{behind:?}"
    );
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130));
    crate::spec::schema::hold(&[events.as_slice(), &behind].concat());
    (events, String::from_utf8(done.stderr).unwrap())
}

pub fn states(events: &[Value]) -> String {
    let of_watch = [
        "BacklogEmpty",
        "ProcessingItem",
        "ItemCompleted",
        "ItemRetained",
        "ItemParked",
        "SpecIssueWaiting",
        "ChangeDetected",
    ];
    let names = events
        .iter()
        .map(|event| event["event"].as_str().unwrap_or_default());
    names
        .filter(|name| of_watch.contains(name))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn the_backlog_is_worked_through_in_order_and_its_files_go() {
    let scene = Scene::new(&[PLAN, DONE, APPROVE, PLAN, DONE, APPROVE]);
    scene.write(".cuggino/backlog/b.md", "do B\n");
    scene.write(".cuggino/backlog/a.md", "do A\n");
    let (events, _) = watch(&scene, "BacklogEmpty");
    assert_eq!(
        states(&events),
        "ProcessingItem ItemCompleted ProcessingItem ItemCompleted BacklogEmpty"
    );
    assert!(scene.prompt(1).contains("do A") && scene.prompt(4).contains("do B"));
    assert!(scene.stored("backlog").is_empty());
}

#[test]
fn a_file_that_is_edited_while_it_is_worked_on_stays_and_one_that_is_gone_is_no_error() {
    let scene = Scene::new(&[
        PLAN,
        "echo more >> .cuggino/backlog/a.md; say '<DONE>all</DONE>'",
        APPROVE,
    ]);
    scene.write(".cuggino/backlog/a.md", "do A\n");
    let (events, _) = watch(&scene, "ItemRetained");
    assert_eq!(states(&events), "ProcessingItem ItemRetained");
    assert_eq!(scene.read(".cuggino/backlog/a.md"), "do A\nmore\n");
    let kept = events.last().unwrap();
    assert_eq!(
        (&kept["filename"], &kept["reason"]),
        (
            &json!("a.md"),
            &json!("it was edited while it was worked on")
        )
    );
    let scene = Scene::new(&[
        PLAN,
        "rm .cuggino/backlog/a.md; say '<DONE>all</DONE>'",
        APPROVE,
    ]);
    scene.write(".cuggino/backlog/a.md", "do A\n");
    assert_eq!(
        states(&watch(&scene, "ItemCompleted").0),
        "ProcessingItem ItemCompleted"
    );
}

#[test]
fn a_spec_issue_keeps_the_file_and_stops_the_backlog() {
    let scene = Scene::new(&["say '<SPEC_ISSUE>which?</SPEC_ISSUE>'"]);
    scene.write(".cuggino/backlog/a.md", "do A\n");
    let (events, _) = watch(&scene, "SpecIssueWaiting");
    assert_eq!(
        states(&events),
        "ProcessingItem ItemRetained ChangeDetected SpecIssueWaiting"
    );
    assert_eq!((scene.stored("backlog").len(), scene.calls()), (1, 1));
}

#[test]
fn an_audit_keeps_each_whole_finding_and_changes_nothing() {
    let scene = Scene::new(&[
        "echo x > src.txt; say '<TO_BE_DISCUSSED>A or B?</TO_BE_DISCUSSED><TO_BE_DISCUSSED> </TO_BE_DISCUSSED>'; say '<TO_BE_DISCUSSED>half'",
    ]);
    scene.spec(&["audit"]).exits(0);
    let found = scene.stored("tbd");
    assert_eq!(found.len(), 1);
    assert_is_uuid_v7(&found[0]);
    assert_eq!(
        scene.read(&format!(".cuggino/tbd/{}", found[0])),
        "A or B?\n"
    );
    assert_eq!(scene.read("src.txt"), "old\n");
}

#[test]
fn without_specs_nothing_is_asked() {
    let tables = [
        (
            json!({}),
            None,
            "there is no folder .specs, so there are no specs",
        ),
        (
            json!({ "specsPath": "spec" }),
            Some((".specs/a.md", "# A\n")),
            "there is no folder spec,",
        ),
        (
            json!({ "specsPath": "src.txt" }),
            Some(("src.txt", "# A\n")),
            "there is no folder src.txt,",
        ),
        (
            json!({}),
            Some((".specs/.gitkeep", "")),
            "there are no specs in .specs",
        ),
        (
            json!({}),
            Some((".specs/deep/a.md", " \n")),
            "the spec .specs/deep/a.md is empty",
        ),
    ];
    for (settings, file, wanted) in tables {
        let scene = Scene::without_commits(&["exit 1"]);
        scene.configure(&settings);
        file.into_iter()
            .for_each(|(path, text)| scene.write(path, text));
        scene.write("review.md", "no\n");
        scene.write(".cuggino/backlog/a.md", "do A\n");
        let review = ["review", "review.md", "--focus", "x", "--sandbox", "off"];
        for args in [
            &["run", "--focus", "x"][..],
            &["audit"],
            &["watch"],
            &review,
        ] {
            let ran = scene.spec(args);
            assert_eq!(
                (ran.code, scene.calls()),
                (Some(3), 0),
                "{args:?}: {}",
                ran.err
            );
            assert!(
                ran.err.contains(wanted) && ran.err.contains("specsPath"),
                "{args:?}: {}",
                ran.err
            );
        }
    }
}

#[test]
fn an_audit_in_idle_time_makes_way_for_work() {
    let scene = Scene::new(&[
        "say '<TO_BE_DISCUSSED>one</TO_BE_DISCUSSED><TO_BE_DISCUSSED>half'; echo w > .cuggino/backlog/w.md; sleep 600",
    ]);
    scene.configure(&json!({ "audit": true }));
    let (events, _) = watch(&scene, "AuditInterrupted");
    assert_eq!(
        (
            scene.stored("tbd").len(),
            scene.read(".cuggino/backlog/w.md").as_str()
        ),
        (1, "w\n")
    );
    assert!(
        events
            .iter()
            .any(|event| event["event"] == "TbdItemFound" && event["content"] == "one")
    );
}

#[test]
fn what_an_interrupted_audit_changed_is_put_back_aloud() {
    let turn = "echo x > src.txt; echo w > .cuggino/backlog/w.md; say '<TO_BE_DISCUSSED>one</TO_BE_DISCUSSED>'; sleep 600";
    let scene = Scene::new(&[turn]);
    scene.configure(&json!({ "audit": true }));
    let (events, said) = watch(&scene, "AuditInterrupted");
    assert_eq!(scene.read("src.txt"), "old\n");
    let put_back = events
        .iter()
        .find(|event| event["event"] == "ChangesPutBack")
        .unwrap();
    assert_eq!(put_back["paths"], json!(["src.txt"]));
    assert!(
        said.contains("src.txt may not be changed by the audit agent: it was restored"),
        "{said}"
    );
    assert!(
        crate::spec::schema::recorded(&scene.root())
            .iter()
            .any(|fact| fact == "turned")
    );
    assert!(
        said.contains("the changed version is in backup/left-by-turn-1 of the run's folder"),
        "{said}"
    );
    let folder = said
        .lines()
        .find_map(|line| line.strip_prefix("log: "))
        .unwrap();
    assert_eq!(
        std::fs::read_to_string(std::path::Path::new(folder).join("backup/left-by-turn-1/src.txt"))
            .unwrap(),
        "x\n"
    );
}

#[test]
fn hidden_files_are_neither_tasks_nor_spec_issues() {
    let scene = Scene::new(&[PLAN, DONE, APPROVE]);
    for file in [
        "spec-issues/.gitkeep",
        "backlog/.gitkeep",
        "backlog/.half-written.md",
        "backlog/a.md",
    ] {
        scene.write(&format!(".cuggino/{file}"), "x");
    }
    let (events, said) = watch(&scene, "BacklogEmpty");
    assert_eq!(states(&events), "ProcessingItem ItemCompleted BacklogEmpty");
    assert!(!said.contains("passed over"), "{said}");
    assert_eq!(scene.stored("backlog"), [".gitkeep", ".half-written.md"]);
}

#[test]
fn a_quota_that_is_renewed_at_a_known_time_ends_a_run_and_not_a_watch() {
    let used_up = "line '{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":1}}'; \
        line '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":429,\"result\":\"limit\"}'; exit 1";
    let scene = Scene::new(&[&used_up.replace(":1}", ":4102444800}")]);
    let ran = scene.run();
    assert_eq!((ran.code, scene.calls()), (Some(4), 1), "{}", ran.err);
    let scene = Scene::new(&[used_up, PLAN, DONE, APPROVE]);
    scene.write(".cuggino/backlog/a.md", "do A\n");
    let (events, _) = watch(&scene, "BacklogEmpty");
    assert!(
        events
            .iter()
            .any(|event| event["event"] == "QuotaWaitStart"),
        "{events:#?}"
    );
    assert_eq!(scene.calls(), 4);
}

#[test]
fn status_shows_what_waits_and_how_runs_ended() {
    let scene = Scene::new(&["say '<SPEC_ISSUE>which?</SPEC_ISSUE>'"]);
    scene.write(".cuggino/backlog/a.md", "# Do A\n");
    scene.run();
    let ran = scene.spec(&["status"]).exits(0);
    for wanted in [
        "Spec issues: 1\n",
        "which?\n",
        "Backlog: 1\n",
        "a.md  Do A\n",
        "To be discussed: 0\n",
        "spec issue  Add X\n",
    ] {
        assert!(ran.out.contains(wanted), "{wanted} is not in {}", ran.out);
    }
}
