//! Another thread keeps swapping a folder for a symlink that points outside, while paths in it are judged and
//! written: nothing may be written outside.
//!
//! `RACE_WRITES` sets how many are judged and, if admitted, written (default 15,000, about 4 s; 100,000 for a
//! campaign). The tree is on `/dev/shm` if possible, so that the disk does not slow the campaign down.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use code_commit_apply::{ApplyError, ChangeSet, Lock};
use code_commit_guard::{Configuration, Guard, Op, Policy, Request, Verdict};
use rustix::fs::{CWD, RenameFlags};

#[derive(Default, Debug)]
struct Tally {
    written: usize,
    refused: usize,
    gave_up: usize,
}

#[test]
fn nothing_is_written_outside_while_a_folder_becomes_a_symlink() {
    let scratch = tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() {
        "/dev/shm"
    } else {
        "."
    })
    .unwrap();
    let outside = scratch.path().join("outside");
    let root = scratch.path().join("root");
    fs::create_dir_all(root.join("d/deep")).unwrap();
    fs::create_dir_all(outside.join("deep")).unwrap();
    fs::write(outside.join("deep/f"), "outside").unwrap();
    symlink("../outside", root.join("link")).unwrap();
    let wanted = std::env::var("RACE_WRITES").map_or(15_000, |n| n.parse().unwrap());
    let (stop, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    let tally = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let swapped = rustix::fs::renameat_with(
                    CWD,
                    root.join("d"),
                    CWD,
                    root.join("link"),
                    RenameFlags::EXCHANGE,
                );
                swapped.unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let tally = write(&root, &scratch.path().join("state"), wanted);
        stop.store(true, Ordering::Relaxed);
        tally
    });
    eprintln!(
        "race: {tally:?} while the folder was swapped {} times, 0 outside",
        swaps.load(Ordering::Relaxed)
    );
    assert_eq!(fs::read(outside.join("deep/f")).unwrap(), b"outside");
    assert_eq!(
        fs::read_dir(&outside).unwrap().count()
            + fs::read_dir(outside.join("deep")).unwrap().count(),
        2
    );
    assert!(
        tally.written > 0 && tally.refused > 0,
        "there was no race: {tally:?}"
    );
}

fn write(root: &Path, state: &Path, wanted: usize) -> Tally {
    let guard = Guard::open(
        root,
        Policy::new().configuration(Configuration::RepositoryOnly),
    )
    .unwrap();
    let lock = Lock::acquire(state, "race").unwrap();
    let undo = state.join("undo");
    let mut tally = Tally::default();
    for number in 0..wanted {
        let path = ["d/deep/f", "d/g", "d/new/h"]
            .into_iter()
            .cycle()
            .nth(number % 3)
            .unwrap();
        let verdict = guard.judge(&[Request {
            path: path.as_bytes(),
            op: Op::Write,
            base_sha256: None,
        }]);
        let Some(Verdict::Admitted(admitted)) = verdict.unwrap().pop() else {
            tally.refused += 1;
            continue;
        };
        let mut set = ChangeSet::new();
        set.write(admitted, format!("inside {number}").into_bytes());
        match code_commit_apply::apply(&lock, root, set, &undo) {
            Ok(applied) => {
                assert_eq!(applied.warnings, []);
                tally.written += 1;
                fs::remove_dir_all(&undo).unwrap();
            }
            Err(ApplyError::Changed { .. }) => tally.gave_up += 1,
            Err(error) => panic!("{path}: {error:?}"),
        }
    }
    tally
}
