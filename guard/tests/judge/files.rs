//! Files on disk, and what an admitted path reports about them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use code_commit_guard::{Code, Policy};

use crate::tree::{admit, as_nobody, code, open, repository};

#[test]
fn a_folder_that_cannot_be_opened_cannot_be_judged() {
    let scratch = repository(&[("closed/x", "")]);
    let guard = open(scratch.path(), Policy::new());
    let judged = as_nobody(scratch.path(), ("closed", 0o000), || {
        code(&guard, "closed/x")
    });
    assert!(judged.is_none_or(|code| code == Some(Code::CannotJudge)));
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
fn a_hard_link_to_a_protected_file_is_refused_with_few_descriptors_too() {
    const CHILD: &str = "GUARD_TEST_FEW_DESCRIPTORS";
    if std::env::var_os(CHILD).is_none() {
        let name = "files::a_hard_link_to_a_protected_file_is_refused_with_few_descriptors_too";
        let child = std::process::Command::new("sh")
            .args(["-c", "ulimit -n 200 && exec \"$0\" --exact \"$1\""])
            .arg(std::env::current_exe().unwrap())
            .arg(name)
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert!(
            child.status.success(),
            "{}",
            String::from_utf8_lossy(&child.stdout)
        );
        return;
    }
    let scratch = repository(&[("src/", "")]);
    let root = scratch.path();
    (0..400).for_each(|n| fs::create_dir(root.join(format!("d{n}"))).unwrap());
    let links = (0..400)
        .step_by(40)
        .map(|n| (root.join(format!("d{n}/.gitignore")), format!("src/{n}.rs")));
    for (protected, link) in links.clone() {
        fs::File::create(&protected).unwrap();
        fs::hard_link(protected, root.join(link)).unwrap();
    }
    let guard = open(root, Policy::commit());
    for (_, link) in links {
        assert_eq!(code(&guard, &link), Some(Code::ProtectedInode), "{link}");
    }
}

#[test]
fn a_hard_link_to_a_file_too_deep_to_be_judged_is_refused() {
    let deep = format!("{}f", "d/".repeat(70));
    let scratch = repository(&[(&deep, "x"), ("src/", "")]);
    fs::hard_link(scratch.path().join(&deep), scratch.path().join("src/b.rs")).unwrap();
    let guard = open(scratch.path(), Policy::commit());
    assert_eq!(code(&guard, "src/b.rs"), Some(Code::ProtectedInode));
}

#[test]
fn an_admitted_path_says_what_was_there_and_what_has_to_be_made() {
    let scratch = repository(&[("src/a.rs", "a")]);
    fs::set_permissions(
        scratch.path().join("src/a.rs"),
        fs::Permissions::from_mode(0o640),
    )
    .unwrap();
    let guard = open(scratch.path(), Policy::new());
    let old = admit(&guard, "src/a.rs");
    assert_eq!(
        (old.folder_path(), old.name(), old.missing_folders().count()),
        ("src", "a.rs", 0)
    );
    assert_eq!(old.before().unwrap().mode & 0o7777, 0o640);
    assert_eq!(old.before().unwrap().len, 1);
    let new = admit(&guard, "src/x/y/b.rs");
    assert_eq!((new.folder_path(), new.name()), ("src", "b.rs"));
    assert_eq!(
        new.missing_folders().collect::<Vec<_>>(),
        ["src/x", "src/x/y"]
    );
    assert!(new.before().is_none());
    let top = admit(&guard, "c.rs");
    assert_eq!((top.folder_path(), top.name()), ("", "c.rs"));
}

#[test]
fn files_that_run_code_elsewhere_are_flagged() {
    let scratch = repository(&[]);
    let guard = open(scratch.path(), Policy::new());
    for path in [
        ".gitattributes",
        "a/.gitattributes",
        ".cargo/config.toml",
        ".github/workflows/ci.yml",
        "build.rs",
        ".claude/settings.json",
        ".claude/hooks/pre.sh",
        "web/.mcp.json",
        ".gemini/settings.json",
        ".codex/config.toml",
        ".vscode/tasks.json",
        ".husky/pre-commit",
        ".pre-commit-config.yaml",
        ".ENVRC",
        ".abl/builder.md",
    ] {
        assert!(admit(&guard, path).is_flagged(), "{path}");
    }
    for path in [
        "src/lib.rs",
        ".github/CODEOWNERS",
        "cargo/config.toml",
        "rebuild.rs",
        "claude/x",
        "vscode/tasks.json",
    ] {
        assert!(!admit(&guard, path).is_flagged(), "{path}");
    }
}

#[test]
fn what_our_own_loops_would_run_is_refused_at_every_level() {
    let scratch = repository(&[]);
    for policy in [Policy::new(), Policy::commit()] {
        let guard = open(scratch.path(), policy);
        for path in [
            ".abl/abl.config.yaml",
            ".cuggino.json",
            "sub/.cuggino.json",
            "sub/.ABL/abl.config.yaml",
        ] {
            assert_eq!(code(&guard, path), Some(Code::Protected), "{path}");
        }
    }
    // A work order is the user's decision; its files still deserve a review.
    let scoped = open(scratch.path(), Policy::scoped([".cuggino.json"]));
    assert!(admit(&scoped, ".cuggino.json").is_flagged());
}

#[test]
fn the_first_loop_may_write_what_only_the_second_one_refuses() {
    let scratch = repository(&[(".gitignore", "/agent-config\n*.log\n")]);
    for (path, refusal) in [
        (".gitignore", Code::Protected),
        ("sub/.gitignore", Code::Protected),
        ("Cargo.lock", Code::Protected),
        ("target/x", Code::Protected),
        ("codeRollup.sh", Code::Protected),
        ("docs/UserSpecification.md", Code::Protected),
        ("made.log", Code::Ignored),
    ] {
        let code = |policy| code(&open(scratch.path(), policy), path);
        assert_eq!(code(Policy::commit()), Some(refusal), "{path}");
        assert_eq!(code(Policy::implement()), None, "{path}");
    }
    for path in ["build.sh", "agent-config/query.txt", "code-commit.toml"] {
        let guard = open(scratch.path(), Policy::implement());
        assert_eq!(code(&guard, path), Some(Code::Protected), "{path}");
    }
}

#[test]
fn the_records_of_the_first_loop_are_protected_in_it_alone() {
    let scratch = repository(&[]);
    for path in ["logs/app.rs", "llm-user-output.txt"] {
        assert_eq!(
            code(&open(scratch.path(), Policy::implement()), path),
            Some(Code::Protected),
            "{path}"
        );
        assert_eq!(
            code(&open(scratch.path(), Policy::commit()), path),
            None,
            "{path}"
        );
    }
    assert_eq!(
        code(
            &open(scratch.path(), Policy::implement()),
            "src/logs/app.rs"
        ),
        None
    );
}
