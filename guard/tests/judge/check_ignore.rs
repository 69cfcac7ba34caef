//! Random repositories against `git check-ignore --no-index`: what git ignores, the guard must refuse.
//!
//! `IGNORE_REPOSITORIES` sets how many repositories are tried (default 300, some 60 paths each).
#![expect(
    clippy::disallowed_methods,
    reason = "git is the reference, the size of the campaign a variable"
)]
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use code_commit_guard::{Code, Configuration, Guard, Op, Policy, Request, Verdict};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Few names, so that patterns often match.
const NAMES: [&str; 9] = [
    "a", "b", "foo", "bar.o", "foo.o", "x y", "fool", "a.b", "f1",
];

#[test]
fn what_git_ignores_is_refused() {
    let repositories = std::env::var("IGNORE_REPOSITORIES").map_or(300, |n| n.parse().unwrap());
    let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), seed);
    let mut kinds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let (mut lookups, mut ignored) = (0, 0);
    for _ in 0..repositories {
        let case = repository().new_tree(&mut runner).unwrap().current();
        let scratch = scratch();
        let paths = case.make(scratch.path());
        let gits = check_ignore(scratch.path(), &paths);
        let ours = refused_as_ignored(scratch.path(), &paths);
        lookups += paths.len();
        ignored += gits.len();
        for path in gits.symmetric_difference(&ours) {
            let kind = if gits.contains(path) {
                "git ignores, the guard admits"
            } else {
                "the guard alone ignores"
            };
            kinds
                .entry(kind)
                .or_default()
                .push(format!("{path} in {:?}", case.ignore_files));
        }
    }
    eprintln!(
        "check-ignore: {repositories} repositories, {lookups} look-ups, {ignored} ignored by git"
    );
    for (kind, cases) in &kinds {
        eprintln!(
            "check-ignore: {kind}: {}\n    {}",
            cases.len(),
            cases[..cases.len().min(5)].join("\n    ")
        );
    }
    assert!(ignored * 10 > lookups, "the patterns hardly meet the paths");
    let missed = kinds
        .get("git ignores, the guard admits")
        .map_or(0, Vec::len);
    assert_eq!(missed, 0, "paths that git ignores were admitted");
    let excess = kinds.get("the guard alone ignores").map_or(0, Vec::len);
    assert!(
        excess * 1000 <= lookups,
        "{excess} of {lookups} paths refused without need"
    );
}

/// In memory if possible, so that the disk does not slow the campaign down.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

#[derive(Debug, Clone)]
struct Repository {
    /// Folder and content. The empty folder is the top.
    ignore_files: BTreeMap<String, String>,
    info_exclude: String,
    paths: BTreeSet<String>,
    ignore_case: bool,
}

impl Repository {
    fn make(&self, root: &Path) -> Vec<String> {
        git(root, &["init", "-q"], None);
        if self.ignore_case {
            git(root, &["config", "core.ignoreCase", "true"], None);
        }
        fs::create_dir_all(root.join(".git/info")).unwrap();
        fs::write(root.join(".git/info/exclude"), &self.info_exclude).unwrap();
        for (folder, content) in &self.ignore_files {
            // A file may be in the folder's place; then neither git nor we find rules there.
            if fs::create_dir_all(root.join(folder)).is_ok() {
                fs::write(root.join(folder).join(".gitignore"), content).unwrap();
            }
        }
        self.paths
            .iter()
            .filter(|path| !root.join(path).is_dir())
            .cloned()
            .collect()
    }
}

fn repository() -> impl Strategy<Value = Repository> {
    let folder = prop::collection::vec(prop::sample::select(&NAMES[..5]), 0..3)
        .prop_map(|names| names.join("/"));
    let ignore_files = prop::collection::vec((folder, content()), 1..4);
    let path = prop::collection::vec(prop::sample::select(&NAMES[..]), 1..5)
        .prop_map(|names| names.join("/"));
    let paths = prop::collection::vec(path, 60);
    (ignore_files, content(), paths, prop::bool::weighted(0.2)).prop_map(
        |(ignore_files, info_exclude, paths, ignore_case)| Repository {
            ignore_files: ignore_files.into_iter().collect(),
            info_exclude,
            paths: paths.into_iter().collect(),
            ignore_case,
        },
    )
}

fn content() -> impl Strategy<Value = String> {
    let ending = prop::sample::select(&["\n", "\r\n", "\n", "  \n", "\\ \n", "\t\n"][..]);
    let line = (pattern(), ending).prop_map(|(pattern, ending)| pattern + ending);
    (
        prop::collection::vec(line, 0..6),
        prop::sample::select(&["", "", "f1", "*.o\r", "/a\r"][..]),
    )
        .prop_map(|(lines, last)| lines.concat() + last)
}

/// Negations, anchors, folders only, `**`, `*`, `?`, classes, escapes, comments.
fn pattern() -> impl Strategy<Value = String> {
    let part = prop::sample::select(
        &[
            "a",
            "b",
            "foo",
            "*.o",
            "*",
            "**",
            "f*",
            "?",
            "[a-f]",
            "[!a]",
            "f[0-9]",
            "[[:alpha:]]",
            "\\a",
            "f**",
            "**o",
            "x y",
            "FOO",
            "A",
            "a.?",
            "[a",
            "fo\\o",
            "*a*",
            "f?o",
            "[^b]*",
            "[]-]",
            "#a",
            "\\#a",
            "x\\ y",
        ][..],
    );
    (
        prop::bool::weighted(0.25),
        prop::bool::weighted(0.25),
        prop::collection::vec(part, 1..4),
        prop::bool::weighted(0.25),
    )
        .prop_map(|(negative, anchored, parts, folder)| {
            let mark = |on, mark: &'static str| if on { mark } else { "" };
            format!(
                "{}{}{}{}",
                mark(negative, "!"),
                mark(anchored, "/"),
                parts.join("/"),
                mark(folder, "/")
            )
        })
}

fn check_ignore(root: &Path, paths: &[String]) -> BTreeSet<String> {
    let output = git(
        root,
        &["check-ignore", "--no-index", "-z", "--stdin"],
        Some(&paths.join("\0")),
    );
    output
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect()
}

fn refused_as_ignored(root: &Path, paths: &[String]) -> BTreeSet<String> {
    let policy = Policy::new().configuration(Configuration::RepositoryOnly);
    let guard = Guard::open(root, policy).unwrap();
    // One at a time: in one reply they could conflict.
    let is_ignored = |path: &&String| {
        let request = Request {
            path: path.as_bytes(),
            op: Op::Write,
            base_sha256: None,
        };
        match guard.judge(&[request]).unwrap().pop() {
            Some(Verdict::Refused(refusal)) => {
                assert_eq!(refusal.code(), Code::Ignored, "{path}: {refusal}");
                true
            }
            _ => false,
        }
    };
    paths.iter().filter(is_ignored).cloned().collect()
}

/// `check-ignore` exits with 1 if nothing is ignored.
fn git(root: &Path, args: &[&str], input: Option<&str>) -> String {
    let mut child = Command::new("git")
        .args(args)
        .current_dir(root)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("HOME", root)
        .env_remove("GIT_DIR")
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.unwrap_or_default().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "git {args:?}");
    String::from_utf8(output.stdout).unwrap()
}
