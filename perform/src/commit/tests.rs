use std::collections::BTreeMap;

use code_commit_engine::Reply;
use code_commit_llm::Scripted;
use code_commit_logging::{Redactor, RunFolder};
use code_commit_runner::{Confinement, Env, Limits};

use super::*;
use crate::Silent;
use crate::intake::tests::rules;

/// The stored messages of these replies, in sequence; the number is the round of each.
fn kept(replies: &[(u32, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let said_log = folder.path().join("said.txt");
    let run = RunFolder::create(folder.path(), "run", Redactor::default()).unwrap();
    let mut world = CommitWorld {
        record: Record::begin(run, Silent).unwrap(),
        rules: rules(folder.path()),
        model: std::rc::Rc::new(Scripted::new(Vec::new())),
        asking: Asking::default(),
        build: BuildCommand {
            argv: Vec::new(),
            env: Env::default(),
            timeout: None,
            limits: Limits::default(),
            confinement: Confinement::off(),
            sealed: Vec::new(),
        },
        account: ChangeEngine::default(),
        codebase: "".into(),
        layout: Layout::NumberFirst,
        said_log: Some(said_log.clone()),
        commits: None,
        holds_for: Box::new(|_, _| code_commit_engine::HoldsFor::default()),
        cancel: Cancel::new().unwrap(),
    };
    for (round, reply) in replies {
        world
            .perform(&Apply {
                round: *round,
                reply: Reply::of_text(reply),
                seen: BTreeMap::new(),
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
