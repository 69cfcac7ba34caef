//! Kills and errors from outside, at system calls instead of our own steps.

use std::fs;
use std::process::Command;

use crate::child::{kill, traced, was_killed};
use crate::scene::{Scene, Tally};

/// The calls that a transaction uses to inspect and change files.
const CALLS: [&str; 12] = [
    "openat",
    "openat2",
    "mkdirat",
    "write",
    "linkat",
    "fsync",
    "renameat2",
    "renameat",
    "unlinkat",
    "fchmod",
    "ftruncate",
    "lseek",
];

#[test]
fn killed_at_any_system_call_the_tree_is_old_or_new_after_recovery() {
    let Some(depth) = depth() else { return };
    let mut tally = Tally::default();
    for call in CALLS {
        for when in occurrences(call, depth) {
            let (scratch, scene) = Scene::create();
            let inject = format!("inject={call}:signal=KILL:when={when}");
            let (status, _) = traced(&scratch, "apply", &inject);
            if !was_killed(status) {
                break;
            }
            tally.kills += 1;
            tally.recover_and_check(&scene, &inject);
        }
    }
    tally.report("killed by strace");
    assert!(tally.kills >= 15);
}

#[test]
fn failed_by_the_system_at_any_call_the_tree_is_old_or_new() {
    let Some(depth) = depth() else { return };
    let mut tally = Tally {
        empty_folder_may_stay: true,
        ..Tally::default()
    };
    let mut failures = 0;
    for call in CALLS {
        // With a `+` every later call fails too, so the old tree can only be restored at the next start.
        for (error, lasting) in [("ENOSPC", ""), ("EIO", ""), ("EPERM", ""), ("EIO", "+")] {
            for when in occurrences(call, depth) {
                let (scratch, scene) = Scene::create();
                let inject = format!("inject={call}:error={error}:when={when}{lasting}");
                let (status, log) = traced(&scratch, "apply", &inject);
                failures += usize::from(!status.success());
                tally.recover_and_check(&scene, &inject);
                if !log.contains("(INJECTED)") {
                    break;
                }
                tally.kills += 1;
            }
        }
    }
    eprintln!(
        "errors injected by strace: {} ({failures} ended in an error), {} old, {} new, 0 mixed",
        tally.kills, tally.old, tally.new
    );
    assert!(tally.kills >= 30 && failures >= 10);
}

#[test]
fn a_disk_that_cannot_rename_without_replacing_is_recovered_too() {
    let Some(_) = depth() else { return };
    for step in 0.. {
        let (scratch, scene) = Scene::create();
        kill(&scratch, step);
        if scene.root.join("gone.txt").exists() {
            continue;
        }
        let somebodys = scene.root.join("src/a.rs");
        fs::remove_file(&somebodys).unwrap();
        fs::write(&somebodys, "somebody's").unwrap();
        fs::create_dir(scene.state.join("left-1")).unwrap();
        let inject = "inject=renameat2:error=EINVAL:when=1+";
        let (status, log) = traced(&scratch, "recover", inject);
        assert!(status.success() && log.contains("(INJECTED)"));
        assert_eq!(fs::read(&somebodys).unwrap(), b"somebody's");
        assert_eq!(
            fs::read(scene.state.join("left-2/0.old")).unwrap(),
            b"old a"
        );
        let taken = fs::read_dir(scene.state.join("left-1")).unwrap();
        assert_eq!(taken.count(), 0);
        fs::write(&somebodys, "old a").unwrap();
        assert_eq!(scene.now(), scene.old);
        break;
    }
}

/// Skips the calls of the program's start-up; a small campaign samples the rest, a large one tries all.
/// As on vfat and on FUSE: no hard links, no symlinks, and no flags of a rename.
#[test]
fn a_disk_without_links_and_flags_of_renames_takes_a_set_and_its_undo() {
    if depth().is_none() {
        return;
    }
    let (scratch, scene) = Scene::create();
    let inject = "inject=renameat2,linkat,symlinkat:error=EPERM";
    for (task, after) in [("apply", &scene.new), ("undo", &scene.old)] {
        let (status, log) = traced(&scratch, task, inject);
        assert!(status.success() && &scene.now() == after, "{task}");
        let calls = ["renameat2", "linkat", "symlinkat"];
        assert!(calls.iter().all(|call| log.contains(call)), "{log}");
    }
}

fn occurrences(call: &str, depth: usize) -> Vec<usize> {
    let (first, last, stride) = match call {
        "openat" => (8, 400, 12 / depth.min(12)),
        // One after each new folder, without gaps.
        "openat2" => (1, 60, 1),
        "write" => (1, 60, 4 / depth.min(4)),
        _ => (1, 60, 3 / depth.min(3)),
    };
    (first..last).step_by(stride.max(1)).collect()
}

fn depth() -> Option<usize> {
    let works = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .status();
    if !works.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: kills and errors at system calls because strace cannot trace here");
        return None;
    }
    Some(std::env::var("CRASH_SIZE").map_or(1, |size| size.parse().unwrap()))
}
