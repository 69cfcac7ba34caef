//! Approvals that do not count.

use super::*;

const RESTORED: Says = ("restored", &["APPROVED"]);

/// The steps from the first review on, without those of files.
fn from_review(turns: &[Says]) -> String {
    let inputs = Inputs {
        check: Some("npm test".into()),
        ..inputs()
    };
    let told = play(&inputs, &[&[PLANNED, DONE_ALL], turns].concat());
    told.split_once("(ReviewingStart)\n").unwrap().1.to_owned()
}

#[test]
fn after_an_approval_with_changes_that_were_restored_check_and_review_come_again() {
    insta::assert_snapshot!(from_review(&[RESTORED, APPROVED]), @"
    reviewing
    (RetryStart)
    check: npm test
    reviewing
    (LoopApproved)
    = done
    ");
    let (_, world) = done(&inputs(), &[PLANNED, DONE_ALL, RESTORED, APPROVED]);
    assert!(
        world.prompts[3].contains("They were put back:\n\n- src.txt\n"),
        "{}",
        world.prompts[3]
    );
    let again = world
        .steps
        .iter()
        .skip_while(|step| *step != "(RetryStart)")
        .nth(1);
    let review = format!("delete .cuggino/wip/{ID}.review.md");
    assert_eq!(
        again,
        Some(&review),
        "what the first reviewer wrote does not count either"
    );
}

#[test]
fn a_second_approval_that_does_not_count_ends_the_run_which_can_be_resumed() {
    insta::assert_snapshot!(from_review(&[RESTORED, RESTORED]), @"
    reviewing
    (RetryStart)
    check: npm test
    reviewing
    = void-approval: reviewing: the approval does not count, because files that the reviewing agent may not change had to be restored
    ");
}

#[test]
fn a_session_that_goes_on_after_its_changes_were_restored_approves_nothing() {
    insta::assert_snapshot!(from_review(&[("restored", &[]), APPROVED, APPROVED]), @"
    reviewing
    (RetryStart)
    reviewing goes on with session-3
    (RetryStart)
    check: npm test
    reviewing
    (LoopApproved)
    = done
    ");
}

#[test]
fn a_review_that_requests_changes_counts_whatever_was_restored() {
    let turns = [
        ("restored", &["REQUEST_CHANGES no"][..]),
        PLANNED,
        DONE_ALL,
        APPROVED,
    ];
    assert!(!from_review(&turns).contains("RetryStart"));
}

/// Runs these turns while a person changes each place after the given number of turns.
fn edited(edits: &[(usize, &'static str)], turns: &[Says]) -> (String, World) {
    let world = World {
        edits: edits.to_vec(),
        ..World::new(&[&[PLANNED, DONE_ALL], turns].concat())
    };
    let (_, world) = world.run(&Inputs {
        check: Some("npm test".into()),
        ..inputs()
    });
    let steps: Vec<&str> = world
        .steps
        .iter()
        .map(String::as_str)
        .filter(|step| !step.contains("wip"))
        .collect();
    (
        steps
            .join("\n")
            .split_once("(ReviewingStart)\n")
            .unwrap()
            .1
            .to_owned(),
        world,
    )
}

#[test]
fn an_approval_of_what_somebody_has_changed_meanwhile_is_void() {
    for place in ["specs", "project"] {
        let (steps, _) = edited(&[(3, place)], &[APPROVED, APPROVED]);
        let said = if place == "specs" {
            "(SpecsChanged)\n"
        } else {
            ""
        };
        let expected =
            format!("reviewing\n(RetryStart)\ncheck: npm test\n{said}reviewing\n(LoopApproved)");
        assert_eq!(steps, expected, "{place}");
    }
    let (_, world) = edited(&[(3, "project"), (4, "project")], &[APPROVED, APPROVED]);
    assert_eq!(
        world.told.last().unwrap().to_json()["event"],
        "RetryStart",
        "the second one ends the run"
    );
}

#[test]
fn specs_that_a_person_edits_between_two_turns_are_said_and_a_task_that_was_to_edit_them_is_not() {
    let said = |world: &World| {
        world
            .told
            .iter()
            .filter(|event| matches!(event, PhaseEvent::SpecsChanged { .. }))
            .count()
    };
    let (steps, world) = edited(&[(1, "specs")], &[APPROVED]);
    assert_eq!(
        (said(&world), steps.as_str()),
        (1, "reviewing\n(LoopApproved)")
    );
    let (_, world) = edited(&[], &[APPROVED]);
    assert_eq!(said(&world), 0);
    let world = World {
        edits: vec![(2, "specs")],
        ..World::new(&[PLANNED, ("specs", &["DONE all"]), APPROVED])
    };
    let (outcome, world) = world.run(&inputs());
    assert_eq!(
        (said(&world), outcome),
        (0, Some(Outcome::Done { rounds: 1 }))
    );
}
