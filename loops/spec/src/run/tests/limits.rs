//! Runs with limits.

use super::*;

#[test]
fn a_run_whose_harness_begins_no_turn_any_more_ends_at_that_limit() {
    let (outcome, world) = done(&inputs(), &[PLANNED, ("limit-cost", &[])]);
    let Outcome::ModelUnavailable { round: 1, cause } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (cause.code.as_str(), cause.message.as_str()),
        ("limit-cost", "the run has used what it may")
    );
    assert!(
        cause
            .remedy
            .unwrap()
            .contains("raise the limit, then: code-commit spec run --resume")
    );
    assert_eq!(
        world.steps.last().unwrap(),
        "implementing",
        "its files stay"
    );
}

#[test]
fn a_turn_that_the_time_of_the_run_cut_off_ends_the_run_at_its_limit() {
    insta::assert_snapshot!(play(&inputs(), &[("out-of-time", &[])]), @"
    (IterationStart)
    (PlanningStart)
    planning
    = limit-time: the run has used what it may
    ");
}

#[test]
fn a_quota_that_stays_used_up_is_waited_for_at_growing_intervals_and_not_for_ever() {
    let (used_up, cut_off): (Says, Says) = (("daily-quota", &[]), ("interrupted", &[]));
    let told = play(
        &inputs(),
        &[&[used_up, cut_off, used_up, PLANNED][..], &[used_up; 11]].concat(),
    );
    let waits: Vec<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("wait until 99, at least "))
        .collect();
    assert_eq!(
        waits.join(" "),
        "1 s 2 s 1 s 2 s 4 s 8 s 16 s 32 s 64 s 128 s 256 s 512 s"
    );
    let end = "= daily-quota: implementing: the agent has used up its quota";
    assert_eq!(told.lines().last(), Some(end));
}
