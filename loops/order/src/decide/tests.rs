mod world;

use std::collections::BTreeSet;

use code_commit_engine::Condition;
use serde_json::json;

use super::*;
use crate::still_holds;
use world::{World, inputs};

/// The requests, one per line, if everything but `failing` succeeds, and how the run ended.
fn run(failing: &[&'static str], inputs: &Inputs) -> (Finished, String) {
    finish(World::failing(failing), inputs)
}

fn finish(world: World, inputs: &Inputs) -> (Finished, String) {
    let (finished, world) = world.run(inputs);
    (finished.unwrap(), world.steps.join("\n"))
}

#[test]
fn engineer_tool_runner_and_judge_follow_each_other() {
    let (finished, steps) = run(&[], &inputs(&json!({})));
    insta::assert_snapshot!(steps, @"
    stamp
    ask 1
    write 1
    run bash scripts/verify.sh as attempt_1/verify_1
    run accept one as attempt_1/acceptance_1
    run accept two as attempt_1/acceptance_2
    measure
    keep attempt_1/proposed_writes.json
    keep attempt_1/write_result.json
    keep attempt_1/verify_result.json
    keep attempt_1/acceptance_result.json
    stamp
    keep run_summary.json
    ");
    let summary = finished.summary;
    assert_eq!(
        (summary.verdict, summary.ended_stage.as_str()),
        (Verdict::Pass, "success")
    );
    assert_eq!(summary.repo_tree_hash_after.as_deref(), Some("t1"));
}

#[test]
fn what_has_passed_is_committed_last_of_all_and_what_has_failed_is_not() {
    for (failing, last) in [
        (&[][..], "commit by the line Run: id"),
        (&["accept one"], "keep run_summary.json"),
    ] {
        let (_, steps) = run(
            failing,
            &Inputs {
                commit: true,
                ..inputs(&json!({}))
            },
        );
        assert_eq!(steps.lines().next_back(), Some(last), "{steps}");
        assert_eq!(
            steps.matches("commit").count(),
            usize::from(failing.is_empty()),
            "{steps}"
        );
    }
}

#[test]
fn the_proposal_is_kept_as_the_model_wrote_it() {
    let (_, world) = World::failing(&[]).run(&inputs(&json!({})));
    let kept: serde_json::Value =
        serde_json::from_str(&world.kept["attempt_1/proposed_writes.json"]).unwrap();
    assert_eq!(
        kept,
        serde_json::from_str::<serde_json::Value>(world::REPLY).unwrap()
    );
}

#[test]
fn a_failure_rolls_back_before_anything_is_kept_and_goes_back_to_the_engineer() {
    let (finished, steps) = run(&["accept one"], &inputs(&json!({})));
    insta::assert_snapshot!(steps, @"
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
    let summary = finished.summary;
    assert_eq!(
        (summary.verdict, summary.ended_stage.as_str()),
        (Verdict::Fail, "acceptance_failed")
    );
    assert_eq!(
        (summary.attempts.len(), summary.repo_tree_hash_after),
        (2, None)
    );
}

#[test]
fn a_proposal_that_was_not_written_needs_no_rollback() {
    let world = World {
        reply: "no",
        ..World::failing(&[])
    };
    let (finished, steps) = finish(world, &inputs(&json!({})));
    let (_, after) = steps.split_once("ask 1").unwrap();
    assert!(
        !after.contains("roll back") && !after.contains("proposed_writes"),
        "{steps}"
    );
    assert_eq!(finished.summary.ended_stage, "llm_output_invalid");
}

#[test]
fn a_run_that_may_not_begin_leaves_a_brief_and_a_summary_and_asks_nobody() {
    let over = json!({ "preconditions": [{ "file_exists": "a" }] });
    let world = World {
        conditions_hold: false,
        ..World::failing(&[])
    };
    let (finished, steps) = finish(world, &inputs(&over));
    insta::assert_snapshot!(steps, @"
    stamp
    look at 1 conditions
    keep preflight/failure_brief.json
    stamp
    keep run_summary.json
    ");
    assert_eq!(finished.summary.ended_stage, "preflight");
}

#[test]
fn a_model_that_gives_no_answer_is_not_asked_again() {
    let world = World {
        has_model: false,
        ..World::failing(&[])
    };
    let (finished, steps) = finish(world, &inputs(&json!({})));
    assert_eq!(steps.matches("ask").count(), 1, "{steps}");
    assert!(matches!(
        finished.outcome,
        Outcome::ModelUnavailable { round: 1, .. }
    ));
    assert_eq!(finished.summary.ended_stage, "exception");
}

#[test]
fn a_model_that_gave_no_answer_is_asked_again_by_a_run_that_goes_on() {
    let inputs = inputs(&json!({}));
    let (_, mut world) = World {
        has_model: false,
        ..World::failing(&[])
    }
    .run(&inputs);
    world.journal.truncate(still_holds(&world.journal));
    let (finished, steps) = finish(
        World {
            has_model: true,
            steps: Vec::new(),
            ..world
        },
        &inputs,
    );
    assert!(steps.starts_with("ask 1\n"), "{steps}");
    assert_eq!(finished.outcome, Outcome::Done { rounds: 1 });
}

#[test]
fn a_step_that_breaks_ends_the_run_with_the_tree_as_it_was() {
    let world = World {
        breaks: Some("attempt_1"),
        ..World::failing(&[])
    };
    let (finished, steps) = finish(world, &inputs(&json!({})));
    assert!(
        steps.contains("verify_1\nroll back") && !steps.contains("ask 2"),
        "{steps}"
    );
    assert_eq!(finished.summary.ended_stage, "exception");
}

/// The failure briefs among these files.
fn briefs(world: &World) -> BTreeSet<&String> {
    world
        .kept
        .keys()
        .filter(|file| file.ends_with("/failure_brief.json"))
        .collect()
}

/// Wherever a run was stopped and its tree rolled back, it ends as if it had not been, and a reply
/// that was recorded is not requested again.
#[test]
fn a_run_that_goes_on_ends_as_one_that_was_never_stopped() {
    let all = json!({
        "acceptance_commands": ["accept"],
        "preconditions": [{ "file_exists": "a" }], "postconditions": [{ "file_exists": "a" }],
    });
    let inputs = Inputs {
        commit: true,
        ..inputs(&all)
    };
    for failing in [&["bash"][..], &[], &["accept"]] {
        let (whole, never_stopped) = World::failing(failing).run(&inputs);
        for stop in 0..never_stopped.journal.len() {
            let (none, mut world) = World {
                stop_after: stop,
                ..World::failing(failing)
            }
            .run(&inputs);
            assert_eq!(none, None, "{failing:?} stopped after {stop}");
            let gone = world.journal.split_off(still_holds(&world.journal));
            // Artifacts of what is repeated are gone.
            for file in gone
                .iter()
                .filter_map(|entry| entry.request["file"].as_str())
            {
                world.kept.remove(file);
            }
            let (finished, world) = World {
                stop_after: usize::MAX,
                ..world
            }
            .run(&inputs);
            assert_eq!(finished, whole, "{failing:?} stopped after {stop}");
            assert_eq!(
                briefs(&world),
                briefs(&never_stopped),
                "{failing:?} stopped after {stop}"
            );
            let asked = world
                .steps
                .iter()
                .filter(|step| step.starts_with("ask"))
                .count();
            let attempts = whole.as_ref().unwrap().summary.attempts.len();
            assert_eq!(asked, attempts, "{failing:?} stopped after {stop}");
        }
    }
}

#[test]
fn conditions_are_named_in_the_brief() {
    let order = inputs(&json!({})).order;
    let failed = [
        Condition::FileExists("a".to_owned()),
        Condition::FileAbsent("b".to_owned()),
    ];
    insta::assert_snapshot!(brief::conditions(Stage::Preflight, &failed, &order).primary_error_excerpt, @"
    file_exists: a is not a file
    file_absent: b is there
    ");
}
