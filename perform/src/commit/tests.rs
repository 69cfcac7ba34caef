use std::collections::BTreeMap;

use code_commit_engine::Reply;
use code_commit_llm::Scripted;
use code_commit_logging::{Redactor, RunFolder};

use super::*;
use crate::Silent;
use crate::intake::tests::rules;

fn world(top: &Path) -> CommitWorld<'static> {
    let run = RunFolder::create(top, "run", Redactor::default()).unwrap();
    let record = Record::begin(run, Silent).unwrap();
    let nobody = Rc::new(Scripted::new(Vec::new()));
    CommitWorld::new(record, rules(top), nobody, Cancel::new().unwrap())
}

fn apply(round: u32, reply: &str) -> Apply {
    Apply {
        round,
        reply: Reply::of_text(reply),
        seen: BTreeMap::new(),
        need_bytes: 0,
    }
}

/// The stored messages of these replies, in sequence; the number is the round of each.
fn kept(replies: &[(u32, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let said_log = folder.path().join("said.txt");
    let mut world = world(folder.path());
    world.said_log = Some(said_log.clone());
    for (round, reply) in replies {
        world.perform(&apply(*round, reply)).unwrap();
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

#[test]
fn a_file_that_somebody_changed_since_the_model_was_asked_is_written_over_with_a_warning() {
    for (changed_at, is_told) in [(999, false), (1000, false), (1001, true)] {
        let top = tempfile::tempdir().unwrap();
        let mut world = world(top.path());
        let prompt = world.record.folder().path().join(world.layout.query(1));
        for (path, at) in [(prompt, 1000), (top.path().join("tree/a.txt"), changed_at)] {
            let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(at);
            let file = std::fs::File::create(path).unwrap();
            file.set_modified(at).unwrap();
        }
        let answer = format!("{:?}", world.perform(&apply(1, APPLIED)).unwrap());
        let told = "`a.txt` had been changed since the model was asked";
        assert_eq!(answer.contains(told), is_told, "{answer}");
    }
}

#[test]
fn what_a_build_changed_is_settled_before_a_reply_is_applied_even_if_that_fails() {
    let top = tempfile::tempdir().unwrap();
    let mut world = world(top.path());
    let run = world.record.folder().path().to_owned();
    let (guard, undo) = (Rc::clone(&world.rules.guard), run.join(BACKUP));
    world.account.open(&guard, &run).unwrap();
    std::fs::File::create(top.path().join("tree/made")).unwrap();
    let set = undo.join("1-build");
    world.account.close(&guard, &run, &set).unwrap();
    std::fs::File::create(undo.join("2")).unwrap();
    assert!(!code_commit_changes::is_settled(&run).unwrap());
    world.perform(&apply(2, APPLIED)).unwrap_err();
    assert!(code_commit_changes::is_settled(&run).unwrap());
}
