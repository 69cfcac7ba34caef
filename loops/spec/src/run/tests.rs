use proptest::prelude::*;

use super::*;
use code_commit_engine::Agents;
use world::{Says, World};

mod limits;
pub(crate) mod world;

const ID: &str = "0190a0a0-0000-7000-8000-000000000000";

const PLANNED: Says = ("ok", &["PLAN_COMPLETE"]);
const DONE_ALL: Says = ("ok", &["DONE all"]);
const APPROVED: Says = ("ok", &["APPROVED"]);

fn inputs() -> Inputs {
    Inputs::new(ID, "X")
}

/// With a check command.
fn checked() -> Inputs {
    Inputs {
        check: Some("npm test".into()),
        ..inputs()
    }
}

/// Runs these turns in order; returns the outcome and the final world, which must be the end of the
/// run.
fn done(inputs: &Inputs, turns: &[Says]) -> (Outcome, World) {
    let (outcome, world) = World::new(turns).run(inputs);
    assert_eq!(world.turns.len(), 0, "{:#?}", world.steps);
    (outcome.unwrap(), world)
}

/// Likewise; returns everything that was done, except to files, and the outcome.
fn play(inputs: &Inputs, turns: &[Says]) -> String {
    let (outcome, mut world) = done(inputs, turns);
    let verbs = ["read ", "write ", "delete "];
    let is_of_a_file = |line: &String| verbs.iter().any(|verb| line.starts_with(verb));
    world.steps.retain(|line| !is_of_a_file(line));
    world.steps.push(match &outcome {
        Outcome::ModelUnavailable { cause, .. } => format!("= {}: {}", cause.code, cause.message),
        Outcome::Done { .. }
        | Outcome::AttemptsUsedUp { .. }
        | Outcome::Unfit { .. }
        | Outcome::NeedsPerson { .. } => format!("= {}", outcome.code()),
    });
    world.steps.join("\n")
}

#[test]
fn setup_runs_after_planning_and_check_before_everything_else() {
    let inputs = Inputs {
        setup: Some("npm ci".into()),
        commit: Some(CommitScope::Run),
        max_iterations: 2,
        ..checked()
    };
    let turns = [
        PLANNED,
        ("ok", &["PROGRESS one"]),
        DONE_ALL,
        ("ok", &["REQUEST_CHANGES no"]),
        PLANNED,
        DONE_ALL,
        APPROVED,
    ];
    insta::assert_snapshot!(play(&inputs, &turns), @"
    survey
    (IterationStart)
    (PlanningStart)
    planning
    setup: npm ci
    check: npm test
    (ImplementingStart)
    implementing
    checkpoint without mine.txt: one
    check: npm test
    (ImplementingStart)
    implementing
    checkpoint without mine.txt: all
    check: npm test
    (ReviewingStart)
    reviewing
    (IterationStart)
    (PlanningStart)
    planning
    setup: npm ci
    check: npm test
    (ImplementingStart)
    implementing
    checkpoint without mine.txt: all
    check: npm test
    (ReviewingStart)
    reviewing
    (LoopApproved)
    = done
    ");
}

#[test]
fn the_plan_becomes_the_session_file_and_the_files_go_with_the_session() {
    let (outcome, world) = done(&checked(), &[PLANNED, DONE_ALL, APPROVED]);
    let steps = world.steps.join("\n").replace(ID, "ID");
    insta::assert_snapshot!(steps, @"
    (IterationStart)
    (PlanningStart)
    planning
    read .cuggino/wip/ID.plan.md
    write .cuggino/wip/ID.md
    delete .cuggino/wip/ID.plan.md
    delete .cuggino/wip/ID.review.md
    check: npm test
    write .cuggino/wip/ID.check.txt
    (ImplementingStart)
    implementing
    check: npm test
    write .cuggino/wip/ID.check.txt
    (ReviewingStart)
    reviewing
    delete .cuggino/wip/ID.md
    delete .cuggino/wip/ID.plan.md
    delete .cuggino/wip/ID.review.md
    delete .cuggino/wip/ID.check.txt
    (LoopApproved)
    ");
    assert_eq!(outcome, Outcome::Done { rounds: 1 });
    let wip = |kind: &str| &world.files[&format!(".cuggino/wip/{ID}{kind}")];
    assert_eq!(wip(".md"), "# Plan\n\n# Progress Log\n\n");
    assert_eq!(wip(".check.txt"), "printed");
}

#[test]
fn a_spec_issue_is_kept_for_a_person_and_ends_the_run() {
    // A spec issue stops the agent.
    let issue: Says = ("permission-denied", &["SPEC_ISSUE A or B?"]);
    let (outcome, world) = done(&inputs(), &[PLANNED, issue]);
    let steps = world.steps.join("\n").replace(ID, "ID");
    let (_, end) = steps.rsplit_once("(ImplementingStart)\n").unwrap();
    insta::assert_snapshot!(end, @"
    implementing
    write .cuggino/spec-issues/ID.md
    delete .cuggino/wip/ID.md
    delete .cuggino/wip/ID.plan.md
    delete .cuggino/wip/ID.review.md
    delete .cuggino/wip/ID.check.txt
    (LoopSpecIssue)
    ");
    let kept = &world.files[&format!(".cuggino/spec-issues/{ID}.md")];
    assert_eq!(kept, "A or B?\n");
    let Outcome::NeedsPerson { round: 1, cause } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(cause.code, "spec-issue");
    assert_eq!(cause.message, "A or B?");
}

#[test]
fn an_iteration_ends_at_its_limit_of_turns() {
    let task: Says = ("ok", &["PROGRESS x"]);
    let told = play(&inputs(), &[&[PLANNED][..], &[task; 100]].concat());
    assert_eq!(told.matches("\nimplementing").count(), 100, "{told}");
    let end = "= limit-turns: the agent has implemented for 100 turns and is not done";
    assert_eq!(told.lines().last(), Some(end));
    let two = Inputs {
        max_turns: 2,
        ..inputs()
    };
    let (outcome, _) = done(&two, &[PLANNED, task, DONE_ALL, APPROVED]);
    assert_eq!(outcome, Outcome::Done { rounds: 1 }, "the last turn counts");
}

#[test]
fn a_quota_is_waited_for_or_ends_the_run() {
    let turns = [PLANNED, ("daily-quota", &[]), DONE_ALL, APPROVED];
    insta::assert_snapshot!(play(&inputs(), &turns), @"
    (IterationStart)
    (PlanningStart)
    planning
    (ImplementingStart)
    implementing
    (QuotaWaitStart)
    wait until 99, at least 1 s
    implementing where session-2 was cut off
    (ReviewingStart)
    reviewing
    (LoopApproved)
    = done
    ");
    insta::assert_snapshot!(play(&inputs(), &[PLANNED, ("long-quota", &[])]), @"
    (IterationStart)
    (PlanningStart)
    planning
    (ImplementingStart)
    implementing
    (QuotaWaitStart)
    wait until 1000000, at least 1 s
    = daily-quota: implementing: the agent has used up its quota
    ");
}

#[test]
fn another_agent_works_where_one_cannot_and_a_stronger_one_repairs() {
    let two = Inputs {
        agents: Agents {
            others: 1,
            stronger: 1,
        },
        ..inputs()
    };
    let (used_up, out): (Says, Says) = (("daily-quota", &[]), ("overloaded", &[]));
    let rejected: Says = ("ok", &["REQUEST_CHANGES more"]);
    let turns = [
        used_up, PLANNED, out, DONE_ALL, rejected, PLANNED, DONE_ALL, used_up, out, APPROVED,
    ];
    insta::assert_snapshot!(play(&two, &turns), @"
    (IterationStart)
    (PlanningStart)
    planning
    planning by agent 1
    (ImplementingStart)
    implementing
    implementing by agent 1
    (ReviewingStart)
    reviewing
    (IterationStart)
    (PlanningStart)
    planning
    (ImplementingStart)
    implementing by agent 2
    (ReviewingStart)
    reviewing
    reviewing by agent 1
    (QuotaWaitStart)
    wait until 99, at least 1 s
    reviewing where session-8 was cut off
    (LoopApproved)
    = done
    ");
    insta::assert_snapshot!(play(&two, &[PLANNED, out, out]), @"
    (IterationStart)
    (PlanningStart)
    planning
    (ImplementingStart)
    implementing
    implementing by agent 1
    = overloaded: implementing: the agent found its service overloaded
    ");
}

#[test]
fn a_turn_that_ends_badly_or_without_a_marker_is_not_asked_for_again() {
    insta::assert_snapshot!(play(&inputs(), &[("no-result", &[])]), @"
    (IterationStart)
    (PlanningStart)
    planning
    = no-result: planning: the agent ended without a result
    ");
    insta::assert_snapshot!(play(&inputs(), &[PLANNED, DONE_ALL, ("ok", &[])]), @"
    (IterationStart)
    (PlanningStart)
    planning
    (ImplementingStart)
    implementing
    (ReviewingStart)
    reviewing
    = no-marker: reviewing: the turn ended without a marker that says where the work stands
    ");
}

#[test]
fn an_approval_is_an_approval_whatever_the_reviewer_or_a_person_has_changed() {
    for (how, edits) in [("restored", vec![]), ("ok", vec![(3, "project")])] {
        let world = World {
            edits,
            ..World::new(&[PLANNED, DONE_ALL, (how, &["APPROVED"])])
        };
        let (outcome, world) = world.run(&inputs());
        assert_eq!(outcome, Some(Outcome::Done { rounds: 1 }));
        assert_eq!(world.prompts.len(), 3, "{how}");
    }
}

#[test]
fn a_turn_that_was_cut_off_is_made_again() {
    let cut_off: Says = ("interrupted", &["DONE all"]);
    let (outcome, world) = done(&inputs(), &[PLANNED, cut_off, cut_off, DONE_ALL, APPROVED]);
    let mut steps = world.steps;
    steps.retain(|line| line.starts_with("implementing"));
    insta::assert_snapshot!(steps.join("\n"), @"
    implementing
    implementing where session-2 was cut off
    implementing where session-3 was cut off
    ");
    assert_eq!(world.prompts[1], world.prompts[2]);
    assert_eq!(outcome, Outcome::Done { rounds: 1 });
}

#[test]
fn a_run_that_ended_for_want_of_an_agent_asks_for_the_turn_that_had_no_end() {
    let inputs = checked();
    for end in ["bad-key", "ok"] {
        let (outcome, mut world) = done(&inputs, &[PLANNED, (end, &[])]);
        assert!(matches!(outcome, Outcome::ModelUnavailable { .. }));
        world.journal.truncate(still_holds(&world.journal));
        let (before, turns) = (world.steps.len(), World::new(&[DONE_ALL, APPROVED]).turns);
        let (outcome, world) = World { turns, ..world }.run(&inputs);
        assert_eq!(world.steps[before], "implementing");
        assert_eq!(outcome, Some(Outcome::Done { rounds: 1 }));
    }
}

#[test]
fn a_persons_review_is_what_the_first_plan_answers_and_no_later_one() {
    let review = Some("mine\n\n".to_owned());
    let inputs = Inputs {
        review,
        commit: Some(CommitScope::Run),
        ..inputs()
    };
    let (_, world) = done(&inputs, &[PLANNED, DONE_ALL, APPROVED]);
    let file = format!(".cuggino/wip/{ID}.review.md");
    assert_eq!(world.files[&file], "mine\n");
    assert_eq!(
        world.steps[..2],
        [format!("write {file}"), "survey".to_owned()]
    );
    let has_review = |prompt: &String| prompt.contains("# Review\n");
    let reviews: Vec<bool> = world.prompts.iter().map(has_review).collect();
    assert_eq!(reviews, [true, false, false]);
}

#[test]
fn the_last_review_is_told_where_the_iterations_are_used_up() {
    let turns = [PLANNED, DONE_ALL, ("ok", &["REQUEST_CHANGES no"][..])];
    let once = Inputs {
        max_iterations: 1,
        ..inputs()
    };
    let (outcome, world) = done(&once, &turns);
    // The content of the file takes precedence over that of the marker.
    let told = PhaseEvent::LoopMaxIterations {
        iteration: 1,
        review: "# Plan".to_owned(),
    };
    assert_eq!(
        (world.told.last(), outcome),
        (Some(&told), Outcome::AttemptsUsedUp { rounds: 1 })
    );
}

#[test]
fn specs_that_a_person_edits_between_two_turns_are_said_and_a_task_that_was_to_edit_them_is_not() {
    let is_said = |event: &&PhaseEvent| matches!(event, PhaseEvent::SpecsChanged { .. });
    let specs: Says = ("specs", &["DONE all"]);
    for (edits, task, times) in [
        (vec![(1, "specs")], DONE_ALL, 1),
        (vec![], DONE_ALL, 0),
        (vec![(2, "specs")], specs, 0),
    ] {
        let world = World {
            edits,
            ..World::new(&[PLANNED, task, APPROVED])
        };
        let (outcome, world) = world.run(&inputs());
        assert_eq!(world.told.iter().filter(is_said).count(), times);
        assert_eq!(outcome, Some(Outcome::Done { rounds: 1 }));
    }
}

fn end() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        6 => Just("ok"),
        1 => Just("restored"),
        1 => Just("lost-session"),
        1 => Just("no-result"),
        1 => Just("interrupted"),
        1 => Just("permission-denied"),
        1 => Just("daily-quota"),
        1 => Just("limit-cost"),
    ]
}

fn markers() -> impl Strategy<Value = Vec<&'static str>> {
    let all = vec![
        "NOTE x",
        "SPEC_ISSUE x",
        "PLAN_COMPLETE",
        "PROGRESS x",
        "DONE x",
        "APPROVED",
        "REQUEST_CHANGES x",
    ];
    proptest::collection::vec(proptest::sample::select(all), 0..4)
}

proptest! {
    /// Whatever agents do, iterations are limited, the session files are deleted unless the run can
    /// be resumed, the final event comes last, and a run that was stopped and resumed ends as if it
    /// had not been.
    #[test]
    fn whatever_agents_do_a_run_ends_in_order(
        turns in proptest::collection::vec((end(), markers()), 40),
        stop in any::<prop::sample::Index>(),
    ) {
        let inputs = Inputs { max_iterations: 3, commit: Some(CommitScope::All), ..inputs() };
        let new = World { turns: turns.into(), ..World::default() };
        let (outcome, world) = new.clone().run(&inputs);
        let Some(outcome) = outcome else { return Ok(()) };

        let (last, before_last) = world.told.split_last().unwrap();
        prop_assert!(!before_last.iter().any(PhaseEvent::is_terminal));
        let goes_on = matches!(outcome, Outcome::ModelUnavailable { .. });
        prop_assert_eq!(last.is_terminal(), !goes_on);
        let behind = world.steps.iter().rev().skip(1).take(4);
        let deleted = behind.filter(|line| line.starts_with("delete ")).count();
        prop_assert!(deleted == 4 || goes_on, "files stay only for a run that can be gone on with");
        let iterations = world.steps.iter().filter(|line| *line == "(IterationStart)").count();
        prop_assert!((1..=3).contains(&iterations));

        let stop_after = Some(stop.index(world.journal.len()));
        let (none, stopped) = World { stop_after, ..new }.run(&inputs);
        prop_assert_eq!(none, None);
        let (again, whole) = World { stop_after: None, ..stopped }.run(&inputs);
        prop_assert_eq!(again, Some(outcome));
        prop_assert_eq!((whole.steps, whole.prompts), (world.steps, world.prompts));
    }
}
