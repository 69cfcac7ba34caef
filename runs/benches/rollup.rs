//! The roll-up of 100,000 files, compared with `git ls-files | xargs cat`.
//!
//! ```sh
//! cargo bench -p code-commit-runs --bench rollup [-- FOLDER]
//! ```
//!
//! They take turns, and each turn gives a ratio; medians are printed. Goals: at most 1.25 ×, and at most 0.5 × more
//! with a budget.
#![expect(
    clippy::disallowed_methods,
    reason = "a bench makes files, runs git and reads the clock"
)]
#![expect(clippy::unwrap_used, reason = "a bench may stop")]
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use code_commit_logging::Redactor;
use code_commit_repo::WorkTree;
use code_commit_runs::rollup::{Options, Sources, make};
use code_commit_settings::{Environment, NO_BUDGET, Settings};

const FOLDERS: usize = 1_000;
const FILES: usize = 100;
const TURNS: usize = 9;

/// About a kilobyte, as much as a small module has.
fn source(folder: usize, file: usize) -> String {
    let function = |n: usize| {
        format!(
            "/// The share of part {n} in module {folder}.\npub fn share_{n}(total: u64) -> Option<u64> {{\n    \
             let known = total.checked_sub({file})?;\n    (known > 0).then(|| known * {n} / total)\n}}\n\n"
        )
    };
    (1..=7).map(function).collect()
}

fn main() {
    let folder = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let scratch =
        tempfile::tempdir_in(folder.map_or_else(std::env::temp_dir, PathBuf::from)).unwrap();
    let root = scratch.path().join("root");
    lay_out(&root);
    let (tree, environment) = (
        WorkTree::at(&root).unwrap(),
        Environment::of(std::env::vars_os()),
    );
    let (redactor, query) = (
        Redactor::default(),
        "Make file_042_0042.rs in 10/0042 faster.",
    );
    let sources = Sources {
        tree: &tree,
        environment: &environment,
        redactor: &redactor,
        query,
    };
    let all = scratch.path().join("all");
    let roll_up = |budget| {
        let options = Options {
            budget,
            ..Options::default()
        };
        make(sources, &options, &Settings::default())
            .unwrap_or_else(|_| std::process::exit(1))
            .write(&all)
            .unwrap();
    };
    let turns: Vec<[f64; 3]> = (0..=TURNS)
        .map(|_| {
            [
                seconds(|| cat(&root, &all)),
                seconds(|| roll_up(Some(NO_BUDGET))),
                seconds(|| roll_up(Some(100_000))),
            ]
        })
        .skip(1)
        .collect();
    println!("{} files, medians of {TURNS} turns:", FOLDERS * FILES);
    println!(
        "  git ls-files | xargs cat  {:.2} s",
        median(turns.iter().map(|turn| turn[0]))
    );
    println!(
        "  roll-up                   {:.2} x",
        median(turns.iter().map(|turn| turn[1] / turn[0]))
    );
    println!(
        "  with a budget             {:.2} x",
        median(turns.iter().map(|turn| turn[2] / turn[0]))
    );
}

fn lay_out(root: &Path) {
    for folder in 0..FOLDERS {
        let path = root.join(format!("{:02}/{folder:04}", folder % 32));
        fs::create_dir_all(&path).unwrap();
        (0..FILES).for_each(|file| {
            fs::write(
                path.join(format!("file_{file:03}_{folder:04}.rs")),
                source(folder, file),
            )
            .unwrap();
        });
    }
    let git = |args: &[&str]| {
        assert!(
            Command::new("git")
                .args(args)
                .current_dir(root)
                .status()
                .unwrap()
                .success()
        );
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&[
        "-c",
        "user.name=B",
        "-c",
        "user.email=b@example.invalid",
        "commit",
        "-qm",
        "bench",
    ]);
}

fn cat(root: &Path, to: &Path) {
    let line = "git ls-files -z | xargs -0 cat >\"$1\"";
    let done = Command::new("sh")
        .args(["-c", line, "sh"])
        .arg(to)
        .current_dir(root)
        .status()
        .unwrap();
    assert!(done.success());
}

fn seconds(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64()
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
