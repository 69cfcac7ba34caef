//! A power cut at any call that waits for the disk, and what a disk may have lost by then: the same command comes to the same end, and
//! no answer that is on disk is paid for again.
//!
//! `KILL_EVERY=1` tries each of these calls, `POWER_CUTS=3` everything that may be lost at it, instead of one after the other.

use std::fs;
use std::process::Command;

use code_commit_fixtures::project::Project;

use super::supervisor::{Work, asked, commit, order, tree};
use crate::scenes::commit::Scene as Commit;
use crate::scenes::kills::{places, strace_works, traced};
use crate::scenes::power::{CALLS, Disk, Left};
use crate::scenes::program::Ran;
use crate::scenes::size::{chosen, every};

/// The calls with which an undisturbed run waits for the disk.
fn syncs(project: &Project, command: &Command) -> Vec<(String, usize)> {
    let mut places = places(&project.beside().join("strace"), command);
    places.retain(|(call, _)| ["fsync", "fdatasync", "syncfs", "sync"].contains(&call.as_str()));
    places
}

/// Cuts the power at the calls in turn.
fn campaign<W: Work>(scene: impl Fn() -> W) {
    if !strace_works() {
        return;
    }
    let undisturbed = scene();
    let places = syncs(undisturbed.project(), &undisturbed.command());
    let (end, prompts) = (tree(&undisturbed), asked(&undisturbed));
    let mut lefts = [Left::Synced, Left::Names, Left::Journal];
    let cuts = places
        .iter()
        .map(|(call, count)| format!("{call}:signal=KILL:when={count}"));
    for cut in cuts
        .step_by(every())
        .chain(["fsync:when=9999:error=EIO".to_owned()])
    {
        lefts.rotate_left(1);
        for left in lefts.into_iter().take(chosen("POWER_CUTS", 1)) {
            let (work, case) = (scene(), format!("cut at {cut}, left: {left:?}"));
            let (beside, inject) = (work.project().beside(), format!("inject={cut}"));
            let (log, mut disk) = (beside.join("strace"), Disk::of(beside));
            Ran::of(&mut traced(
                &log,
                &work.command(),
                &["-y", "-s", "9999999", "-e", CALLS, "-e", &inject],
            ));
            disk.replay(&fs::read_to_string(&log).unwrap());
            let journal = String::from_utf8(disk.synced("events.jsonl")).unwrap();
            let (paid, before) = (
                journal.matches("\"what\":\"answered\"").count(),
                asked(&work),
            );
            disk.cut(left);
            if paid > 0 {
                let shown = Ran::of(&mut work.program(&["show"]));
                assert_eq!(shown.code, Some(0), "{case}: {shown}");
            }
            let ran = Ran::of(&mut work.command());
            assert_eq!(
                asked(&work)[..paid],
                before[..paid],
                "paid for twice, {case}: {ran}"
            );
            assert_eq!(ran.code, Some(0), "{case}: {ran}");
            assert_eq!(tree(&work), end, "{case}: {ran}");
            let came = asked(&work).into_iter().map(|(body, _)| body);
            assert!(
                came.eq(prompts.iter().map(|(body, _)| body.clone())),
                "{case}: {ran}"
            );
        }
    }
}

#[test]
fn the_default_loop_survives_a_power_cut_at_any_sync() {
    campaign(commit);
}

#[test]
fn an_order_survives_a_power_cut_at_any_sync() {
    campaign(|| order(&["--key", "ticket 7"]));
}

#[test]
fn a_run_of_two_rounds_waits_for_the_disk_at_most_six_times() {
    if strace_works() {
        let note = |text: &str| format!("^^^notes.txt\n{text}\n^^^end\n");
        let scene = Commit::with_replies([&*note("one"), &*note("two")]);
        let places = syncs(
            scene.project(),
            &scene.keyed(&[&scene.flags()[..], &["--rounds", "2"]].concat(), &[]),
        );
        assert_eq!(scene.calls(), 2);
        assert!((1..=6).contains(&places.len()), "{places:?}");
    }
}
