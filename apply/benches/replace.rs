//! 1,000 replacements of 4 kB with full durability, compared with the two fastest ways that are durable but
//! not atomic.
//!
//! ```sh
//! cargo bench -p code-commit-apply --bench replace [-- FOLDER]
//! ```
//!
//! The three take turns on the same disk, so that other load affects them equally; medians are compared.
#![expect(
    clippy::disallowed_methods,
    reason = "a bench makes files and reads the clock"
)]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a bench may stop"
)]
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use code_commit_apply::{ChangeSet, Lock};
use code_commit_guard::{Admitted, Op};

#[expect(dead_code, reason = "a bench compares no trees")]
#[path = "../tests/shared/mod.rs"]
mod shared;

const FILES: usize = 1_000;
const BYTES: usize = 4_096;
const ROUNDS: usize = 9;

fn main() {
    let folder = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let scratch =
        tempfile::tempdir_in(folder.map_or_else(std::env::temp_dir, PathBuf::from)).unwrap();
    let root = scratch.path().join("root");
    fs::create_dir(&root).unwrap();
    let names: Vec<String> = (0..FILES).map(|number| format!("{number:04}.rs")).collect();
    for name in &names {
        fs::write(root.join(name), vec![0; BYTES]).unwrap();
    }
    let (mut fsyncs, mut syncfs, mut judged, mut applied) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let content = vec![u8::try_from(3 * round + 1).unwrap(); BYTES];
        fsyncs.push(timed(|| {
            staged_and_renamed(&root, &names, &content, fsync_by_threads);
        }));
        let content = vec![u8::try_from(3 * round + 2).unwrap(); BYTES];
        syncfs.push(timed(|| {
            staged_and_renamed(&root, &names, &content, |files| {
                rustix::fs::syncfs(&files[0]).unwrap();
            });
        }));
        let content = vec![u8::try_from(3 * round + 3).unwrap(); BYTES];
        let (mut paths, lock) = (
            Vec::new(),
            Lock::acquire(&scratch.path().join("state"), "bench").unwrap(),
        );
        judged.push(timed(|| paths = judge(&root, &names)));
        let undo = scratch.path().join(format!("undo-{round}"));
        applied.push(timed(|| transaction(&lock, &root, paths, &content, &undo)));
    }
    let best = median(fsyncs.clone()).min(median(syncfs.clone()));
    println!("{FILES} files of {BYTES} bytes, median of {ROUNDS}:");
    println!("  16 threads of fsync, folder once  {:?}", median(fsyncs));
    println!("  one syncfs                        {:?}", median(syncfs));
    println!("  judge                             {:?}", median(judged));
    let ours = median(applied);
    println!(
        "  apply                             {ours:?}, {:.2} x the better",
        ours.as_secs_f64() / best.as_secs_f64()
    );
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Durable, but a crash in between leaves some files old and some new.
fn staged_and_renamed(root: &Path, names: &[String], content: &[u8], sync: impl Fn(&[File])) {
    let files: Vec<File> = names
        .iter()
        .map(|name| {
            let mut file = File::create(root.join(format!("{name}.tmp"))).unwrap();
            file.write_all(content).unwrap();
            file
        })
        .collect();
    sync(&files);
    for name in names {
        fs::rename(root.join(format!("{name}.tmp")), root.join(name)).unwrap();
    }
    File::open(root).unwrap().sync_all().unwrap();
}

fn fsync_by_threads(files: &[File]) {
    std::thread::scope(|scope| {
        for files in files.chunks(files.len().div_ceil(16)) {
            scope.spawn(move || files.iter().for_each(|file| file.sync_all().unwrap()));
        }
    });
}

fn judge(root: &Path, names: &[String]) -> Vec<Admitted> {
    let requests: Vec<_> = names.iter().map(|name| (&**name, Op::Write)).collect();
    shared::admit(root, &requests)
}

fn transaction(lock: &Lock, root: &Path, paths: Vec<Admitted>, content: &[u8], undo: &Path) {
    let mut set = ChangeSet::new();
    for path in paths {
        set.write(path, content);
    }
    assert_eq!(
        code_commit_apply::apply(lock, root, set, undo)
            .unwrap()
            .warnings,
        []
    );
}
