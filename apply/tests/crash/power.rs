//! A power cut after the tree was changed, before the disk was waited for: it may have lost any of the renames and
//! removals, and kept any other.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::child::kill;
use crate::scene::{Scene, Tally};
use crate::steps::steps_of_apply;

/// The names that the record may have on the disk, from the newest.
const RECORDS: [&str; 3] = ["manifest.json", "journal", "journal.tmp"];

#[test]
fn whatever_a_power_cut_has_lost_of_the_changes_the_tree_is_old_or_new_after_recovery() {
    let last = step_of_apply("wait for the changes");
    let (mut tally, mut changes) = (Tally::default(), 8);
    // Each change alone, all but each, every second, none and all.
    let lost = |case: u32, change: u32| match case {
        0..8 => change == case,
        8..16 => change != case - 8,
        16 | 17 => change % 2 == case % 2,
        _ => case == 18,
    };
    for record in RECORDS {
        for case in 0..20 {
            let (scratch, scene) = Scene::create();
            kill(&scratch, last);
            changes = cut(&scene, record, |change| lost(case, change));
            tally.kills += 1;
            tally.recover_and_check(&scene, &format!("{record}, case {case}"));
        }
    }
    tally.report("power cuts");
    assert_eq!((changes, tally.old, tally.new), (8, 59, 1));
}

#[test]
fn a_journal_of_which_a_power_cut_left_a_part_is_of_a_tree_that_was_not_changed() {
    let last = step_of_apply("wait for the disk");
    for length in [0, 1, 200] {
        let (scratch, scene) = Scene::create();
        kill(&scratch, last);
        let journal = scene.state.join("txn/journal.tmp");
        let mut torn = fs::read(&journal).unwrap();
        torn[length..].fill(0);
        fs::write(&journal, torn).unwrap();
        Tally::default().recover_and_check(&scene, &format!("{length} bytes"));
        assert_eq!(scene.now(), scene.old);
    }
}

/// The number of the first step of this name.
fn step_of_apply(name: &str) -> usize {
    let steps = steps_of_apply();
    steps.iter().position(|step| *step == name).unwrap()
}

/// Takes back the changes that are lost, and the newer names of the record; returns how many changes there were.
fn cut(scene: &Scene, record: &str, is_lost: impl Fn(u32) -> bool) -> u32 {
    let txn = scene.state.join("txn");
    let manifest = fs::read(txn.join(RECORDS[0])).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    fs::rename(txn.join(RECORDS[0]), txn.join(record)).unwrap();
    let mut changes = 0;
    for (number, entry) in manifest["entries"].as_array().unwrap().iter().enumerate() {
        let place = scene.root.join(entry["path"].as_str().unwrap());
        if entry["action"] == "none" {
            continue;
        }
        if is_lost(changes) {
            take_back(&place, &txn, number);
        }
        changes += 1;
    }
    changes
}

fn take_back(place: &Path, txn: &Path, number: usize) {
    if place.exists() {
        fs::rename(place, txn.join(format!("{number}.new"))).unwrap();
    }
    let old = txn.join(format!("{number}.old"));
    if old.exists() {
        fs::hard_link(old, place).unwrap();
    }
}
