//! Replies: every kind of refusal with its message, batches, scopes, preconditions.

use std::fs;
use std::os::unix::fs::symlink;

use code_commit_guard::{Code, Op, Policy, Request};
use insta::assert_snapshot;

use crate::tree::{check, open, render, repository};

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
    absolute-path: `/etc/passwd` is an absolute path; write it relative to the project's root, without a leading slash.
    relative-component: `../x` has a `.` or `..` component; write the path relative to the project's root.
    empty-component: `a//b` has an empty component (`//` or a trailing slash); separate names with single slashes.
    backslash: `a\\b` has a backslash; separate names with `/`.
    bidi-character: `a\u{202e}b` has a character that changes the writing direction; use a plain name.
    invisible-character: `a\u{200b}b` has an invisible character; use a plain name.
    reserved-character: `a:b` has one of the characters : * ? < > | "; use a plain name.
    trailing-dot-or-blank: `a.` has a component that ends in a dot or a blank; use a plain name.
    device-name: `NUL.txt` has a component that is a device name on Windows; use another name.
    dot-git: `x/.git/config` is or looks like git's own folder; leave it unchanged.
    protected: `.gitignore` is protected (what git ignores decides what may be written); leave it unchanged.
    protected: `Build.sh` is protected (the build decides whether the work is done); leave it unchanged.
    protected: `sub/UserSpecification.md` is protected (the user's specification); leave it unchanged.
    protected: `TESTS/it.rs` is protected (the configuration's `protect` list); leave it unchanged.
    ignored: `run.log` is ignored by git; leave it unchanged.
    protected: `target/x` is protected (build output); leave it unchanged.
    symlink: `link/x` is a symlink or passes through one; leave it unchanged.
    is-a-folder: `d/e` is a folder; use another name.
    spelled-differently: `readme.md` differs from `README.md` on disk only in spelling; use that exact name.
    confusable-character: `a\u{2215}b` has a character that looks like a slash, a backslash or a dot; use a plain name.
    empty-path: `` is empty; name a file.
    control-character: `\u{1b}[2J` has a control character; use a plain name.
    "#);
    assert_snapshot!(check(&guard, &["link", "src", "README.md/b"]), @r#"
    symlink: `link` is a symlink or passes through one; leave it unchanged.
    is-a-folder: `src` is a folder; use another name.
    not-a-folder: `README.md/b` passes through a file; use another name.
    "#);
}

#[test]
fn a_batch_is_judged_as_one() {
    let scratch = repository(&[]);
    let guard = open(scratch.path(), Policy::commit());
    assert_snapshot!(check(&guard, &["a", "a/b", "x.rs", "x.rs", "Dir/one", "dir/two", "é.rs", "e\u{301}.rs", "fine"]), @r#"
    file-and-folder: `a` conflicts with `a/b` in this reply, because one of them would be a folder; name only files.
    file-and-folder: `a/b` conflicts with `a` in this reply, because one of them would be a folder; name only files.
    duplicate: `x.rs` names the same file as `x.rs` in this reply; name each file only once.
    duplicate: `x.rs` names the same file as `x.rs` in this reply; name each file only once.
    duplicate: `Dir/one` names the same file as `dir/` in this reply; name each file only once.
    duplicate: `dir/two` names the same file as `Dir/` in this reply; name each file only once.
    duplicate: `é.rs` names the same file as `e\u{301}.rs` in this reply; name each file only once.
    duplicate: `e\u{301}.rs` names the same file as `é.rs` in this reply; name each file only once.
    ok fine
    "#);
    assert_snapshot!(check(&guard, &["r/HEAD", "r/objects/x", "r/refs/heads/main", "s/HEAD"]), @r#"
    nested-repository: `r/HEAD` is in a submodule or a nested repository; leave it unchanged.
    nested-repository: `r/objects/x` is in a submodule or a nested repository; leave it unchanged.
    nested-repository: `r/refs/heads/main` is in a submodule or a nested repository; leave it unchanged.
    ok s/HEAD
    "#);
}

#[test]
fn names_that_the_file_system_tells_apart_are_two_files() {
    let tells_apart = |name: &str, other: &str| {
        let scratch = repository(&[(name, "")]);
        !scratch.path().join(other).exists()
    };
    if !tells_apart("a", "A") || !tells_apart("\u{e9}", "e\u{301}") {
        eprintln!("SKIPPED: the file system of the tests does not tell names apart by case");
        return;
    }
    let scratch = repository(&[
        ("xt_MARK.h", "1"),
        ("xt_mark.h", "2"),
        ("Src/a", "1"),
        ("src/a", "2"),
        ("readme.md", "1"),
        ("caf\u{e9}", "1"),
    ]);
    let guard = open(scratch.path(), Policy::commit());
    assert_snapshot!(check(&guard, &["xt_MARK.h", "xt_mark.h", "Src/a", "src/a"]), @"
    ok xt_MARK.h
    ok xt_mark.h
    ok Src/a
    ok src/a
    ");
    // A rename by case, of a file and of a folder, and one to another Unicode form.
    let names = ["readme.md", "README.md", "cafe\u{301}", "caf\u{e9}"];
    let expected: Vec<String> = names.iter().map(|name| format!("ok {name}")).collect();
    assert_eq!(check(&guard, &names).lines().collect::<Vec<_>>(), expected);
    fs::remove_dir_all(scratch.path().join("Src")).unwrap();
    assert_snapshot!(check(&guard, &["src/a", "SRC/a", "SRC/b"]), @"
    ok src/a
    ok SRC/a
    ok SRC/b
    ");
    // Nothing tells what a file system makes of names that are both new.
    assert_snapshot!(check(&guard, &["New", "new", "xt_mark.h", "xt_mark.h", "XT_mark.h", "ReadMe.md"]), @"
    duplicate: `New` names the same file as `new` in this reply; name each file only once.
    duplicate: `new` names the same file as `New` in this reply; name each file only once.
    duplicate: `xt_mark.h` names the same file as `xt_mark.h` in this reply; name each file only once.
    duplicate: `xt_mark.h` names the same file as `xt_mark.h` in this reply; name each file only once.
    ok XT_mark.h
    spelled-differently: `ReadMe.md` differs from `readme.md` on disk only in spelling; use that exact name.
    ");
    fs::hard_link(
        scratch.path().join("readme.md"),
        scratch.path().join("ReadMe.md"),
    )
    .unwrap();
    assert_snapshot!(check(&guard, &["readme.md", "ReadMe.md"]), @"
    duplicate: `readme.md` names the same file as `ReadMe.md` in this reply; name each file only once.
    duplicate: `ReadMe.md` names the same file as `readme.md` in this reply; name each file only once.
    ");
}

#[test]
fn a_bare_repository_whose_parts_lie_elsewhere_is_refused() {
    let scratch = repository(&[
        ("h/HEAD", "ref: refs/heads/main"),
        ("c/commondir", "../store"),
        ("x/commondir", "x"),
    ]);
    let guard = open(scratch.path(), Policy::commit());
    let reply = [
        "w/HEAD",
        "w/CommonDir",
        "w/config.worktree",
        "store/config",
        "h/commondir",
        "c/HEAD",
        "x/y/HEAD",
    ];
    assert_snapshot!(check(&guard, &reply), @r#"
    nested-repository: `w/HEAD` is in a submodule or a nested repository; leave it unchanged.
    nested-repository: `w/CommonDir` is in a submodule or a nested repository; leave it unchanged.
    nested-repository: `w/config.worktree` is in a submodule or a nested repository; leave it unchanged.
    ok store/config
    nested-repository: `h/commondir` is in a submodule or a nested repository; leave it unchanged.
    nested-repository: `c/HEAD` is in a submodule or a nested repository; leave it unchanged.
    ok x/y/HEAD
    "#);
}

#[test]
fn a_scope_admits_what_it_names_and_nothing_else() {
    let scratch = repository(&[(".gitignore", "*.log\n"), ("src/a.rs", "a")]);
    let allowed = [
        "src/a.rs",
        "Cargo.lock",
        "a.log",
        ".git/config",
        ".code-commit/x",
        "code-commit.toml",
    ];
    let guard = open(
        scratch.path(),
        Policy::scoped(allowed).protect(["Cargo.lock"]),
    );
    assert_snapshot!(check(&guard, &["src/a.rs", "src/b.rs", "Src/a.rs", "Cargo.lock", "a.log", ".git/config", ".code-commit/x", "code-commit.toml"]), @r#"
    ok src/a.rs
    out-of-scope: `src/b.rs` is not one of the files that this task may change; change only those.
    out-of-scope: `Src/a.rs` is not one of the files that this task may change; change only those.
    protected: `Cargo.lock` is protected (the configuration's `protect` list); leave it unchanged.
    ok a.log
    dot-git: `.git/config` is or looks like git's own folder; leave it unchanged.
    protected: `.code-commit/x` is protected (the harness's own state); leave it unchanged.
    protected: `code-commit.toml` is protected (the harness's configuration); leave it unchanged.
    "#);
}

#[test]
fn a_base_that_is_not_the_file_of_now_is_stale() {
    let scratch = repository(&[("a.rs", "one")]);
    let guard = open(scratch.path(), Policy::new());
    let hash = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let judge = |path: &'static str, base: &str| {
        let request = Request {
            path: path.as_bytes(),
            op: Op::Write,
            base_sha256: Some(base),
        };
        render(&guard.judge(&[request]).unwrap())
    };
    for no_hash in [
        "",
        &hash.to_uppercase(),
        hash.trim_start_matches('7'),
        &format!("{hash}0"),
    ] {
        assert!(
            judge("a.rs", no_hash).starts_with("stale-base: `a.rs`"),
            "{no_hash}"
        );
    }
    assert_eq!(judge("a.rs", hash), "ok a.rs");
    assert_eq!(judge("new.rs", empty), "ok new.rs");
    assert!(judge("new.rs", hash).starts_with("stale-base: `new.rs`"));
    fs::write(scratch.path().join("a.rs"), "two").unwrap();
    assert!(judge("a.rs", hash).starts_with("stale-base: `a.rs`"));
}

#[test]
fn the_codes_are_kebab_case_and_unique() {
    let mut codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let is_kebab = |code: &str| {
        code.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    assert!(
        codes
            .iter()
            .all(|code| is_kebab(code) || *code == "not-utf8"),
        "{codes:?}"
    );
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), Code::ALL.len());
}

#[test]
fn a_class_of_characters_protects_what_it_matches_as_it_is_written() {
    let scratch = repository(&[("Deep/NOTES", ""), ("Deep/notes", "")]);
    let lists = [
        ("[[:upper:]]*", "Readme", "readme"),
        ("[!a-z]*", "Readme", "readme"),
        ("a[[:upper:]]c", "aBc", "abc"),
        ("[A-Z]x", "bx", "1x"),
        ("a???b", "aﬁb", "afib"),
        ("[[:alpha:]]*\n![[:upper:]]*", "readme", "1"),
    ];
    for (list, covered, free) in lists {
        let policy = Policy::new().protect([list]);
        assert_eq!(
            policy.refuses(covered).map(|refusal| refusal.code()),
            Some(Code::Protected),
            "{list}"
        );
        assert!(policy.refuses(free).is_none(), "{list}");
    }
    let guard = open(scratch.path(), Policy::new());
    assert_eq!(
        guard.existing(["/[[:upper:]]*/[[:upper:]]*"]).unwrap(),
        ["Deep/NOTES"]
    );
}

#[test]
fn a_refusal_for_good_needs_no_disk() {
    let scratch = repository(&[(".gitignore", "*.log\n")]);
    let guard = open(scratch.path(), Policy::commit());
    assert_eq!(
        guard.refused_for_good("Cargo.LOCK").unwrap().code(),
        Code::Protected
    );
    assert_eq!(
        guard.refused_for_good("../x").unwrap().code(),
        Code::RelativeComponent
    );
    assert!(guard.refused_for_good("src/a.rs").is_none());
    assert!(
        guard.refused_for_good("a.log").is_none(),
        "ignore rules may change"
    );
}
