//! What the guard answers, on real trees: policies, batches, preconditions, ignore rules, kinds of repository.
#![expect(clippy::disallowed_methods, reason = "trees are made with files and git")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of a test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use guard::{Admitted, Code, Configuration, Guard, Ignored, Op, OpenError, Policy, Request, Verdict};
use insta::assert_snapshot;

fn git(folder: &Path, args: &[&str]) {
    let status = Command::new("git")
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env_remove("GIT_DIR")
        .status()
        .unwrap();
    assert!(status.success(), "git {args:?}");
}

/// A repository with these files; a name that ends in a slash is a folder.
fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    git(scratch.path(), &["init", "-q"]);
    for (name, content) in files {
        let path = scratch.path().join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }
    scratch
}

fn open(root: &Path, policy: Policy) -> Guard {
    Guard::open(root, policy.configuration(Configuration::RepositoryOnly)).unwrap()
}

fn write(path: &str) -> Request<'_> {
    Request { path: path.as_bytes(), op: Op::Write, base_sha256: None }
}

/// One line for each verdict: `ok PATH`, or the code and the sentence.
fn check(guard: &Guard, paths: &[&str]) -> String {
    let requests: Vec<Request<'_>> = paths.iter().map(|path| write(path)).collect();
    render(&guard.judge(&requests).unwrap())
}

fn render(verdicts: &[Verdict]) -> String {
    let line = |verdict: &Verdict| match verdict {
        Verdict::Admitted(admitted) => format!("ok {}", admitted.path()),
        Verdict::Refused(refusal) => format!("{}: {refusal}", refusal.code()),
    };
    verdicts.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn admit(guard: &Guard, path: &str) -> Admitted {
    match guard.judge(&[write(path)]).unwrap().pop() {
        Some(Verdict::Admitted(admitted)) => admitted,
        other => panic!("{path}: {other:?}"),
    }
}

fn code(guard: &Guard, path: &str) -> Option<Code> {
    match guard.judge(&[write(path)]).unwrap().pop() {
        Some(Verdict::Refused(refusal)) => Some(refusal.code()),
        _ => None,
    }
}

#[test]
fn every_refusal_says_why_and_what_to_do() {
    let scratch = repository(&[
        ("src/a.rs", "a"),
        ("README.md", "r"),
        (".gitignore", "/target\n*.log\n"),
        ("d/e/", ""),
    ]);
    symlink("src", scratch.path().join("link")).unwrap();
    let guard = open(scratch.path(), Policy::commit().protect(["tests/**"]));
    assert_snapshot!(check(&guard, &[
        "src/a.rs", "/etc/passwd", "../x", "a//b", "a\\b", "a\u{202e}b", "a\u{200b}b", "a:b", "a.", "NUL.txt",
        "x/.git/config", ".gitignore", "Build.sh", "sub/UserSpecification.md", "TESTS/it.rs", "run.log", "target/x",
        "link/x", "d/e", "readme.md", "a\u{2215}b", "", "\u{1b}[2J",
    ]), @r#"
    ok src/a.rs
    absolute-path: `/etc/passwd` is an absolute path; write the path from the project's root, with single slashes.
    relative-component: `../x` has a `.` or `..` component; write the path from the project's root, with single slashes.
    empty-component: `a//b` has an empty component (`//`, or a slash at its end); write the path from the project's root, with single slashes.
    backslash: `a\\b` has a backslash; write the path from the project's root, with single slashes.
    bidi-character: `a\u{202e}b` has a character that changes the direction of writing; use a plain name.
    invisible-character: `a\u{200b}b` has an invisible character; use a plain name.
    reserved-character: `a:b` has one of the characters : * ? < > | "; use a plain name.
    trailing-dot-or-blank: `a.` has a component that ends in a dot or a blank; use a plain name.
    device-name: `NUL.txt` has a component that is a device name on Windows; use a plain name.
    dot-git: `x/.git/config` is or looks like git's own folder; leave it as it is.
    protected: `.gitignore` is protected (what git ignores decides what may be written); leave it as it is.
    protected: `Build.sh` is protected (the build decides whether the work is done); leave it as it is.
    protected: `sub/UserSpecification.md` is protected (the user's specification); leave it as it is.
    protected: `TESTS/it.rs` is protected (the configuration's `protect` list); leave it as it is.
    ignored: `run.log` is ignored by git; leave it as it is.
    protected: `target/x` is protected (build output); leave it as it is.
    symlink: `link/x` is a symbolic link or leads through one; leave it as it is.
    is-a-folder: `d/e` is a folder; use another name.
    spelled-differently: `readme.md` differs from `README.md` only in its spelling; write exactly `README.md`.
    confusable-character: `a\u{2215}b` has a character that looks like a slash, a backslash or a dot; use a plain name.
    empty-path: `` is empty; write the path from the project's root, with single slashes.
    control-character: `\u{1b}[2J` has a control character; use a plain name.
    "#);
    assert_snapshot!(check(&guard, &["link", "src", "README.md/b"]), @r#"
    symlink: `link` is a symbolic link or leads through one; leave it as it is.
    is-a-folder: `src` is a folder; use another name.
    not-a-folder: `README.md/b` leads through a file; use another name.
    "#);
}

#[test]
fn a_batch_is_judged_as_one() {
    let scratch = repository(&[]);
    let guard = open(scratch.path(), Policy::commit());
    assert_snapshot!(check(&guard, &["a", "a/b", "x.rs", "x.rs", "Dir/one", "dir/two", "é.rs", "e\u{301}.rs", "fine"]), @r#"
    file-and-folder: `a` and `a/b` of this reply cannot both be: one would be a folder; name files only.
    file-and-folder: `a/b` and `a` of this reply cannot both be: one would be a folder; name files only.
    duplicate: `x.rs` names the same file as `x.rs` of this reply; name each file once.
    duplicate: `x.rs` names the same file as `x.rs` of this reply; name each file once.
    duplicate: `Dir/one` names the same file as `dir/` of this reply; name each file once.
    duplicate: `dir/two` names the same file as `Dir/` of this reply; name each file once.
    duplicate: `é.rs` names the same file as `e\u{301}.rs` of this reply; name each file once.
    duplicate: `e\u{301}.rs` names the same file as `é.rs` of this reply; name each file once.
    ok fine
    "#);
    assert_snapshot!(check(&guard, &["r/HEAD", "r/objects/x", "r/refs/heads/main", "s/HEAD"]), @r#"
    nested-repository: `r/HEAD` lies in a nested repository or a submodule; leave it as it is.
    nested-repository: `r/objects/x` lies in a nested repository or a submodule; leave it as it is.
    nested-repository: `r/refs/heads/main` lies in a nested repository or a submodule; leave it as it is.
    ok s/HEAD
    "#);
}

#[test]
fn a_scope_admits_what_it_names_and_nothing_else() {
    let scratch = repository(&[(".gitignore", "*.log\n"), ("src/a.rs", "a")]);
    let allowed = ["src/a.rs", "Cargo.lock", "a.log", ".git/config", ".code-commit/x", "code-commit.toml"];
    let guard = open(scratch.path(), Policy::scoped(allowed).protect(["Cargo.lock"]));
    assert_snapshot!(check(&guard, &["src/a.rs", "src/b.rs", "Src/a.rs", "Cargo.lock", "a.log", ".git/config", ".code-commit/x", "code-commit.toml"]), @r#"
    ok src/a.rs
    out-of-scope: `src/b.rs` is not among the files that this task may change; change only the files that the task names.
    out-of-scope: `Src/a.rs` is not among the files that this task may change; change only the files that the task names.
    protected: `Cargo.lock` is protected (the configuration's `protect` list); leave it as it is.
    ok a.log
    dot-git: `.git/config` is or looks like git's own folder; leave it as it is.
    protected: `.code-commit/x` is protected (the harness's own state); leave it as it is.
    protected: `code-commit.toml` is protected (the harness's configuration); leave it as it is.
    "#);
    let guard = open(scratch.path(), Policy::scoped(["a.log"]).ignored(Ignored::Refused));
    assert_eq!(code(&guard, "a.log"), Some(Code::Ignored));
}

#[test]
fn a_role_writes_only_where_its_patterns_say() {
    let scratch = repository(&[]);
    let guard = open(scratch.path(), Policy::new().only(["/src/", "*.md", "!secret.md"]));
    assert_snapshot!(check(&guard, &["src/a/b.rs", "docs/x.md", "secret.md", "tests/a.rs", "SRC/a.rs"]), @r#"
    ok src/a/b.rs
    ok docs/x.md
    out-of-scope: `secret.md` is not among the files that this task may change; change only the files that the task names.
    out-of-scope: `tests/a.rs` is not among the files that this task may change; change only the files that the task names.
    out-of-scope: `SRC/a.rs` is not among the files that this task may change; change only the files that the task names.
    "#);
}

#[test]
fn a_base_that_is_not_the_file_of_now_is_stale() {
    let scratch = repository(&[("a.rs", "one")]);
    let guard = open(scratch.path(), Policy::new());
    let hash = admit(&guard, "a.rs").before().unwrap().sha256;
    let empty = [
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
        0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
    ];
    let judge = |path: &'static str, base| {
        let request = Request { path: path.as_bytes(), op: Op::Write, base_sha256: Some(base) };
        render(&guard.judge(&[request]).unwrap())
    };
    assert_eq!(judge("a.rs", hash), "ok a.rs");
    assert_eq!(judge("new.rs", empty), "ok new.rs");
    assert!(judge("new.rs", hash).starts_with("stale-base: `new.rs`"));
    fs::write(scratch.path().join("a.rs"), "two").unwrap();
    assert!(judge("a.rs", hash).starts_with("stale-base: `a.rs`"));
}

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
    assert_eq!(code(&guard, "late/x"), None);
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
    ignored: `gen/x` is ignored by git; leave it as it is.
    ignored: `src/tmp` is ignored by git; leave it as it is.
    ignored: `a.log` is ignored by git; leave it as it is.
    ok src/a.rs
    relative-component: `../x` has a `.` or `..` component; write the path from the project's root, with single slashes.
    protected: `target/x` is protected (build output); leave it as it is.
    protected: `build.sh` is protected (the build decides whether the work is done); leave it as it is.
    "#);
}

#[test]
fn a_root_in_no_repository_is_guarded_too() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join(".gitignore"), "*.log\n").unwrap();
    let guard = open(scratch.path(), Policy::commit());
    assert_snapshot!(check(&guard, &["a.rs", "a.log", ".git/config", "Cargo.lock"]), @r#"
    ok a.rs
    ignored: `a.log` is ignored by git; leave it as it is.
    dot-git: `.git/config` is or looks like git's own folder; leave it as it is.
    protected: `Cargo.lock` is protected (the versions of all dependencies); leave it as it is.
    "#);
}

#[test]
fn a_linked_work_tree_and_a_submodule_are_work_trees() {
    let main = repository(&[("a", "a")]);
    git(main.path(), &["add", "."]);
    let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
    git(main.path(), &[&identity[..], &["commit", "-qm", "one"]].concat());
    fs::write(main.path().join(".git/info/exclude"), "*.secret\n").unwrap();
    let linked = tempfile::tempdir().unwrap();
    let path = linked.path().join("tree");
    git(main.path(), &["worktree", "add", "-q", path.to_str().unwrap()]);
    let guard = open(&path, Policy::commit());
    assert_eq!(code(&guard, "b.rs"), None);
    assert_eq!(code(&guard, "x.secret"), Some(Code::Ignored), "info/exclude is the common directory's");
    assert_eq!(code(&guard, ".git"), Some(Code::DotGit));

    let source = main.path().to_str().unwrap();
    let outer = repository(&[]);
    git(outer.path(), &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source, "sub"]);
    assert_eq!(code(&open(&outer.path().join("sub"), Policy::commit()), "b.rs"), None);
    assert_eq!(code(&open(outer.path(), Policy::commit()), "sub/b.rs"), Some(Code::NestedRepository));
}

#[test]
fn a_submodule_that_is_not_checked_out_is_refused() {
    let scratch = repository(&[("sub/", "")]);
    let entry = format!("160000,{},sub", "1".repeat(40));
    git(scratch.path(), &["update-index", "--add", "--cacheinfo", &entry]);
    assert_eq!(code(&open(scratch.path(), Policy::new()), "sub/x"), Some(Code::NestedRepository));
}

#[test]
fn a_git_directory_is_no_root() {
    let scratch = repository(&[]);
    let bare = scratch.path().join("bare.git");
    git(scratch.path(), &["init", "-q", "--bare", "bare.git"]);
    for root in [bare.join("refs"), bare, scratch.path().join(".git"), scratch.path().join(".git/hooks")] {
        let error =
            Guard::open(&root, Policy::new().configuration(Configuration::RepositoryOnly)).unwrap_err();
        assert!(matches!(error, OpenError::NotAWorkTree { .. }), "{}: {error}", root.display());
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
            eprintln!("SKIPPED: a repository of another user because chown is not permitted here: {error}");
            return;
        }
    }
    let error =
        Guard::open(scratch.path(), Policy::new().configuration(Configuration::RepositoryOnly)).unwrap_err();
    assert!(matches!(error, OpenError::ForeignOwner { .. }), "{error}");
    assert!(error.to_string().contains("git config --global --add safe.directory"), "{error}");
}

#[test]
fn a_folder_that_cannot_be_opened_cannot_be_judged() {
    let scratch = repository(&[("closed/x", "")]);
    fs::set_permissions(scratch.path().join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(scratch.path().join("closed")).is_ok() {
        eprintln!("SKIPPED: a folder without permissions because this user may do everything");
        return;
    }
    assert_eq!(code(&open(scratch.path(), Policy::new()), "closed/x"), Some(Code::CannotJudge));
}

#[test]
fn a_hard_link_to_a_protected_file_is_refused_and_other_links_are_not() {
    let scratch = repository(&[
        ("build.sh", "x"),
        ("src/", ""),
        ("a.rs", "a"),
        (".gitignore", "/agent-config\n"),
        ("agent-config/key.txt", "k"),
    ]);
    let root = scratch.path();
    fs::hard_link(root.join("build.sh"), root.join("src/b.rs")).unwrap();
    fs::hard_link(root.join("agent-config/key.txt"), root.join("src/k.rs")).unwrap();
    fs::hard_link(root.join("a.rs"), root.join("src/c.rs")).unwrap();
    let guard = open(root, Policy::commit());
    assert_eq!(code(&guard, "src/b.rs"), Some(Code::ProtectedInode));
    assert_eq!(code(&guard, "src/k.rs"), Some(Code::ProtectedInode));
    assert_eq!(code(&guard, "src/c.rs"), None);
}

#[test]
fn an_admitted_path_says_what_was_there_and_what_has_to_be_made() {
    let scratch = repository(&[("src/a.rs", "a")]);
    fs::set_permissions(scratch.path().join("src/a.rs"), fs::Permissions::from_mode(0o640)).unwrap();
    let guard = open(scratch.path(), Policy::new());
    let old = admit(&guard, "src/a.rs");
    assert_eq!((old.folder_path(), old.name(), old.missing_folders().count()), ("src", "a.rs", 0));
    assert_eq!(old.before().unwrap().mode & 0o7777, 0o640);
    assert_eq!(old.before().unwrap().len, 1);
    let new = admit(&guard, "src/x/y/b.rs");
    assert_eq!((new.folder_path(), new.name()), ("src", "b.rs"));
    assert_eq!(new.missing_folders().collect::<Vec<_>>(), ["src/x", "src/x/y"]);
    assert!(new.before().is_none());
    let top = admit(&guard, "c.rs");
    assert_eq!((top.folder_path(), top.name()), ("", "c.rs"));
}

#[test]
fn files_that_run_code_elsewhere_are_flagged() {
    let scratch = repository(&[]);
    let guard = open(scratch.path(), Policy::new());
    for path in
        [".gitattributes", "a/.gitattributes", ".cargo/config.toml", ".github/workflows/ci.yml", "build.rs"]
    {
        assert!(admit(&guard, path).is_flagged(), "{path}");
    }
    for path in ["src/lib.rs", ".github/CODEOWNERS", "cargo/config.toml", "rebuild.rs"] {
        assert!(!admit(&guard, path).is_flagged(), "{path}");
    }
}

#[test]
fn the_codes_are_kebab_case_and_unique() {
    let mut codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert!(
        codes
            .iter()
            .all(|code| code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte == b'8'))
    );
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), Code::ALL.len());
}

#[test]
fn a_refusal_for_good_needs_no_disk() {
    let scratch = repository(&[(".gitignore", "*.log\n")]);
    let guard = open(scratch.path(), Policy::commit());
    assert_eq!(guard.refused_for_good("Cargo.LOCK").unwrap().code(), Code::Protected);
    assert_eq!(guard.refused_for_good("../x").unwrap().code(), Code::RelativeComponent);
    assert!(guard.refused_for_good("src/a.rs").is_none());
    assert!(guard.refused_for_good("a.log").is_none(), "ignore rules may change");
}
