mod replay;
mod world;

use std::collections::BTreeSet;

use perform::Condition;
use serde_json::json;

use super::*;
use world::{World, inputs, text};

#[test]
fn engineer_tool_runner_and_judge_follow_each_other() {
    let mut decide = OrderLoop::new(inputs(&json!({})));
    insta::assert_snapshot!(World::failing(&[]).run(&mut decide), @"
    stamp
    ask 1
    write 1
    run bash scripts/verify.sh as attempt_1/verify_1
    run accept one as attempt_1/acceptance_1
    run accept two as attempt_1/acceptance_2
    keep attempt_1/proposed_writes.json
    keep attempt_1/write_result.json
    keep attempt_1/verify_result.json
    keep attempt_1/acceptance_result.json
    measure
    stamp
    keep run_summary.json
    ");
    let summary = decide.summary();
    assert_eq!((summary.verdict, summary.ended_stage.as_str()), (Verdict::Pass, "success"));
    assert_eq!(summary.repo_tree_hash_after.as_deref(), Some("t1"));
}

#[test]
fn what_has_passed_is_committed_last_of_all_and_what_has_failed_is_not() {
    for (failing, last) in
        [(&[][..], "commit by the line Run: id"), (&["accept one"], "keep run_summary.json")]
    {
        let mut decide = OrderLoop::new(Inputs { commit: true, ..inputs(&json!({})) });
        let steps = World::failing(failing).run(&mut decide);
        assert_eq!(steps.lines().next_back(), Some(last), "{steps}");
        assert_eq!(steps.matches("commit").count(), usize::from(failing.is_empty()), "{steps}");
    }
}

#[test]
fn the_proposal_is_kept_as_the_model_wrote_it() {
    let mut decide = OrderLoop::new(inputs(&json!({})));
    let world = World::failing(&[]);
    let mut kept = None;
    while let Next::Do(step) = decide.next() {
        if let OrderStep::Keep { file, text } = &step
            && file == "attempt_1/proposed_writes.json"
        {
            kept = Some(serde_json::from_str::<serde_json::Value>(text).unwrap());
        }
        decide.learn(&world.answer(&step));
    }
    assert_eq!(kept, serde_json::from_str(world::REPLY).unwrap());
}

#[test]
fn a_failure_rolls_back_before_anything_is_kept_and_goes_back_to_the_engineer() {
    let mut decide = OrderLoop::new(inputs(&json!({})));
    insta::assert_snapshot!(World::failing(&["accept one"]).run(&mut decide), @"
    stamp
    ask 1
    write 1
    run bash scripts/verify.sh as attempt_1/verify_1
    run accept one as attempt_1/acceptance_1
    roll back
    keep attempt_1/proposed_writes.json
    keep attempt_1/write_result.json
    keep attempt_1/verify_result.json
    keep attempt_1/acceptance_result.json
    keep attempt_1/failure_brief.json
    ask 2
    write 2
    run bash scripts/verify.sh as attempt_2/verify_1
    run accept one as attempt_2/acceptance_1
    roll back
    keep attempt_2/proposed_writes.json
    keep attempt_2/write_result.json
    keep attempt_2/verify_result.json
    keep attempt_2/acceptance_result.json
    keep attempt_2/failure_brief.json
    stamp
    keep run_summary.json
    ");
    let summary = decide.summary();
    assert_eq!((summary.verdict, summary.ended_stage.as_str()), (Verdict::Fail, "acceptance_failed"));
    assert_eq!((summary.attempts.len(), summary.repo_tree_hash_after), (2, None));
}

#[test]
fn a_proposal_that_was_not_written_needs_no_rollback() {
    let mut decide = OrderLoop::new(inputs(&json!({})));
    let world = World { reply: "no", ..World::failing(&[]) };
    let steps = world.run(&mut decide);
    assert!(!steps.contains("roll back") && !steps.contains("proposed_writes"), "{steps}");
    assert_eq!(decide.summary().ended_stage, "llm_output_invalid");
}

#[test]
fn the_baseline_is_probed_and_restored_before_the_first_call() {
    let over = json!({ "must_fail_before": ["accept two"], "preconditions": [{ "file_exists": "a" }] });
    let mut decide = OrderLoop::new(inputs(&over));
    let steps = World::failing(&["accept two"]).run(&mut decide);
    let before: Vec<&str> = steps.lines().take_while(|line| *line != "ask 1").collect();
    assert_eq!(
        before,
        ["stamp", "look at 1 conditions", "run accept two as preflight/must_fail_before_1", "roll back"]
    );
}

#[test]
fn a_run_that_may_not_begin_leaves_a_brief_and_a_summary_and_asks_nobody() {
    let over = json!({ "must_fail_before": ["accept two"] });
    let mut decide = OrderLoop::new(inputs(&over));
    insta::assert_snapshot!(World::failing(&[]).run(&mut decide), @"
    stamp
    run accept two as preflight/must_fail_before_1
    roll back
    keep preflight/failure_brief.json
    stamp
    keep run_summary.json
    ");
    assert_eq!(decide.summary().ended_stage, "preflight");

    let over = json!({ "preconditions": [{ "file_exists": "a" }] });
    let mut decide = OrderLoop::new(inputs(&over));
    let world = World { conditions_hold: false, ..World::failing(&[]) };
    assert!(!world.run(&mut decide).contains("ask"));
    assert_eq!(decide.summary().ended_stage, "preflight");
}

#[test]
fn a_model_that_gives_no_answer_is_not_asked_again() {
    let mut decide = OrderLoop::new(inputs(&json!({})));
    decide.learn(&OrderFact::Stamped { at: "now".to_owned() });
    let cause = Cause { code: "x".to_owned(), message: "gone".to_owned(), remedy: None };
    decide.learn(&OrderFact::Call(CallFact::Unanswered { round: 1, cause }));
    let steps = World::failing(&[]).run(&mut decide);
    assert!(!steps.contains("ask"), "{steps}");
    assert!(matches!(decide.next(), Next::Stop(Outcome::ModelUnavailable { round: 1, .. })));
    assert_eq!(decide.summary().ended_stage, "exception");
}

#[test]
fn a_step_that_breaks_ends_the_run_with_the_tree_as_it_was() {
    let mut decide = OrderLoop::new(inputs(&json!({})));
    let world = World::failing(&[]);
    for _ in 0..3 {
        let Next::Do(step) = decide.next() else { panic!() };
        decide.learn(&world.answer(&step));
    }
    decide.learn(&OrderFact::Broke { message: "the disk is gone".to_owned() });
    let steps = world.run(&mut decide);
    assert!(steps.starts_with("roll back") && !steps.contains("ask 2"), "{steps}");
    assert_eq!(decide.summary().ended_stage, "exception");
}

#[test]
fn facts_on_the_way_change_nothing() {
    let mut decide = OrderLoop::new(inputs(&json!({})));
    let before = decide.next();
    decide.learn(&OrderFact::RolledBack { warnings: vec![] });
    decide.learn(&OrderFact::Call(CallFact::Asked { round: 1, prompt: text("p") }));
    assert_eq!(decide.next(), before);
}

/// The failure briefs that are kept in these steps.
fn briefs(steps: &str) -> BTreeSet<String> {
    let kept = steps.lines().filter_map(|line| line.trim().strip_prefix("keep "));
    kept.filter(|file| file.ends_with("/failure_brief.json")).map(str::to_owned).collect()
}

/// Whatever the point at which a run was stopped and its tree put back: it ends as if it had not been, and an answer that is there is
/// not asked for again.
#[test]
fn a_run_that_goes_on_ends_as_one_that_was_never_stopped() {
    let all = json!({
        "must_fail_before": ["probe"], "acceptance_commands": ["probe", "accept"],
        "preconditions": [{ "file_exists": "a" }], "postconditions": [{ "file_exists": "a" }],
    });
    let inputs = |all| Inputs { commit: true, ..inputs(all) };
    for failing in [&["probe"][..], &["bash"], &[], &["accept", "probe"]] {
        let world = World::failing(failing);
        let mut whole = OrderLoop::new(inputs(&all));
        let log = world.run(&mut whole);
        for stop in 0..=log.lines().count() {
            let mut decide = OrderLoop::new(inputs(&all));
            let (mut asked, mut kept) = (0, BTreeSet::new());
            for _ in 0..stop {
                if let Next::Do(step) = decide.next() {
                    asked += usize::from(matches!(step, OrderStep::Ask { .. }));
                    if let OrderStep::Keep { file, .. } = &step {
                        kept.extend(briefs(&format!("keep {file}")));
                    }
                    decide.learn(&world.answer(&step));
                }
            }
            decide.learn(&OrderFact::Resumed);
            if let Some(stale) = decide.stale_brief_file() {
                kept.remove(&stale);
            }
            let rest = world.run(&mut decide);
            kept.extend(briefs(&rest));
            assert_eq!(kept, briefs(&log), "{failing:?} stopped after {stop}");
            asked += rest.lines().filter(|line| line.starts_with("ask")).count();
            assert_eq!(decide.summary(), whole.summary(), "{failing:?} stopped after {stop}");
            assert_eq!(asked, whole.summary().attempts.len(), "{failing:?} stopped after {stop}");
        }
    }
}

#[test]
fn conditions_are_named_in_the_brief() {
    let order = inputs(&json!({})).order;
    let failed = [Condition::FileExists("a".to_owned()), Condition::FileAbsent("b".to_owned())];
    insta::assert_snapshot!(brief::conditions(Stage::Preflight, &failed, &order).primary_error_excerpt, @"
    file_exists: a is no file
    file_absent: b is there
    ");
}
