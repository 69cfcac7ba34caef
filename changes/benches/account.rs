//! The account of a build that changes 10 files in a tree of 100,000, compared with `git status`.
//!
//! ```sh
//! cargo bench -p code-commit-changes --bench account [-- FOLDER]
//! ```
//!
//! They take turns; medians are compared. Goals: at most 2.5 × `git status`, and at most 10 ms where the build
//! works in a view, whose layer is made here as an overlay would leave it.
#![expect(
    clippy::disallowed_methods,
    reason = "a bench makes files, runs git and reads the clock"
)]
#![expect(clippy::unwrap_used, reason = "a bench may stop")]
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use code_commit_changes::{ChangeEngine, Scope};
use code_commit_guard::{Guard, Policy};
use code_commit_names::Binds;

const FOLDERS: usize = 1_000;
const FILES: usize = 100;
const ROUNDS: usize = 9;

fn main() {
    let folder = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let scratch =
        tempfile::tempdir_in(folder.map_or_else(std::env::temp_dir, PathBuf::from)).unwrap();
    let root = scratch.path().join("root");
    for folder in 0..FOLDERS {
        let folder = root.join(format!("{:02}/{folder:04}", folder % 32));
        fs::create_dir_all(&folder).unwrap();
        (0..FILES).for_each(|file| {
            fs::write(folder.join(format!("{file:03}.rs")), "fn main() {}\n").unwrap();
        });
    }
    git(&root, &["init", "-q"]);
    git(&root, &["add", "-A"]);
    git(
        &root,
        &[
            "-c",
            "user.name=B",
            "-c",
            "user.email=b@example.invalid",
            "commit",
            "-qm",
            "bench",
        ],
    );
    let run = scratch.path().join("run");
    fs::create_dir(&run).unwrap();
    let guard = Guard::open(&root, Policy::commit()).unwrap();
    let mut account = engine();
    let mut in_view = engine().in_overlay(scratch.path());
    let (mut status, mut opened, mut closed, mut viewed) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        status.push(timed(|| git(&root, &["status", "--porcelain"])));
        opened.push(timed(|| drop(account.open(&guard, &run).unwrap())));
        (0..10).for_each(|file| {
            fs::write(
                root.join(format!("00/0000/{file:03}.rs")),
                format!("{round}"),
            )
            .unwrap();
        });
        let undo = scratch.path().join(format!("undo-{round}"));
        closed.push(timed(|| {
            drop(account.close(&guard, &run, &undo).unwrap());
            account.recorded(&run).unwrap();
        }));
        let begun = Instant::now();
        in_view.open(&guard, &run).unwrap();
        let layer = in_view.overlay().unwrap().unwrap().upper;
        let before = begun.elapsed();
        fs::create_dir_all(layer.join("01/0001")).unwrap();
        (0..10).for_each(|file| {
            fs::write(
                layer.join(format!("01/0001/{file:03}.rs")),
                format!("{round}"),
            )
            .unwrap();
        });
        let undo = scratch.path().join(format!("undo-view-{round}"));
        viewed.push(
            before
                + timed(|| {
                    assert_eq!(
                        in_view.close(&guard, &run, &undo).unwrap().changes.len(),
                        10
                    );
                    in_view.recorded(&run).unwrap();
                }),
        );
    }
    let (status, opened, closed) = (median(status), median(opened), median(closed));
    println!("{} files, median of {ROUNDS}:", FOLDERS * FILES);
    println!("  git status  {status:?}");
    println!("  before      {opened:?}");
    println!("  after       {closed:?}");
    println!("  in a view   {:?}", median(viewed));
    println!(
        "  account     {:.2} x git status",
        (opened + closed).as_secs_f64() / status.as_secs_f64()
    );
}

fn engine() -> ChangeEngine {
    ChangeEngine::new(Scope {
        who: "the build".into(),
        may_change: Policy::build(Binds::Commit),
        ..Scope::default()
    })
}

fn git(root: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(args)
        .current_dir(root)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(done.success());
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
