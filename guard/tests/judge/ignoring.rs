//! What git ignores: rules from the start and current ones, from all sources.

use std::fs;
use std::os::unix::fs::symlink;

use code_commit_guard::{Code, Guard, OpenError, Policy};
use insta::assert_snapshot;

use crate::tree::{as_nobody, check, code, git, open, repository, write};

#[test]
fn ignore_rules_of_the_start_stay_in_force_and_new_ones_are_heeded() {
    let scratch = repository(&[(".gitignore", "*.key\n"), ("deep/.gitignore", "x\n")]);
    let guard = open(scratch.path(), Policy::new());
    fs::write(scratch.path().join(".gitignore"), "*.new\n").unwrap();
    fs::remove_file(scratch.path().join("deep/.gitignore")).unwrap();
    fs::create_dir(scratch.path().join("late")).unwrap();
    fs::write(scratch.path().join("late/.gitignore"), "y\n").unwrap();
    for path in ["a.key", "deep/x", "a.new", "late/y"] {
        assert_eq!(code(&guard, path), Some(Code::Ignored), "{path}");
    }
    let captured = |path: &str| guard.ignores(path.as_ref());
    assert_eq!(
        ["a.key", "deep/x", "x", "a.new"].map(captured),
        [true, true, false, false]
    );
    let folder = |path: &str| guard.has_ignored_folder(path.as_ref());
    assert_eq!(
        ["deep/x/in", "a.key", "deep", "x"].map(folder),
        [true, true, false, false]
    );
    assert_eq!(code(&guard, "late/x"), None);
}

#[test]
fn the_excludes_file_of_the_configuration_is_heeded_and_weaker_than_the_others() {
    let scratch = repository(&[(".gitignore", "!keep.tmp\n"), ("rules", "*.tmp\n*.bak\n")]);
    let rules = scratch.path().join("rules");
    git(
        scratch.path(),
        &["config", "core.excludesFile", rules.to_str().unwrap()],
    );
    let guard = open(scratch.path(), Policy::new());
    assert_eq!(code(&guard, "a.tmp"), Some(Code::Ignored));
    assert_eq!(code(&guard, "d/a.bak"), Some(Code::Ignored));
    assert_eq!(code(&guard, "keep.tmp"), None);
}

#[test]
fn an_excludes_file_is_named_from_the_top() {
    let scratch = repository(&[("in/rules", "*.tmp\n"), ("in/sub/", "")]);
    git(scratch.path(), &["config", "core.excludesFile", "in/rules"]);
    let guard = open(&scratch.path().join("in/sub"), Policy::new());
    assert_eq!(code(&guard, "a.tmp"), Some(Code::Ignored));
}

#[test]
fn a_symlinked_gitignore_is_not_followed() {
    let scratch = repository(&[("rules", "*.rs\n")]);
    symlink("rules", scratch.path().join(".gitignore")).unwrap();
    assert_eq!(code(&open(scratch.path(), Policy::new()), "a.rs"), None);
}

#[test]
fn a_root_below_the_top_heeds_the_rules_above_it() {
    let scratch = repository(&[
        (".gitignore", "/app/gen/\n*.log\n"),
        ("app/src/.gitignore", "tmp\n"),
        ("app/gen/", ""),
    ]);
    let guard = open(&scratch.path().join("app"), Policy::commit());
    assert_snapshot!(check(&guard, &["gen/x", "src/tmp", "a.log", "src/a.rs", "../x", "target/x", "build.sh"]), @r#"
    ignored: `gen/x` is ignored by git; leave it unchanged.
    ignored: `src/tmp` is ignored by git; leave it unchanged.
    ignored: `a.log` is ignored by git; leave it unchanged.
    ok src/a.rs
    relative-component: `../x` has a `.` or `..` component; write the path relative to the project's root.
    protected: `target/x` is protected (build output); leave it unchanged.
    protected: `build.sh` is protected (the build decides whether the work is done); leave it unchanged.
    "#);
}

#[test]
fn what_patterns_protect_is_found_tracked_or_not_and_among_ignored_files_where_they_name_it() {
    let files = [
        (".gitignore", "/target\n*.pyc\n.env\n__pycache__/\n/data\n"),
        ("tests/a", ""),
        ("tests/deep/new", ""),
        ("tests/x.pyc", ""),
        ("tests/__pycache__/y", ""),
        ("Tests/Other", ""),
        ("src/a.snap", ""),
        ("src/free", ""),
        (".env", ""),
        ("data/golden/one", ""),
        ("data/raw/two", ""),
        ("target/debug/tests/a.snap", ""),
    ];
    let scratch = repository(&files);
    symlink("../src", scratch.path().join("tests/link")).unwrap();
    let guard = open(scratch.path(), Policy::new());
    let found = |lists: &[&str]| guard.existing(lists).unwrap().join(" ");
    assert_eq!(
        found(&["tests/**"]),
        "Tests/Other tests/a tests/deep/new tests/link"
    );
    assert_eq!(
        found(&["tests/\n!tests/a"]),
        "Tests/Other tests/a tests/deep/new tests/link"
    );
    assert_eq!(
        found(&["tests/*\n!tests/a"]),
        "Tests/Other tests/deep/new tests/link"
    );
    assert_eq!(found(&["*.snap", ".env"]), ".env src/a.snap");
    assert_eq!(found(&["data/golden/**"]), "data/golden/one");
    assert_eq!(found(&["**/one", "*.pyc", "/nowhere/*/x"]), "");
    assert_eq!(
        found(&["/target/debug/t*/a.snap"]),
        "target/debug/tests/a.snap"
    );
    assert_eq!(found(&["/data"]), "data/golden/one data/raw/two");
}

#[test]
fn what_cannot_be_read_is_named() {
    let closed = ("app/in/.gitignore", 0o000);
    let scratch = tempfile::tempdir().unwrap();
    fs::create_dir_all(scratch.path().join("app/in")).unwrap();
    fs::write(scratch.path().join(closed.0), "x").unwrap();
    let root = scratch.path().canonicalize().unwrap();
    let Some(opened) = as_nobody(&root, closed, || Guard::open(&root, Policy::new())) else {
        return;
    };
    assert!(
        matches!(opened.unwrap_err(), OpenError::Io { path, .. } if path == root.join("app/in"))
    );

    let scratch = repository(&[(".gitignore", "x"), ("app/in/a", "")]);
    let root = scratch.path().canonicalize().unwrap();
    let guard = open(&root.join("app"), Policy::new());
    let judged = as_nobody(&root, (".gitignore", 0o000), || guard.judge(&[write("a")])).unwrap();
    assert_eq!(
        judged.unwrap_err().path,
        root.to_str().unwrap(),
        "it lies above the root"
    );
    let existing = as_nobody(&root, ("app/in", 0o444), || guard.existing(["in/**"])).unwrap();
    assert_eq!(existing.unwrap_err().path, "in");
}
