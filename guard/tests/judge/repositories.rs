//! Kinds of repository around the root.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use code_commit_guard::{Code, Configuration, Guard, OpenError, Policy};
use insta::assert_snapshot;

use crate::tree::{check, code, git, open, repository};

#[test]
fn a_root_in_no_repository_is_guarded_too() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join(".gitignore"), "*.log\n").unwrap();
    let guard = open(scratch.path(), Policy::commit());
    assert_snapshot!(check(&guard, &["a.rs", "a.log", ".git/config", "Cargo.lock"]), @r#"
    ok a.rs
    ignored: `a.log` is ignored by git; leave it unchanged.
    dot-git: `.git/config` is or looks like git's own folder; leave it unchanged.
    protected: `Cargo.lock` is protected (the versions of all dependencies); leave it unchanged.
    "#);
}

#[test]
fn a_linked_work_tree_and_a_submodule_are_work_trees() {
    let main = repository(&[("a", "a")]);
    git(main.path(), &["add", "."]);
    let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
    git(
        main.path(),
        &[&identity[..], &["commit", "-qm", "one"]].concat(),
    );
    fs::write(main.path().join(".git/info/exclude"), "*.secret\n").unwrap();
    let linked = tempfile::tempdir().unwrap();
    let path = linked.path().join("tree");
    git(
        main.path(),
        &["worktree", "add", "-q", path.to_str().unwrap()],
    );
    let guard = open(&path, Policy::commit());
    assert_eq!(code(&guard, "b.rs"), None);
    assert_eq!(
        code(&guard, "x.secret"),
        Some(Code::Ignored),
        "info/exclude is the common directory's"
    );
    assert_eq!(code(&guard, ".git"), Some(Code::DotGit));

    let source = main.path().to_str().unwrap();
    let outer = repository(&[]);
    git(
        outer.path(),
        &[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            source,
            "sub",
        ],
    );
    assert_eq!(
        code(&open(&outer.path().join("sub"), Policy::commit()), "b.rs"),
        None
    );
    assert_eq!(
        code(&open(outer.path(), Policy::commit()), "sub/b.rs"),
        Some(Code::NestedRepository)
    );
}

#[test]
fn a_submodule_that_is_not_checked_out_is_refused() {
    let scratch = repository(&[("sub/", "")]);
    let entry = format!("160000,{},sub", "1".repeat(40));
    git(
        scratch.path(),
        &["update-index", "--add", "--cacheinfo", &entry],
    );
    assert_eq!(
        code(&open(scratch.path(), Policy::new()), "sub/x"),
        Some(Code::NestedRepository)
    );
    // In every format of the index: with compressed paths, or split in two.
    for form in [&["--index-version", "4"][..], &["--split-index"]] {
        git(scratch.path(), &[&["update-index"][..], form].concat());
        assert_eq!(
            code(&open(scratch.path(), Policy::new()), "sub/x"),
            Some(Code::NestedRepository),
            "{form:?}"
        );
    }
}

#[test]
fn the_folder_that_dot_git_leads_to_is_git_s_own_whatever_its_name() {
    for (git_dir, dot_git) in [
        ("lib/real", "gitdir: lib/real\n"),
        (".git-real", "gitdir: ./.git-real/\n"),
        (".git-real", ""),
    ] {
        let scratch = repository(&[("src/a", "a")]);
        let root = scratch.path();
        fs::create_dir_all(root.join(git_dir).parent().unwrap()).unwrap();
        fs::rename(root.join(".git"), root.join(git_dir)).unwrap();
        if dot_git.is_empty() {
            std::os::unix::fs::symlink(git_dir, root.join(".git")).unwrap();
        } else {
            fs::write(root.join(".git"), dot_git).unwrap();
        }
        let guard = open(root, Policy::commit());
        for below in ["HEAD", "config", "hooks/new", "code-commit/runs"] {
            let path = format!("{git_dir}/{below}");
            assert_eq!(code(&guard, &path), Some(Code::NestedRepository), "{path}");
        }
        assert_eq!(code(&guard, "src/a"), None);
        assert!(guard.is_git(Path::new(".git")) && guard.is_git(Path::new(git_dir)));
    }
}

#[test]
fn what_git_keeps_out_of_the_work_tree_is_refused() {
    let files = ["in/a", "out/a", "top", "local"].map(|name| (name, "a"));
    let scratch = repository(&files);
    let root = scratch.path();
    let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
    git(root, &["add", "."]);
    git(root, &[&identity[..], &["commit", "-qm", "one"]].concat());
    git(root, &["update-index", "--skip-worktree", "local"]);
    let guard = open(root, Policy::commit());
    assert_snapshot!(check(&guard, &["in/new", "out/a", "local"]), @"
    ok in/new
    ok out/a
    not-checked-out: `local` is kept out of the work tree by git (sparse checkout or skip-worktree); leave it unchanged.
    ");
    for set in [
        &["--cone", "in"][..],
        &["--cone", "--sparse-index", "in"],
        &["--no-cone", "/in/", "/top"],
    ] {
        git(root, &[&["sparse-checkout", "set"], set].concat());
        let guard = open(root, Policy::commit());
        for path in ["in/new", "in/a", "in/deep/new", "top"] {
            assert_eq!(code(&guard, path), None, "{set:?}: {path}");
        }
        for path in ["out/a", "out/new", "new/x"] {
            let found = code(&guard, path);
            assert_eq!(found, Some(Code::NotCheckedOut), "{set:?}: {path}");
        }
    }
    git(root, &["sparse-checkout", "disable"]);
    assert_eq!(code(&open(root, Policy::commit()), "new/x"), None);
}

#[test]
fn a_git_directory_is_no_root() {
    let scratch = repository(&[]);
    let bare = scratch.path().join("bare.git");
    git(scratch.path(), &["init", "-q", "--bare", "bare.git"]);
    for root in [
        bare.join("refs"),
        bare,
        scratch.path().join(".git"),
        scratch.path().join(".git/hooks"),
    ] {
        let error = Guard::open(
            &root,
            Policy::new().configuration(Configuration::RepositoryOnly),
        )
        .unwrap_err();
        assert!(
            matches!(error, OpenError::NotAWorkTree { .. }),
            "{}: {error}",
            root.display()
        );
    }
}

#[test]
fn a_repository_that_cannot_be_read_is_an_error_and_not_the_absence_of_one() {
    let scratch = repository(&[]);
    fs::write(scratch.path().join(".git/config"), "[core\n").unwrap();
    let error = Guard::open(scratch.path(), Policy::new()).unwrap_err();
    assert!(matches!(error, OpenError::Repository { .. }), "{error}");
    fs::remove_dir_all(scratch.path().join(".git")).unwrap();
    fs::write(scratch.path().join(".git"), "gitdir: /nowhere/at/all\n").unwrap();
    let error = Guard::open(scratch.path(), Policy::new()).unwrap_err();
    assert!(matches!(error, OpenError::Repository { .. }), "{error}");
}

#[test]
fn a_repository_of_another_user_is_refused_with_the_way_out() {
    let scratch = repository(&[]);
    for path in [scratch.path().to_owned(), scratch.path().join(".git")] {
        if let Err(error) = chown(&path, Some(12345), None) {
            eprintln!(
                "SKIPPED: a repository of another user because chown is not permitted here: {error}"
            );
            return;
        }
    }
    let error = Guard::open(
        scratch.path(),
        Policy::new().configuration(Configuration::RepositoryOnly),
    )
    .unwrap_err();
    assert!(matches!(error, OpenError::ForeignOwner { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("git config --global --add safe.directory"),
        "{error}"
    );
}
