//! What git says of a root, read once for all its guards.

use std::fs;
use std::path::Path;

use code_commit_guard::{Code, Configuration, Guard, OpenError, Policy, Surroundings};

use crate::tree::{code, git, repository};

fn open(root: &Path) -> Result<Guard, OpenError> {
    Surroundings::find(root, Configuration::All)?.guard(Policy::commit())
}

#[test]
fn all_sources_of_ignore_rules_count_and_so_do_submodules() {
    let scratch = repository(&[
        (".gitignore", "*.unwanted\n"),
        ("inner/.gitignore", "*.inner\n"),
        ("sub/", ""),
    ]);
    fs::write(scratch.path().join(".git/info/exclude"), "*.excluded\n").unwrap();
    let entry = format!("160000,{},sub", "1".repeat(40));
    git(
        scratch.path(),
        &["update-index", "--add", "--cacheinfo", &entry],
    );
    let top = open(scratch.path()).unwrap();
    assert_eq!(code(&top, "b.rs"), None);
    assert_eq!(code(&top, "inner/b.inner"), Some(Code::Ignored));
    assert_eq!(code(&top, "sub/x"), Some(Code::NestedRepository));
    let inner = open(&scratch.path().join("inner")).unwrap();
    for ignored in ["b.unwanted", "b.inner", "b.excluded"] {
        assert_eq!(code(&inner, ignored), Some(Code::Ignored), "{ignored}");
    }
}

#[test]
fn whether_a_file_is_ignored_is_told_before_it_is_there() {
    let scratch = repository(&[
        (".gitignore", "/sub/out.txt\n*.log\n"),
        ("sub/.gitignore", "!kept.log\n"),
        ("sub/deep/.gitignore", "*\n"),
    ]);
    let ignored = |folder: &str, path: &str| {
        let around = Surroundings::find(&scratch.path().join(folder), Configuration::All);
        around.unwrap().ignores(path).unwrap()
    };
    for path in ["out.txt", "a.log", "new/a.log", "deep/any"] {
        assert!(
            ignored("sub", path) && ignored("", &format!("sub/{path}")),
            "{path}"
        );
    }
    for path in ["kept.log", "inner/out.txt", "new/kept.log"] {
        assert!(
            !ignored("sub", path) && !ignored("", &format!("sub/{path}")),
            "{path}"
        );
    }
}

#[test]
fn what_its_configuration_and_the_excludes_say_later_counts_for_no_guard_but_ignore_files_do() {
    let scratch = repository(&[("patterns", "*.later\n")]);
    fs::write(scratch.path().join(".git/info/exclude"), "*.excluded\n").unwrap();
    let around = Surroundings::find(scratch.path(), Configuration::All).unwrap();
    let patterns = scratch.path().join("patterns");
    git(
        scratch.path(),
        &["config", "core.excludesFile", patterns.to_str().unwrap()],
    );
    fs::write(scratch.path().join(".git/info/exclude"), "*\n").unwrap();
    fs::write(scratch.path().join(".gitignore"), "*.unwanted\n").unwrap();
    let guard = around.guard(Policy::commit()).unwrap();
    assert_eq!(
        [code(&guard, "b.rs"), code(&guard, "b.later")],
        [None, None]
    );
    for ignored in ["b.excluded", "b.unwanted"] {
        assert_eq!(code(&guard, ignored), Some(Code::Ignored), "{ignored}");
    }
}

#[test]
fn a_work_tree_that_its_configuration_puts_elsewhere_is_none() {
    let (scratch, elsewhere) = (repository(&[]), tempfile::tempdir().unwrap());
    let elsewhere = elsewhere.path().to_str().unwrap();
    git(scratch.path(), &["config", "core.worktree", elsewhere]);
    let error = open(scratch.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotAWorkTree { .. }), "{error}");
}

#[test]
fn settings_that_its_configuration_includes_count_like_its_own() {
    for key in ["include.path", "includeIf.gitdir:**.path"] {
        let scratch = repository(&[("patterns", "*.unwanted\n")]);
        let patterns = scratch.path().join("patterns");
        let included = format!("[core]\nexcludesFile = {}\n", patterns.display());
        fs::write(scratch.path().join(".git/included"), included).unwrap();
        git(scratch.path(), &["config", key, "included"]);
        let guard = open(scratch.path()).unwrap();
        assert_eq!(code(&guard, "b.unwanted"), Some(Code::Ignored), "{key}");
    }
}

#[test]
fn a_repository_nearer_to_the_root_is_the_one_that_counts() {
    let outer = repository(&[(".gitignore", "*.outer\n"), ("inner/", "")]);
    let inner = outer.path().join("inner");
    git(&inner, &["init", "-q"]);
    fs::write(inner.join(".git/info/exclude"), "*.inner\n").unwrap();
    let guard = open(&inner).unwrap();
    assert_eq!(code(&guard, "b.outer"), None);
    assert_eq!(code(&guard, "b.inner"), Some(Code::Ignored));
}
