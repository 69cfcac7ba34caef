#![expect(
    clippy::disallowed_methods,
    reason = "the tests make the locks of another git with plain writes"
)]

use std::os::unix::fs::PermissionsExt as _;
use std::time::SystemTime;

use super::*;
use crate::git::tests::{commit_without_its_file, moved};
use crate::tests::scratch::Scratch;

fn lock(scratch: &Scratch) -> PathBuf {
    scratch.path().join(".git/index.lock")
}

fn roll_back(git: &Git) -> Result<(), GitError> {
    git.roll_back(&git.head()?, "HEAD", &mut moved)
}

/// Makes a program `git` of these words.
fn program(folder: &tempfile::TempDir, words: &str) -> PathBuf {
    let git = folder.path().join("git");
    fs::write(&git, words).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    git
}

/// The content of a lock of ours, with the process ID of a dead git.
const LEFT: &str =
    "code-commit is rolling back; what it leaves here is removed when it is next started\n4194304";

#[test]
fn a_lock_that_a_killed_rollback_has_left_is_no_obstacle() {
    let scratch = Scratch::with_files();
    scratch.write("kept", "two\n");
    scratch.git(&["add", "-A"]);
    for left in [LEFT, LEFT.trim_end_matches("4194304")] {
        fs::write(lock(&scratch), left).unwrap();
        fs::write(scratch.path().join(".git/index.code-commit.lock"), "half").unwrap();
        roll_back(&scratch.hardened(&[])).unwrap();
        assert_eq!(scratch.read("kept"), "one\n");
        assert_eq!(scratch.git(&["status", "--porcelain"]), "");
        assert!(
            !lock(&scratch).exists() && !scratch.path().join(".git/index.code-commit").exists()
        );
    }
}

#[test]
fn a_git_that_is_dead_but_not_yet_reaped_is_not_waited_for() {
    let (scratch, beside) = (Scratch::with_files(), tempfile::tempdir().unwrap());
    scratch.write("kept", "two\n");
    let git = program(&beside, "#!/bin/sh\n");
    let mut dead = std::process::Command::new(&git).spawn().unwrap();
    let stat = || fs::read_to_string(format!("/proc/{}/stat", dead.id())).unwrap();
    while !stat().contains(" (git) Z") {
        std::thread::yield_now();
    }
    let left = LEFT.replace("4194304", &dead.id().to_string());
    fs::write(lock(&scratch), left).unwrap();
    roll_back(&scratch.hardened(&[])).unwrap();
    assert_eq!(scratch.read("kept"), "one\n");
    dead.wait().unwrap();
}

/// A git that waits until the lock names it before it works on the index.
const WAITS: &str = "#!/bin/sh
case \"$*\" in *--mixed*|*checkout-index*)
    n=0
    until test \"$(tail -n 1 '[LOCK]')\" = $$ || test $n = 500; do n=$((n + 1)); sleep 0.02; done
    test $n = 500 || echo noted >> '[HERE]/said'
esac
PATH='[PATH]' exec git \"$@\"
";

#[test]
fn each_git_that_works_for_a_rollback_is_noted_in_its_lock() {
    let (scratch, beside) = (Scratch::with_files(), tempfile::tempdir().unwrap());
    scratch.write("kept", "two\n");
    let here = beside.path().display().to_string();
    let path = std::env::var("PATH").unwrap();
    let words = WAITS.replace("[LOCK]", lock(&scratch).to_str().unwrap());
    let words = words.replace("[HERE]", &here).replace("[PATH]", &path);
    program(&beside, &words);
    roll_back(&scratch.hardened(&[("PATH", &format!("{here}:{path}"))])).unwrap();
    assert_eq!(
        fs::read_to_string(beside.path().join("said")).unwrap(),
        "noted\nnoted\n"
    );
    assert_eq!(scratch.read("kept"), "one\n");
}

#[test]
fn a_lock_of_another_git_is_waited_for() {
    let scratch = Scratch::with_files();
    scratch.write("kept", "two\n");
    fs::write(lock(&scratch), "").unwrap();
    let git = scratch.hardened(&[]);
    let reset = std::thread::spawn(move || roll_back(&git));
    fs::remove_file(lock(&scratch)).unwrap();
    reset.join().unwrap().unwrap();
    assert_eq!(scratch.read("kept"), "one\n");
}

/// Git trusts size and times of a file that is older than the index, and a copy of the index would be younger.
#[test]
fn a_file_that_was_changed_in_the_moment_of_the_last_commit_is_reset() {
    let scratch = Scratch::with_files();
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let set = |name: &str| {
        fs::File::options()
            .append(true)
            .open(scratch.path().join(name))
            .unwrap()
            .set_modified(then)
            .unwrap();
    };
    // Inodes and the times of metadata, which nobody can set, do not count.
    scratch.git(&["config", "core.checkStat", "minimal"]);
    scratch.git(&["config", "core.trustctime", "false"]);
    set("kept");
    scratch.git(&["update-index", "--refresh"]);
    scratch.write("kept", "two\n");
    set("kept");
    set(".git/index");
    roll_back(&scratch.hardened(&[])).unwrap();
    assert_eq!(scratch.read("kept"), "one\n");
}

#[test]
fn a_lock_of_another_git_is_never_removed_and_named_with_a_hint() {
    let check = |content: &str| {
        let scratch = Scratch::with_files();
        scratch.write("kept", "two\n");
        fs::write(lock(&scratch), content).unwrap();
        let error = roll_back(&scratch.hardened(&[])).unwrap_err().to_string();
        let path = lock(&scratch).display().to_string();
        assert!(error.contains(&path), "{error}");
        assert!(error.contains("remove that file"), "{error}");
        let left = fs::read_to_string(lock(&scratch)).unwrap();
        assert_eq!(
            (left.as_str(), scratch.read("kept").as_str()),
            (content, "two\n")
        );
    };
    std::thread::scope(|scope| {
        for content in ["", "DIRC", "code-commit is rolling back"] {
            scope.spawn(move || check(content));
        }
    });
}

#[test]
fn a_rollback_that_fails_leaves_no_lock() {
    let (scratch, git) = Scratch::with_git();
    git.roll_back(
        &git.head().unwrap(),
        &commit_without_its_file(&scratch),
        &mut moved,
    )
    .unwrap_err();
    assert!(!lock(&scratch).exists());
}

#[test]
fn whatever_a_killed_rollback_has_left_beside_the_index_is_swept_unless_its_git_is_at_work() {
    let scratch = Scratch::with_files();
    let folder = scratch.path().join(".git");
    let names = || {
        let names = fs::read_dir(&folder)
            .unwrap()
            .map(|one| one.unwrap().file_name());
        let mut names: Vec<_> = names
            .filter(|name| name.to_string_lossy().starts_with("index"))
            .collect();
        names.sort();
        names
    };
    for left in [
        "index.code-commit",
        "index.code-commit.lock",
        "index.code-commit1x2y3z",
    ] {
        fs::write(folder.join(left), "").unwrap();
    }
    fs::write(lock(&scratch), "").unwrap();
    sweep_index(&folder);
    assert_eq!(names().len(), 5, "another git has the lock");
    fs::write(lock(&scratch), LEFT).unwrap();
    sweep_index(&folder);
    assert_eq!(names(), ["index"]);
}
