//! SIGKILL before every step of the transaction, and again before every step of the recovery from each of those.

use crate::child::{command, was_killed};
use crate::scene::{Scene, Tally, scratch};

#[test]
fn killed_before_any_step_the_tree_is_old_or_new_after_recovery() {
    let mut tally = Tally::default();
    for step in 0.. {
        let scratch = scratch();
        let scene = Scene::create(scratch.path());
        let status = command(scratch.path(), "apply", Some(step)).status().unwrap();
        if !was_killed(status) {
            assert!(status.success(), "the set was not applied");
            assert_eq!(scene.now(), scene.new);
            break;
        }
        tally.kills += 1;
        tally.recover_and_check(&scene, &format!("killed before step {step}"));
    }
    tally.report("killed in apply");
    assert!(tally.kills > 30 && tally.mixed_before_recovery > 0 && tally.old > 0 && tally.new > 0);
}

#[test]
fn killed_again_inside_the_recovery_the_tree_is_old_or_new_after_the_next() {
    let mut tally = Tally::default();
    let last = kills_in_apply();
    for first in 0..last {
        for second in 0.. {
            let scratch = scratch();
            let scene = Scene::create(scratch.path());
            assert!(was_killed(command(scratch.path(), "apply", Some(first)).status().unwrap()));
            let status = command(scratch.path(), "recover", Some(second)).status().unwrap();
            if !was_killed(status) {
                assert!(status.success(), "killed before step {first}: not recovered");
                break;
            }
            tally.kills += 1;
            tally.recover_and_check(&scene, &format!("killed before step {first}, then before {second}"));
        }
    }
    tally.report("killed in apply, then in recovery");
    assert!(tally.kills > 100 && tally.old > 0 && tally.new > 0);
}

#[test]
fn killed_before_any_step_of_an_undo_the_tree_is_that_before_or_after_it() {
    let (mut undone, mut still_there) = (0, 0);
    for step in 0.. {
        let scratch = scratch();
        let scene = Scene::create(scratch.path());
        apply::apply(&scene.lock(), &scene.root, scene.set(), &scene.undo).unwrap();
        let status = command(scratch.path(), "undo", Some(step)).status().unwrap();
        if !was_killed(status) {
            assert!(status.success(), "nothing was undone");
            assert_eq!(scene.now(), scene.old);
            break;
        }
        let lock = scene.lock();
        apply::recover(&lock, &scene.root).unwrap();
        if scene.now() == scene.old {
            undone += 1;
        } else {
            assert_eq!(scene.now(), scene.new, "killed before step {step}: neither tree");
            still_there += 1;
        }
        apply::undo(&lock, &scene.root, std::slice::from_ref(&scene.undo), apply::Force::No).unwrap();
        assert_eq!(scene.now(), scene.old, "killed before step {step}: undone again");
    }
    eprintln!(
        "killed in undo: {} kills, {still_there} not undone, {undone} undone, 0 mixed",
        undone + still_there
    );
    assert!(still_there > 20 && undone > 2);
}

/// How many steps a whole transaction has.
fn kills_in_apply() -> usize {
    let scratch = scratch();
    let scene = Scene::create(scratch.path());
    let mut steps = 0;
    apply::seam::apply(&scene.lock(), &scene.root, scene.set(), &scene.undo, &mut |_| steps += 1).unwrap();
    steps
}
