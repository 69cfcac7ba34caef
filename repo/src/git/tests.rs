#![expect(
    clippy::disallowed_methods,
    reason = "the tests make their repositories with git and plain writes"
)]

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::WorkTree;
use crate::tests::scratch::Scratch;

impl Scratch {
    /// With two files in one commit.
    pub(super) fn with_files() -> Self {
        let (kept, changed) = (("kept", "one\n"), ("folder/changed", "one\n"));
        Self::with(&[kept, changed, (".gitignore", "/ignored\n")])
    }

    /// The same, and git in it.
    pub(super) fn with_git() -> (Self, Git) {
        let scratch = Self::with_files();
        let git = scratch.hardened(&[]);
        (scratch, git)
    }

    pub(super) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path().join(path)).unwrap()
    }

    /// With only PATH from the user's environment.
    pub(super) fn hardened(&self, more: &[(&str, &str)]) -> Git {
        let path = ("PATH".into(), std::env::var_os("PATH").unwrap());
        let more = more
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Git::new(self.path(), "git", [path].into_iter().chain(more))
    }
}

/// Moves what is in a rollback's way to a folder that stays.
pub(super) fn moved(path: &Path) -> std::io::Result<()> {
    let folder = tempfile::tempdir()?.keep();
    match fs::rename(path, folder.join("aside")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

pub(super) const NONE: &[&str] = &[];

pub(super) const ME: Option<Identity<'_>> = Some(Identity {
    name: "Harness",
    email: "harness@example.invalid",
});

#[test]
fn a_rollback_brings_files_index_and_branch_back_and_leaves_ignored_files_alone() {
    let (scratch, git) = Scratch::with_git();
    let (commit, head) = (git.commit_of("HEAD").unwrap().unwrap(), git.head().unwrap());
    assert_eq!(head, Head::Branch("refs/heads/main".to_owned()));
    scratch.write("ignored", "mine");
    scratch.git(&["checkout", "-q", "-b", "other"]);
    scratch.write("kept", "two\n");
    scratch.git(&["commit", "-qam", "stray"]);
    scratch.git(&["rm", "-q", "folder/changed"]);
    scratch.write("new/deep/file", "x");
    scratch.write("nested/file", "x");
    scratch.git(&["init", "-q", "nested"]);
    git.roll_back(&head, &commit, &mut moved).unwrap();
    assert_eq!(
        (scratch.read("kept"), scratch.read("folder/changed")),
        ("one\n".to_owned(), "one\n".to_owned())
    );
    assert_eq!(
        (git.head().unwrap(), git.commit_of("HEAD").unwrap()),
        (head, Some(commit))
    );
    assert!(!scratch.path().join("new").exists() && !scratch.path().join("nested").exists());
    assert_eq!(scratch.read("ignored"), "mine");
    assert_eq!(git.dirty().unwrap(), Vec::<String>::new());
}

#[test]
fn what_differs_is_named_as_it_is_spelled() {
    let scratch = Scratch::with_files();
    scratch.write("kept", "two, longer\n");
    scratch.write("new folder/ü \"quoted\"", "x");
    scratch.write("staged", "x");
    scratch.git(&["add", "staged"]);
    let mut dirty = scratch.hardened(&[]).dirty().unwrap();
    dirty.sort();
    assert_eq!(dirty, ["kept", "new folder/ü \"quoted\"", "staged"]);
}

#[test]
fn the_last_commits_are_listed_with_their_messages_and_files() {
    let (scratch, git) = Scratch::with_git();
    for (path, text) in [("below/b", "1"), ("below/a", "1"), ("below/b", "2")] {
        scratch.write(path, text);
        git.commit_paths(&[path], &format!("{path} is {text}"), ME)
            .unwrap();
    }
    let below = git.last_commits(Path::new("below"), 2).unwrap();
    let of = |commit: &(String, Vec<PathBuf>)| (commit.0.trim().to_owned(), commit.1.clone());
    let expected = [("below/b is 2", "b"), ("below/a is 1", "a")];
    assert_eq!(
        below.iter().map(of).collect::<Vec<_>>(),
        expected.map(|(message, path)| (message.to_owned(), vec![PathBuf::from(path)]))
    );
    let all = git.last_commits(Path::new(""), 1).unwrap();
    assert_eq!(
        all.first().map(|(_, files)| files.clone()),
        Some(vec![PathBuf::from("below/b")])
    );
}

#[test]
fn why_a_repository_cannot_be_opened_stands_on_one_line() {
    let scratch = Scratch::new();
    scratch.write(".git/config", "[core\n\u{1b}[2J");
    let error = WorkTree::at(scratch.path()).unwrap_err().to_string();
    assert!(
        error.contains(r"[core\n") && !error.contains(char::is_control),
        "{error:?}"
    );
}

#[test]
fn nothing_of_the_repository_is_started() {
    let scratch = Scratch::with_files();
    let trap = scratch.path().join("ignored");
    for hook in [
        "pre-commit",
        "post-commit",
        "post-index-change",
        "reference-transaction",
        "commit-msg",
    ] {
        let path = format!(".git/hooks/{hook}");
        scratch.write(&path, &format!("#!/bin/sh\ntouch {}\n", trap.display()));
        fs::set_permissions(scratch.path().join(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
    for setting in ["core.fsmonitor", "core.pager", "core.editor", "gpg.program"] {
        scratch.git(&[
            "-c",
            "core.hooksPath=/dev/null",
            "config",
            setting,
            &format!("touch {} #", trap.display()),
        ]);
    }
    scratch
        .git_line("-c core.hooksPath=/dev/null -c core.fsmonitor=false config commit.gpgsign true");
    let _ = fs::remove_file(&trap);
    let git = scratch.hardened(&[]);
    scratch.write("kept", "two, longer\n");
    git.commit_paths(&["kept"], "m", ME).unwrap();
    let commit = git.commit_of("HEAD").unwrap().unwrap();
    scratch.write("kept", "three, longer\n");
    git.roll_back(&git.head().unwrap(), &commit, &mut moved)
        .unwrap();
    assert!(!trap.exists());
}

#[test]
fn a_message_is_committed_as_it_is_whatever_is_set() {
    let scratch = Scratch::with_files();
    scratch.git(&["config", "commit.cleanup", "strip"]);
    let git = scratch.hardened(&[]);
    scratch.write("kept", "two, longer\n");
    git.commit_paths(&["kept"], "# One\n\nis done", ME).unwrap();
    git.commit_all(NONE, "# Two", ME).unwrap();
    assert_eq!(
        scratch.git(&["log", "-2", "--format=%B%n--"]),
        "# Two\n\n--\n# One\n\nis done\n\n--\n"
    );
}

#[test]
fn a_commit_holds_the_paths_that_are_named_and_no_others() {
    let (scratch, git) = Scratch::with_git();
    scratch.write("new *", "x");
    scratch.write("new other", "x");
    fs::remove_file(scratch.path().join("kept")).unwrap();
    let made = git
        .commit_paths(&["new *", "kept"], "the message", ME)
        .unwrap();
    assert_eq!(
        scratch.git(&["show", "--format=%an %s", "--name-status", "-z", &made]),
        "Harness the message\0\nD\0kept\0A\0new *\0"
    );
    assert_eq!(git.dirty().unwrap(), ["new other"]);
}

#[test]
fn a_commit_since_another_is_found_behind_those_that_came_later() {
    let (scratch, git) = Scratch::with_git();
    let base = git.commit_of("HEAD").unwrap();
    let found = |since: Option<&str>, line: &str| git.commit_since(since, line).unwrap();
    git.commit_all(NONE, "another", ME).unwrap();
    scratch.write("kept", "two, longer\n");
    let made = git
        .commit_paths(&["kept"], "Title\n\nRun: a.b\n", ME)
        .unwrap();
    git.commit_all(NONE, "Run: a.b is not its last line\n\nof this one", ME)
        .unwrap();
    assert_eq!(found(base.as_deref(), "Run: a.b"), Some(made.clone()));
    assert_eq!(
        found(None, "Run: a.b"),
        Some(made.clone()),
        "in a repository that had no commit then"
    );
    assert_eq!(found(base.as_deref(), "Run: aXb"), None, "a dot is a dot");
    assert_eq!(found(Some(&made), "Run: a.b"), None);
    let empty = tempfile::tempdir().unwrap();
    git.at(empty.path()).init().unwrap();
    assert_eq!(
        git.at(empty.path()).commit_since(None, "Run: a.b").unwrap(),
        None
    );
}

#[test]
fn a_commit_from_a_folder_below_the_top_is_of_the_paths_below_it() {
    let scratch = Scratch::with_files();
    let git = scratch.hardened(&[]).at(scratch.path().join("folder"));
    for path in ["kept", "changed", "folder/kept", "folder/changed"] {
        scratch.write(path, "two, longer\n");
    }
    let made = git.commit_paths(&["kept", "changed"], "m", ME).unwrap();
    assert_eq!(
        scratch.git(&["show", "--format=", "--name-status", &made]),
        "M\tfolder/changed\nA\tfolder/kept\n"
    );
    assert_eq!(
        scratch.git(&["status", "--porcelain"]),
        " M kept\n?? changed\n"
    );
}

#[test]
fn a_failed_commit_is_named_so_whatever_settings_go_before_it() {
    let scratch = Scratch::with_files();
    let error = scratch
        .hardened(&[])
        .commit_paths(&["kept"], "m", ME)
        .unwrap_err();
    assert!(
        matches!(&error, GitError::Failed { command, .. } if command == "commit"),
        "{error}"
    );
}

#[test]
fn what_git_cannot_tell_is_no_answer() {
    let scratch = Scratch::with_files();
    scratch.write(".git/HEAD", "nonsense\n");
    let git = scratch.hardened(&[]);
    assert!(git.head().is_err() && git.commit_of("HEAD").is_err());
}

#[test]
fn a_commit_of_everything_leaves_out_what_is_excluded_and_may_be_empty() {
    let (scratch, git) = Scratch::with_git();
    scratch.write("state/session", "x");
    scratch.write("new", "x");
    let made = git.commit_all(&["state"], "m", ME).unwrap();
    assert_eq!(
        scratch.git(&["show", "--format=", "--name-only", &made]),
        "new\n"
    );
    assert_eq!(git.dirty().unwrap(), ["state/session"]);
    assert_ne!(git.commit_all(&["state"], "again", ME).unwrap(), made);
}

#[test]
fn more_paths_than_a_command_line_holds_are_committed() {
    let (scratch, git) = Scratch::with_git();
    let deep = vec!["x".repeat(250); 12].join("/");
    // About three megabytes; a command line holds two.
    let paths: Vec<String> = (0..1_000)
        .map(|number| format!("{deep}/{number:04}"))
        .collect();
    paths.iter().for_each(|path| scratch.write(path, ""));
    git.commit_paths(&paths, "m", ME).unwrap();
    assert_eq!(git.dirty().unwrap(), Vec::<String>::new());
    fs::remove_dir_all(scratch.path().join("x".repeat(250))).unwrap();
    let made = git.commit_paths(&paths, "gone", ME).unwrap();
    assert_eq!(
        scratch
            .git(&["ls-tree", "-r", "--name-only", &made])
            .lines()
            .count(),
        3
    );
}

#[test]
fn a_name_that_is_not_utf_8_is_committed_and_left_out_as_it_is() {
    let (scratch, git) = Scratch::with_git();
    let names = [&b"caf\xe9"[..], b"th\xe9"].map(|name| Path::new(OsStr::from_bytes(name)));
    for name in names {
        fs::write(scratch.path().join(name), "x").unwrap();
    }
    let [first, second] = names;
    let made = git.commit_paths(&[first], "m", ME).unwrap();
    assert_eq!(
        scratch.git(&["show", "--format=", "--name-only", &made]),
        "\"caf\\351\"\n"
    );
    git.commit_all(&[second], "m", ME).unwrap();
    assert_eq!(git.dirty().unwrap(), ["th\u{fffd}"]);
    let status = scratch.tree().status(&git).unwrap();
    assert_eq!(status.dirty, [second]);
}

#[test]
fn a_fallback_name_counts_only_where_there_is_none() {
    let scratch = Scratch::with_files();
    let author = |git: &Git| {
        git.commit_all(NONE, "m", ME).unwrap();
        scratch.git(&["log", "-1", "--format=%an %cn"])
    };
    assert_eq!(author(&scratch.hardened(&[])), "Harness Harness\n");
    let named = [
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@x"),
        ("GIT_COMMITTER_NAME", "C"),
        ("GIT_COMMITTER_EMAIL", "c@x"),
    ];
    assert_eq!(author(&scratch.hardened(&named)), "A C\n");
    scratch.git(&["config", "user.name", "Mine"]);
    scratch.git(&["config", "user.email", "mine@x"]);
    assert_eq!(author(&scratch.hardened(&[])), "Mine Mine\n");
}

#[test]
fn other_git_variables_do_not_reach_git() {
    let scratch = Scratch::with_files();
    let elsewhere = Scratch::with_files();
    let git_dir = elsewhere.path().join(".git");
    let git = scratch.hardened(&[
        ("GIT_DIR", git_dir.to_str().unwrap()),
        ("GIT_INDEX_FILE", "/nowhere"),
    ]);
    scratch.write("new", "x");
    assert_eq!(git.dirty().unwrap(), ["new"]);
}

#[test]
fn a_name_that_looks_like_a_flag_is_a_name() {
    let (_scratch, git) = Scratch::with_git();
    assert_eq!(git.commit_of("--help").unwrap(), None);
    assert!(matches!(git.reset("--soft"), Err(GitError::Failed { .. })));
}

/// A commit that cannot be checked out: its file's content is missing from the repository.
pub(super) fn commit_without_its_file(scratch: &Scratch) -> String {
    scratch.git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("100644,{},gone", "1".repeat(40)),
    ]);
    let tree = scratch.git(&["write-tree", "--missing-ok"]);
    scratch.git(&["read-tree", "HEAD"]);
    scratch
        .git(&["commit-tree", tree.trim(), "-m", "gone"])
        .trim()
        .to_owned()
}

#[test]
fn a_failure_says_what_git_said() {
    let (scratch, git) = Scratch::with_git();
    let error = git.roll_back(
        &git.head().unwrap(),
        &commit_without_its_file(&scratch),
        &mut moved,
    );
    let error = error.unwrap_err();
    let GitError::Failed {
        command, message, ..
    } = error
    else {
        panic!("{error}")
    };
    assert!(
        command == "checkout-index" && message.contains("unable to read"),
        "{command}: {message}"
    );
    let gone = Git::new(scratch.path().join("gone"), "git", []);
    assert!(matches!(
        gone.dirty(),
        Err(GitError::Open(OpenError::Unreadable { .. }))
    ));
}

#[test]
fn a_repository_that_names_its_objects_by_sha256_is_usable() {
    let scratch = Scratch::initialised(&["--object-format=sha256"]);
    scratch.write("file", "one");
    scratch.commit();
    let tree = scratch.tree();
    assert_eq!(
        tree.head().unwrap().unwrap(),
        scratch.git(&["rev-parse", "HEAD"]).trim()
    );
    assert!(tree.dirty().unwrap().is_empty());
    scratch.write("file", "two, longer");
    assert_eq!(tree.dirty().unwrap(), ["file"]);
    let git = scratch.hardened(&[]);
    let commit = git.commit_of("HEAD").unwrap().unwrap();
    git.roll_back(&git.head().unwrap(), &commit, &mut moved)
        .unwrap();
    assert!(tree.dirty().unwrap().is_empty());
}

/// Somebody saves files while a rollback is at work: each is there, or where it was moved.
#[test]
fn a_rollback_loses_no_file_that_somebody_saves_meanwhile() {
    let (scratch, git) = Scratch::with_git();
    let aside = tempfile::tempdir().unwrap();
    let saves = || (0..1000).for_each(|number| scratch.write(&format!("new-{number}"), "x"));
    std::thread::scope(|scope| {
        let person = scope.spawn(saves);
        let mut number = 0;
        while !person.is_finished() {
            git.roll_back(&git.head().unwrap(), "HEAD", &mut |path| {
                number += 1;
                // A file that is only tracked, or gone.
                if !path.exists() {
                    return Ok(());
                }
                let folder = aside.path().join(number.to_string());
                fs::create_dir(&folder)?;
                fs::rename(path, folder.join(path.file_name().unwrap()))
            })
            .unwrap();
        }
    });
    let folders = fs::read_dir(aside.path()).unwrap();
    let moved: std::collections::HashSet<_> = folders
        .flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|file| file.unwrap().file_name())
        .collect();
    let is_lost = |number: &u32| {
        let name = format!("new-{number}");
        !scratch.path().join(&name).exists() && !moved.contains(&*OsString::from(name))
    };
    assert_eq!((0..1000).filter(is_lost).collect::<Vec<_>>(), [0; 0]);
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_committed_if_it_is_there_again() {
    let scratch = Scratch::with_files();
    scratch.git(&["sparse-checkout", "set", "other"]);
    assert!(!scratch.path().join("folder").exists());
    scratch.write("folder/changed", "two\n");
    scratch.write("folder/new", "1\n");
    scratch.git(&["update-index", "--skip-worktree", "kept"]);
    scratch.write("kept", "two\n");
    let git = scratch.hardened(&[]);
    git.commit_paths(&["folder/changed", "kept"], "some", ME)
        .unwrap();
    git.commit_all(NONE, "all", ME).unwrap();
    let listed = scratch.git(&["log", "--format=%s", "--name-only", "-2"]);
    let expected = "all\n\nfolder/new\nsome\n\nfolder/changed\nkept\n";
    assert_eq!(listed, expected);
}

#[test]
fn a_commit_is_taken_back_unless_another_one_was_made_since() {
    let (scratch, git) = Scratch::with_git();
    let before = git.commit_of("HEAD").unwrap();
    scratch.write("kept", "two\n");
    let first = git.commit_paths(&["kept"], "first", ME).unwrap();
    git.take_back(&first).unwrap();
    assert_eq!(git.commit_of("HEAD").unwrap(), before);
    assert_eq!(scratch.read("kept"), "two\n");
    let first = git.commit_paths(&["kept"], "first", ME).unwrap();
    let second = git.commit_nothing("second", ME).unwrap();
    git.take_back(&first).unwrap_err();
    assert_eq!(git.commit_of("HEAD").unwrap(), Some(second));
}
