//! Approvals that do not count.

use super::*;

const RESTORED: Says = ("restored", &["APPROVED"]);

/// The steps from the first review on, without those of files.
fn from_review(turns: &[Says]) -> String {
    let inputs = Inputs { check: Some("npm test".into()), ..inputs() };
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
    assert!(world.prompts[3].contains("They were put back:\n\n- src.txt\n"), "{}", world.prompts[3]);
    let again = world.steps.iter().skip_while(|step| *step != "(RetryStart)").nth(1);
    let review = format!("delete .cuggino/wip/{ID}.review.md");
    assert_eq!(again, Some(&review), "what the first reviewer wrote does not count either");
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
    let turns = [("restored", &["REQUEST_CHANGES no"][..]), PLANNED, DONE_ALL, APPROVED];
    assert!(!from_review(&turns).contains("RetryStart"));
}
