use super::*;
use crate::tests::scratch::Scratch;

/// A tree whose git directory is on another disk; `None` if there is only one disk.
fn across_disks() -> Option<(Scratch, tempfile::TempDir)> {
    let scratch = Scratch::new();
    let device = |path: &Path| std::os::unix::fs::MetadataExt::dev(&fs::metadata(path).unwrap());
    let other = tempfile::tempdir_in("/dev/shm").ok();
    let Some(git) = other.filter(|other| device(scratch.path()) != device(other.path())) else {
        eprintln!("SKIPPED: a git directory on another disk because /dev/shm is none");
        return None;
    };
    let git_dir = git.path().join("git");
    fs::remove_dir_all(scratch.path().join(".git")).unwrap();
    scratch.git(&[
        "init",
        "--quiet",
        "--separate-git-dir",
        git_dir.to_str().unwrap(),
    ]);
    Some((scratch, git))
}

#[test]
fn state_in_the_tree_counts_only_if_it_was_made_here() {
    let Some((scratch, _git)) = across_disks() else {
        return;
    };
    let state_dir = || scratch.tree().state_dir();
    let state = state_dir().unwrap();
    assert_eq!(state, scratch.path().join(".code-commit"));
    scratch.write(".code-commit/txn/journal", "ours");
    assert_eq!(state_dir().unwrap(), state, "its own is taken up again");

    scratch.git(&["add", "--force", ".code-commit/txn/journal"]);
    assert!(
        matches!(state_dir(), Err(RepoError::NotMadeHere { .. })),
        "a pull may have brought it"
    );
    scratch.git(&["rm", "-rq", "--cached", ".code-commit"]);
    state_dir().unwrap();
}

#[test]
fn the_place_of_the_state_is_known_before_anything_is_made_there() {
    let scratch = Scratch::new();
    let across = across_disks();
    let trees = [scratch.path()]
        .into_iter()
        .chain(across.iter().map(|(scratch, _)| scratch.path()));
    for root in trees {
        let tree = WorkTree::at(root).unwrap();
        let (place, of_root) = (tree.state_place().unwrap(), tree.state_of_root().unwrap());
        assert!(!place.exists(), "{}", place.display());
        assert_eq!(place, of_root);
        assert_eq!(tree.state_dir().unwrap(), place);
        assert_eq!(tree.state_place().unwrap(), place);
    }
}

#[test]
fn state_that_a_clone_has_brought_is_refused() {
    let Some((scratch, _git)) = across_disks() else {
        return;
    };
    let state_dir = || scratch.tree().state_dir();
    scratch.write(".code-commit/txn/journal", "theirs");
    assert!(matches!(state_dir(), Err(RepoError::NotMadeHere { .. })));
    fs::rename(
        scratch.path().join(".code-commit"),
        scratch.path().join("aside"),
    )
    .unwrap();
    std::os::unix::fs::symlink("aside", scratch.path().join(".code-commit")).unwrap();
    assert!(
        matches!(state_dir(), Err(RepoError::NotMadeHere { .. })),
        "nor through a link"
    );
    assert!(matches!(
        state_dir_in_tree(scratch.path()),
        Err(RepoError::NotMadeHere { .. })
    ));
    fs::remove_file(scratch.path().join(".code-commit")).unwrap();
    state_dir().unwrap();
}
