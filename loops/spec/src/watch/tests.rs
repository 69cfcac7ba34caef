//! The clock is a number.

use proptest::prelude::*;

use super::*;

const SETTLE: u64 = SETTLE_MS;

fn item(name: &str, sha256: &str) -> Item {
    Item {
        name: name.to_owned(),
        sha256: sha256.to_owned(),
    }
}

fn backlog(names: &[&str]) -> Listing {
    Listing {
        issues: Vec::new(),
        backlog: names.iter().map(|name| item(name, name)).collect(),
    }
}

fn issues(names: &[&str]) -> Listing {
    Listing {
        issues: names.iter().map(|name| (*name).to_owned()).collect(),
        ..backlog(&["a"])
    }
}

fn wait(until_ms: u64) -> Act {
    Act::Wait {
        until_ms: Some(until_ms),
    }
}

const IDLE: Act = Act::Wait { until_ms: None };

fn watch() -> Watch {
    Watch::new(SETTLE, Auditing::Off)
}

#[test]
fn what_lies_there_at_the_start_is_worked_on_at_once_in_the_order_of_names() {
    let (events, act) = watch().look(0, &backlog(&["a", "b"]));
    assert_eq!(act, Act::Work(item("a", "a")));
    assert_eq!(
        events,
        [WatchEvent::ProcessingItem {
            filename: "a".into()
        }]
    );
}

#[test]
fn files_that_appear_in_bursts_wait_for_thirty_quiet_seconds() {
    assert_eq!(SETTLE, 30_000);
    let mut watch = watch();
    assert_eq!(
        watch.look(0, &backlog(&[])),
        (vec![WatchEvent::BacklogEmpty], IDLE)
    );
    assert_eq!(
        watch.look(1_000, &backlog(&["b"])),
        (vec![WatchEvent::ChangeDetected], wait(31_000))
    );
    assert_eq!(
        watch.look(20_000, &backlog(&["a", "b"])),
        (vec![], wait(50_000))
    );
    assert_eq!(
        watch.look(49_999, &backlog(&["a", "b"])),
        (vec![], wait(50_000))
    );
    let (events, act) = watch.look(50_000, &backlog(&["a", "b"]));
    assert_eq!(act, Act::Work(item("a", "a")));
    assert_eq!(
        events,
        [
            WatchEvent::DebounceComplete,
            WatchEvent::ProcessingItem {
                filename: "a".into()
            }
        ]
    );
}

#[test]
fn a_state_is_told_once() {
    let mut watch = watch();
    assert_eq!(watch.look(0, &backlog(&[])).0, [WatchEvent::BacklogEmpty]);
    assert_eq!(watch.look(5, &backlog(&[])), (vec![], IDLE));
}

#[test]
fn a_spec_issue_stops_everything_until_the_folder_is_empty() {
    let mut watch = watch();
    let waiting = WatchEvent::SpecIssueWaiting {
        filenames: vec!["x.md".into()],
    };
    assert_eq!(watch.look(0, &issues(&["x.md"])), (vec![waiting], IDLE));
    assert_eq!(watch.look(10, &issues(&["x.md"])), (vec![], IDLE));
    assert_eq!(
        watch.look(20, &backlog(&["a"])),
        (vec![WatchEvent::ChangeDetected], wait(30_020))
    );
    assert_eq!(
        watch.look(30_020, &backlog(&["a"])).1,
        Act::Work(item("a", "a"))
    );
}

#[test]
fn a_file_is_deleted_only_as_it_was_when_work_began() {
    let a = item("a", "1");
    for end in [End::Approved, End::UsedUp] {
        assert_eq!(watch().worked(0, &a, end, Some("1")).1, Fate::Delete);
        let (event, fate) = watch().worked(0, &a, end, Some("2"));
        assert_eq!(
            (fate, matches!(event, WatchEvent::ItemRetained { .. })),
            (Fate::Keep, true)
        );
        let (event, fate) = watch().worked(0, &a, end, None);
        assert_eq!(
            (fate, event),
            (
                Fate::Keep,
                WatchEvent::ItemCompleted {
                    filename: "a".into()
                }
            )
        );
    }
    for end in [End::SpecIssue, End::Stale] {
        let (event, fate) = watch().worked(0, &a, end, Some("1"));
        assert_eq!(
            (fate, matches!(event, WatchEvent::ItemRetained { .. })),
            (Fate::Keep, true)
        );
    }
}

#[test]
fn the_next_file_follows_at_once_unless_something_changed_meanwhile() {
    let mut watch = watch();
    watch.look(0, &backlog(&["a", "b"]));
    watch.worked(500, &item("a", "a"), End::Approved, Some("a"));
    assert_eq!(
        watch.look(500, &backlog(&["b"])).1,
        Act::Work(item("b", "b"))
    );
    watch.worked(900, &item("b", "b"), End::Approved, Some("b"));
    assert_eq!(
        watch.look(900, &backlog(&["c"])),
        (vec![WatchEvent::ChangeDetected], wait(30_900))
    );
}

#[test]
fn an_agent_that_cannot_be_used_is_tried_again_after_a_growing_pause() {
    let mut watch = watch();
    let (a, listing) = (item("a", "a"), backlog(&["a"]));
    let mut now = 0;
    for pause in [60_000, 240_000, 960_000, 3_600_000, 3_600_000] {
        assert_eq!(watch.look(now, &listing).1, Act::Work(a.clone()));
        watch.worked(now, &a, End::Unusable, Some("a"));
        assert_eq!(watch.look(now, &listing).1, wait(now + pause));
        now += pause;
    }
}

#[test]
fn a_file_that_fails_for_the_third_time_is_parked_and_the_next_one_follows_at_once() {
    let (mut watch, both) = (watch(), backlog(&["a", "b"]));
    let a = item("a", "a");
    for (times, listing) in [(1, &both), (2, &both), (3, &backlog(&["b"]))] {
        watch.look(0, &both);
        let (event, fate) = watch.worked(0, &a, End::Failed { times }, Some("a"));
        assert!(
            matches!(event, WatchEvent::ItemRetained { .. }) && fate == Fate::Keep,
            "{event:?}"
        );
        assert_eq!(
            watch.look(1, listing),
            (vec![processing("b")], Act::Work(item("b", "b"))),
            "{times}"
        );
    }
}

fn processing(name: &str) -> WatchEvent {
    WatchEvent::ProcessingItem {
        filename: name.to_owned(),
    }
}

#[test]
fn a_file_that_fails_waits_aside_for_a_growing_time_while_others_are_worked_on() {
    let (mut watch, both) = (watch(), backlog(&["a", "b"]));
    watch.look(0, &both);
    watch.worked(0, &item("a", "a"), End::Failed { times: 1 }, Some("a"));
    assert_eq!(watch.look(0, &both).1, Act::Work(item("b", "b")));
    watch.worked(10, &item("b", "b"), End::Failed { times: 2 }, Some("b"));
    assert_eq!(
        watch.look(10, &both).1,
        wait(60_000),
        "of those that wait, the first"
    );
    assert_eq!(watch.look(60_000, &both).1, Act::Work(item("a", "a")));
    watch.worked(60_000, &item("a", "a"), End::Approved, Some("a"));
    assert_eq!(watch.look(60_000, &backlog(&["b"])).1, wait(240_010));
}

#[test]
fn a_verdict_about_another_tree_deletes_nothing_and_is_not_sought_for_ever() {
    let mut watch = watch();
    let (a, listing) = (item("a", "a"), backlog(&["a"]));
    watch.look(0, &listing);
    let (event, fate) = watch.worked(0, &a, End::OtherTree { times: 1 }, Some("a"));
    assert_eq!(fate, Fate::Keep);
    assert!(
        matches!(event, WatchEvent::ItemRetained { reason, .. } if reason.contains("files of the project"))
    );
    assert_eq!(
        watch.look(0, &listing).1,
        wait(60_000),
        "each try is paid for"
    );
    watch.worked(0, &a, End::OtherTree { times: 3 }, Some("a"));
    assert_eq!(
        watch.look(0, &backlog(&[])).1,
        IDLE,
        "it is parked, and that is no change to wait for"
    );
}

#[test]
fn an_audit_is_made_once_after_each_change_and_only_in_idle_time() {
    let mut watch = Watch::new(SETTLE, Auditing::On);
    let (events, act) = watch.look(0, &backlog(&[]));
    assert_eq!(
        (events.last(), act),
        (Some(&WatchEvent::AuditStarted), Act::Audit)
    );
    assert_eq!(watch.look(1, &backlog(&[])), (vec![], IDLE));
    assert!(backlog(&["a"]).is_work() && issues(&["x"]).is_work() && !backlog(&[]).is_work());
    watch.look(2, &backlog(&["a"]));
    let Act::Work(a) = watch.look(SETTLE + 2, &backlog(&["a"])).1 else {
        panic!("there is work")
    };
    watch.worked(SETTLE + 3, &a, End::Approved, Some("a"));
    assert_eq!(watch.look(SETTLE + 3, &backlog(&[])).1, Act::Audit);
}

proptest! {
    /// Whatever changes, and when: work on a file begins only if there is no spec issue, and 30
    /// seconds after the last change.
    #[test]
    fn nothing_is_begun_too_early(changes in proptest::collection::vec((0_u64..40_000, 0_usize..3, 0_usize..2), 1..40)) {
        let mut watch = watch();
        let names = ["a", "b", "c"];
        let (mut now, mut last_change, mut before) = (0, None, None);
        for (step, files, issue) in changes {
            now += step;
            let mut listing = backlog(&names[..files]);
            listing.issues = vec!["x".to_owned(); issue];
            if before.as_ref().is_some_and(|before| *before != listing) {
                last_change = Some(now);
            }
            before = Some(listing.clone());
            if let Act::Work(item) = watch.look(now, &listing).1 {
                prop_assert!(listing.issues.is_empty());
                prop_assert_eq!(Some(&item), listing.backlog.first());
                prop_assert!(last_change.is_none_or(|change| now - change >= SETTLE));
            }
        }
    }
}
