//! SIGKILL before every step of the transaction, and then before every step of each recovery.

use crate::child::{kill, run, was_killed};
use crate::scene::{Scene, Tally};

#[test]
fn the_phases_of_a_transaction_and_of_its_undo_come_in_this_order() {
    let (_scratch, scene) = Scene::create();
    let applied = phases(|steps| drop(scene.apply(steps).unwrap()));
    insta::assert_snapshot!(applied, @"
    stage (6)
    keep (5)
    note the places
    write the journal
    wait for the disk
    publish the journal
    change a file (4)
    make a folder (2)
    change a file (4)
    commit
    wait for the changes
    remove an emptied folder (2)
    tidy the transaction folder
    hand the pre-images over
    ");
    let undone = phases(|steps| drop(scene.undone(steps).unwrap()));
    insta::assert_snapshot!(undone, @"
    stage (5)
    keep (6)
    note the places
    write the journal
    wait for the disk
    publish the journal
    change a file (5)
    make a folder
    change a file (3)
    commit
    wait for the changes
    remove an emptied folder (2)
    tidy the transaction folder
    hand the pre-images over
    ");
}

#[test]
fn what_recovery_does_depends_on_the_last_phase_before_the_kill() {
    let mut told: Vec<(Vec<&str>, String)> = Vec::new();
    for (step, name) in steps_of_apply().into_iter().enumerate() {
        let (scratch, scene) = Scene::create();
        kill(&scratch, step);
        let recovered = phases(|steps| {
            code_commit_apply::seam::recover(&scene.lock(), &scene.root, steps).unwrap();
        });
        // The number of repetitions of a step depends on how many files existed by then.
        let recovered = recovered
            .lines()
            .map(|line| format!("    {}\n", line.split(" (").next().unwrap()));
        let recovered = recovered.collect::<String>();
        match told.last_mut() {
            Some((names, same)) if *same == recovered => names.push(name),
            _ => told.push((vec![name], recovered)),
        }
    }
    let told = told.into_iter().map(|(mut names, recovered)| {
        names.dedup();
        format!("killed before: {}\n{recovered}", names.join(", "))
    });
    insta::assert_snapshot!(told.collect::<String>(), @"
    killed before: stage
        discard the folder
    killed before: stage, keep, note the places, write the journal
        discard a file
        discard the folder
    killed before: wait for the disk, publish the journal, change a file, make a folder, change a file
        put a file back
        remove a folder
        sync what was restored
        drop the record
        discard a file
        discard the folder
    killed before: commit
        put a file back
        remove a folder
        sync what was restored
        drop the record
        discard the folder
    killed before: wait for the changes, remove an emptied folder, tidy the transaction folder, hand the pre-images over
        remove an emptied folder
        tidy the transaction folder
        hand the pre-images over
    ");
}

#[test]
fn killed_before_any_step_the_tree_is_old_or_new_after_recovery() {
    let mut tally = Tally::default();
    for step in 0.. {
        let (scratch, scene) = Scene::create();
        let status = run(&scratch, "apply", Some(step));
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
    let last = steps_of_apply().len();
    for first in 0..last {
        for second in 0.. {
            let (scratch, scene) = Scene::create();
            kill(&scratch, first);
            let status = run(&scratch, "recover", Some(second));
            if !was_killed(status) {
                assert!(
                    status.success(),
                    "killed before step {first}: not recovered"
                );
                break;
            }
            tally.kills += 1;
            tally.recover_and_check(
                &scene,
                &format!("killed before step {first}, then before {second}"),
            );
        }
    }
    tally.report("killed in apply, then in recovery");
    assert!(tally.kills > 100 && tally.old > 0 && tally.new > 0);
}

#[test]
fn killed_before_any_step_of_an_undo_the_tree_is_that_before_or_after_it() {
    let (mut undone, mut still_there) = (0, 0);
    for step in 0.. {
        let (scratch, scene) = Scene::create();
        scene.apply(&mut |_| ()).unwrap();
        let status = run(&scratch, "undo", Some(step));
        if !was_killed(status) {
            assert!(status.success(), "nothing was undone");
            assert_eq!(scene.now(), scene.old);
            break;
        }
        code_commit_apply::recover(&scene.lock(), &scene.root).unwrap();
        if scene.now() == scene.old {
            undone += 1;
        } else {
            assert_eq!(
                scene.now(),
                scene.new,
                "killed before step {step}: neither tree"
            );
            still_there += 1;
        }
        scene.undone(&mut |_| ()).unwrap();
        assert_eq!(
            scene.now(),
            scene.old,
            "killed before step {step}: undone again"
        );
    }
    eprintln!(
        "killed in undo: {} kills, {still_there} not undone, {undone} undone, 0 mixed",
        undone + still_there
    );
    assert!(still_there > 20 && undone > 2);
}

/// The steps of a whole transaction.
pub(crate) fn steps_of_apply() -> Vec<&'static str> {
    let (_scratch, scene) = Scene::create();
    let mut steps = Vec::new();
    scene.apply(&mut |step| steps.push(step)).unwrap();
    steps
}

/// The steps of `work`, with consecutive steps of the same name as one line.
fn phases(work: impl FnOnce(&mut dyn FnMut(&'static str))) -> String {
    let mut steps = Vec::new();
    work(&mut |step| steps.push(step));
    let runs = steps.chunk_by(|one, other| one == other);
    let lines = runs.map(|run| match run {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, ..] => format!("{one} ({})", run.len()),
    });
    lines.collect::<Vec<_>>().join("\n")
}
