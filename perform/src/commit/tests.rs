use std::collections::BTreeMap;

use code_commit_engine::Reply;
use code_commit_llm::Scripted;
use code_commit_logging::{Redactor, RunFolder};

use super::*;
use crate::Silent;
use crate::intake::tests::rules;

/// The stored messages of these replies, in sequence; the number is the round of each.
fn kept(replies: &[(u32, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let said_log = folder.path().join("said.txt");
    let run = RunFolder::create(folder.path(), "run", Redactor::default()).unwrap();
    let record = Record::begin(run, Silent).unwrap();
    let nobody = std::rc::Rc::new(Scripted::new(Vec::new()));
    let mut world = CommitWorld {
        said_log: Some(said_log.clone()),
        ..CommitWorld::new(record, rules(folder.path()), nobody, Cancel::new().unwrap())
    };
    for (round, reply) in replies {
        world
            .perform(&Apply {
                round: *round,
                reply: Reply::of_text(reply),
                seen: BTreeMap::new(),
                need_bytes: 0,
            })
            .unwrap();
    }
    std::fs::read_to_string(said_log).unwrap()
}

const APPLIED: &str = "&&&start\none\n&&&end\n&&&start\ntwo\n&&&end\n^^^a.txt\na\n^^^end\n";
const REJECTED: &str = "&&&start\none\n&&&end\n^^^../a.txt\na\n^^^end\n";

#[test]
fn the_words_of_a_reply_that_is_taken_in_again_are_not_kept_twice() {
    assert_eq!(kept(&[(1, APPLIED), (1, APPLIED)]), "one\ntwo\n");
    assert_eq!(kept(&[(1, REJECTED), (1, REJECTED)]), "one\n");
}

#[test]
fn what_a_later_reply_says_again_is_kept_again() {
    assert_eq!(
        kept(&[(1, REJECTED), (2, REJECTED), (3, APPLIED)]),
        "one\none\none\ntwo\n"
    );
}
