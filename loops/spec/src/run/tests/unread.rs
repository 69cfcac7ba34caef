//! Approvals by specs that nobody has opened.

use super::*;

const UNREAD: Says = ("unread", &["APPROVED"]);

fn from_review(turns: &[Says]) -> String {
    let told = play(&inputs(), &[&[PLANNED, DONE_ALL], turns].concat());
    told.split_once("(ReviewingStart)\n").unwrap().1.to_owned()
}

#[test]
fn an_approval_without_a_look_at_the_specs_is_asked_for_once_more_in_the_same_session() {
    insta::assert_snapshot!(from_review(&[UNREAD, APPROVED]), @"
    reviewing
    (RetryStart)
    reviewing goes on with session-3
    (LoopApproved)
    = done
    ");
    let (_, world) = done(&inputs(), &[PLANNED, DONE_ALL, UNREAD, APPROVED]);
    assert!(
        world.prompts[3].contains("no spec in `.specs` was opened"),
        "{}",
        world.prompts[3]
    );
}

#[test]
fn a_second_one_ends_the_run_which_can_be_resumed() {
    insta::assert_snapshot!(from_review(&[UNREAD, UNREAD]), @"
    reviewing
    (RetryStart)
    reviewing goes on with session-3
    = unopened: reviewing: the approval does not count, because no spec in `.specs` was opened
    ");
}

#[test]
fn what_the_session_has_opened_before_counts_and_what_another_one_has_does_not() {
    let silent = ("ok", &[][..]);
    insta::assert_snapshot!(from_review(&[silent, UNREAD]), @"
    reviewing
    (RetryStart)
    reviewing goes on with session-3
    (LoopApproved)
    = done
    ");
    insta::assert_snapshot!(from_review(&[("lost-session", &[]), UNREAD, APPROVED]), @"
    reviewing
    (RetryStart)
    reviewing
    (RetryStart)
    reviewing goes on with session-4
    (LoopApproved)
    = done
    ");
}

#[test]
fn specs_that_were_not_opened_are_named_by_an_approval_and_by_nothing_else() {
    insta::assert_snapshot!(from_review(&[("half-read", &["APPROVED"])]), @"
    reviewing
    doubt: unopened: the reviewing agent did not open .specs/b.md
    (LoopApproved)
    = done
    ");
    let turns = [
        ("unread", &["REQUEST_CHANGES no"][..]),
        PLANNED,
        DONE_ALL,
        APPROVED,
    ];
    assert!(!from_review(&turns).contains("doubt"));
}
