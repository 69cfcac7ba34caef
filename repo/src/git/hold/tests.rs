#![expect(clippy::disallowed_methods, reason = "the tests make the locks of another git with plain writes")]

use super::*;
use crate::git::tests::commit_without_its_file;
use crate::scratch::Scratch;

fn lock(scratch: &Scratch) -> PathBuf {
    scratch.path().join(".git/index.lock")
}

/// The words of a lock of ours, with the process id of a git that is not alive.
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
        scratch.hardened(&[]).reset_hard("HEAD").unwrap();
        assert_eq!(
            (scratch.read("kept").as_str(), scratch.git(&["status", "--porcelain"]).as_str()),
            ("one\n", "")
        );
        assert!(!lock(&scratch).exists() && !scratch.path().join(".git/index.code-commit").exists());
    }
}

#[test]
fn a_lock_of_another_git_is_waited_for() {
    let scratch = Scratch::with_files();
    scratch.write("kept", "two\n");
    fs::write(lock(&scratch), "").unwrap();
    let git = scratch.hardened(&[]);
    let reset = std::thread::spawn(move || git.reset_hard("HEAD"));
    fs::remove_file(lock(&scratch)).unwrap();
    reset.join().unwrap().unwrap();
    assert_eq!(scratch.read("kept"), "one\n");
}

#[test]
fn a_lock_of_another_git_is_never_removed_and_named_with_the_remedy() {
    let scratch = Scratch::with_files();
    scratch.write("kept", "two\n");
    for content in ["", "DIRC", "code-commit is rolling back"] {
        fs::write(lock(&scratch), content).unwrap();
        let error = scratch.hardened(&[]).reset_hard("HEAD").unwrap_err();
        assert!(error.to_string().contains(&lock(&scratch).display().to_string()), "{error}");
        assert!(error.to_string().contains("remove that file"), "{error}");
        assert_eq!(
            (fs::read_to_string(lock(&scratch)).unwrap().as_str(), scratch.read("kept").as_str()),
            (content, "two\n")
        );
    }
}

#[test]
fn a_reset_that_fails_leaves_the_index_and_no_lock() {
    let scratch = Scratch::with_files();
    scratch.hardened(&[]).reset_hard(&commit_without_its_file(&scratch)).unwrap_err();
    assert!(!lock(&scratch).exists());
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
}
