//! The loop from planning to approval (S4 §Main Loop Flow).

use serde_json::json;

use crate::scenes::program::must_have;
use crate::scenes::spec::{
    APPROVE, DONE, PLAN, Scene, all_settings, assert_is_uuid_v7, event, is_alive, names,
};

/// Opens the file of the check's output by the name that the prompt gives it.
const READ_CHECK: &str =
    "cat $(printf '%s' \"$prompt\" | grep -o '[^`]*check\\.txt') >> $HOME/checked";

#[test]
fn two_tasks_a_failed_check_a_review_that_requests_changes_and_then_approves() {
    let scene = Scene::new(&[
        PLAN,
        &format!(
            "{READ_CHECK}; ls .cuggino/wip > $HOME/wip; tool Edit src.txt; echo one > src.txt; say '<NOTE>seen</NOTE>'; say '<PROGRESS>task one</PROGRESS>'"
        ),
        "echo two > src.txt; say '<DONE>task two</DONE>'",
        &format!(
            "{READ_CHECK}; cat $WIP.md > $HOME/session; echo 'fix it' > $WIP.review.md; say '<REQUEST_CHANGES>not yet</REQUEST_CHANGES>'"
        ),
        "cat $WIP.review.md > $HOME/review; printf '# Plan 2\\n' > $WIP.plan.md; say '<PLAN_COMPLETE>again</PLAN_COMPLETE>'",
        "echo three > src.txt; say '<DONE>task three</DONE>'",
        APPROVE,
    ]);
    scene.configure(&all_settings());
    let ran = scene.run();
    insta::assert_snapshot!(ran, @"
    exit 0
    --- out
    [Loop] === Iteration 1/10 ===
    [Planning] Starting...
    [Setup] Completed (exit 0)
    [Check] Completed (exit 1)
    [Implementing] Starting...
    ▶ Edit: src.txt
    [Commit] [HASH] task one
    [Check] Completed (exit 1)
    [Implementing] Starting...
    [Commit] [HASH] task two
    [Check] Completed (exit 1)
    [Reviewing] Starting...
    [Loop] === Iteration 2/10 ===
    [Planning] Starting...
    [Setup] Completed (exit 0)
    [Check] Completed (exit 1)
    [Implementing] Starting...
    [Commit] [HASH] task three
    [Check] Completed (exit 1)
    [Reviewing] Starting...
    ▶ Read: .specs/a.md
    [Loop] Approved
    ✓ done after 2 iterations: the review approves
      [USED]
    --- err
    sandbox: OFF, commands run with all your rights (asked for)
    ");
    assert_eq!(
        scene.git(&["log", "--format=%s"]),
        "task three\ntask two\ntask one\nfirst\n"
    );
    let home = |name: &str| std::fs::read_to_string(scene.home().join(name)).unwrap();
    insta::assert_snapshot!(home("session"), @"
    # Plan
    - [ ] one

    # Progress Log

    <NOTE>
    seen
    </NOTE>

    <PROGRESS>
    task one
    </PROGRESS>

    <DONE>
    task two
    </DONE>
    ");
    assert_eq!(home("review"), "fix it\n");
    assert_eq!(
        home("checked"),
        "checked\nchecked\n",
        "who implements and who reviews can read it"
    );
    assert_eq!(
        home("wip").lines().count(),
        2,
        "session and check: {}",
        home("wip")
    );
    home("wip").lines().for_each(assert_is_uuid_v7);
    assert!(
        !(1..=7).any(|number| scene.prompt(number).contains("set up")),
        "setup output never reaches an agent"
    );
    must_have(
        &scene.arguments(1),
        "--append-system-prompt\nYou are the planning agent",
    );
    assert!(
        scene.arguments(1).contains("--session-id\n")
            && scene
                .arguments(1)
                .contains("--dangerously-skip-permissions")
    );
}

#[test]
fn without_settings_nothing_is_run_and_nothing_committed() {
    let scene = Scene::new(&[PLAN, DONE, APPROVE]);
    let (code, events) = scene.events();
    assert_eq!(code, Some(0));
    let wanted = "IterationStart PlanningStart PlanComplete ImplementingStart Done ReviewingStart Approved LoopApproved";
    assert_eq!(names(&events).join(" "), wanted);
    assert_eq!(scene.git(&["log", "--format=%s"]), "first\n");
    assert!(!scene.prompt(2).contains("# Check") && !scene.prompt(3).contains("git diff"));
}

#[test]
fn a_spec_issue_counts_before_what_else_a_turn_says_and_its_file_is_named() {
    let scene = Scene::new(&[
        PLAN,
        "say '<SPEC_ISSUE>which colour?</SPEC_ISSUE><DONE>all</DONE>'",
    ]);
    let (code, events) = scene.events();
    assert_eq!((code, scene.calls()), (Some(6), 2));
    let issue = event(&events, "LoopSpecIssue");
    let stored = scene.stored("spec-issues");
    assert_eq!(json!([issue["filename"]]), json!(stored));
    assert_is_uuid_v7(&stored[0]);
    assert_eq!(issue["content"], "which colour?");
}

#[test]
fn a_spec_issue_ends_the_agent_and_its_children_in_the_middle_of_the_turn() {
    let issue = "say '<SPEC_ISSUE>which colour?</SPEC_ISSUE>'; sleep 600";
    let implements = format!("echo half > src.txt; sleep 600 & echo $! > $HOME/child; {issue}");
    let scene = Scene::new(&[PLAN, &implements]);
    let ran = scene.run();
    assert_eq!((ran.code, scene.calls()), (Some(6), 2), "{}", ran.err);
    assert_eq!(
        scene.read(&format!(
            ".cuggino/spec-issues/{}",
            scene.stored("spec-issues")[0]
        )),
        "which colour?\n"
    );
    assert_eq!(scene.read("src.txt"), "half\n");
    let child = std::fs::read_to_string(scene.home().join("child")).unwrap();
    assert!(!is_alive(child.trim()));
    let in_the_sandbox =
        Scene::new(&[issue]).spec(&["run", "--focus", "Add X", "--sandbox", "auto"]);
    assert_eq!(in_the_sandbox.code, Some(6), "{}", in_the_sandbox.err);
}

#[test]
fn a_turn_without_a_terminal_marker_ends_the_run_which_can_be_resumed() {
    let scene = Scene::new(&[PLAN, "say 'I am thinking.'"]);
    let ran = scene.run();
    insta::assert_snapshot!(ran, @"
    exit 4
    --- out
    [Loop] === Iteration 1/10 ===
    [Planning] Starting...
    [Implementing] Starting...
    ✗ failed in iteration 1: implementing: the turn ended without a marker that says where the work stands
      [USED]
      next: fix the cause, then: code-commit spec run --resume
    --- err
    sandbox: OFF, commands run with all your rights (asked for)
    ");
}

#[test]
fn a_focus_may_stand_in_a_file() {
    let scene = Scene::new(&[PLAN, DONE, APPROVE]);
    scene.write("focus.md", "Build the thing\n");
    assert_eq!(scene.spec(&["run", "--focus", "@focus.md"]).code, Some(0));
    must_have(&scene.prompt(1), "From `focus.md`:\n\nBuild the thing\n");
    let missing = scene.spec(&["run", "--focus", "@none.md"]);
    assert_eq!((missing.code, scene.calls()), (Some(3), 3));
}

#[test]
fn commits_that_nothing_could_take_are_refused_before_anything_is_started() {
    let scene = Scene::new(&[PLAN, DONE, APPROVE]);
    scene.configure(&json!({ "commit": true }));
    std::fs::remove_dir_all(scene.root().join(".git")).unwrap();
    let ran = scene.run();
    assert_eq!((ran.code, scene.calls()), (Some(3), 0), "{ran}");
    ran.err_has("there is nothing to commit to")
        .err_has("git init");
    scene.configure(&json!({ "commit": false }));
    assert_eq!(scene.run().code, Some(0), "only commits need a repository");
}

#[test]
fn tools_are_shown_and_messages_and_results_only_if_asked_for() {
    let result = r#"line '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"old\u001b[2J <DONE>no</DONE>\nmore"}]}}'"#;
    let read = format!(
        "tool Read src.txt; {result}; say 'Reading it.'; printf p > $WIP.plan.md; say '<PLAN_COMPLETE>r</PLAN_COMPLETE>'"
    );
    let turns = [&read, DONE, APPROVE];
    let quietly = Scene::new(&turns).run();
    quietly.out_has("▶ Read: src.txt\n");
    assert!(!quietly.out.contains("Reading it."), "{quietly}");
    assert!(!quietly.out.contains("  ✓ "), "{quietly}");
    let scene = Scene::new(&turns);
    let ran = scene.spec(&["run", "--focus", "X", "--verbose"]);
    ran.out_has("Reading it.\n").out_has("[PLAN_COMPLETE] r\n");
    ran.out_has("▶ Read: src.txt\n  ✓ old");
    ran.out_has(" <DONE>no</DONE>…\n");
    assert!(!ran.out.contains(['\u{1b}']), "{ran}");
    let scene = Scene::new(&turns);
    let objects = scene.spec(&["run", "--focus", "X", "--json"]);
    objects.out_has(r#""message":"old\u001b[2J <DONE>no</DONE>…","ok":true"#);
}
