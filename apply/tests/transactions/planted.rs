//! Journals that came with a clone, or that refer to a former location of the tree.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use code_commit_apply::{Force, Lock, LockError, RecoverError, Recovery, UndoError};
use rustix::fs::{CWD, FileType, Mode};
use serde_json::{Value, json};

use crate::tree::Tree;

/// A tree in which a transaction was interrupted before `step`, with `a` written and `n/m` created.
fn interrupted(step: &str, undo: &Path) -> Tree {
    let tree = Tree::new(&[("a", "old a"), ("d/c", "old c")]);
    let set = tree.set(&[("a", Some(b"new a")), ("n/m", Some(b"new"))]);
    let undo = tree.root.join(undo);
    let mut steps = |at: &'static str| assert_ne!(at, step, "interrupted");
    let run = || code_commit_apply::seam::apply(&tree.lock, &tree.root, set, &undo, &mut steps);
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    tree
}

/// Edits the journal or manifest of `txn`.
fn edit(txn: &Path, name: &str, edit: impl FnOnce(&mut Value)) {
    let path = txn.join(name);
    let mut journal: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut journal);
    fs::write(path, journal.to_string()).unwrap();
}

/// Moves the transaction to where a clone could put it.
fn into_the_tree(tree: &Tree) -> Lock {
    let state = tree.root.join(".code-commit");
    let lock = Lock::acquire(&state, "test").unwrap();
    for name in ["txn", "txn-root", "txn-undo"] {
        fs::rename(
            tree.scratch.path().join("state").join(name),
            state.join(name),
        )
        .unwrap();
    }
    lock
}

/// Lets `txn-root` or `txn-undo` lead elsewhere.
fn relink(link: &Path, target: &Path) {
    fs::remove_file(link).unwrap();
    std::os::unix::fs::symlink(target, link).unwrap();
}

#[test]
fn a_lock_that_leads_elsewhere_is_refused_and_what_it_leads_to_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let [state, precious] = [".code-commit", "precious"].map(|name| scratch.path().join(name));
    let lock = state.join("lock");
    fs::create_dir(&state).unwrap();
    fs::write(&precious, "precious").unwrap();
    let plant: [&dyn Fn(); 4] = [
        &|| std::os::unix::fs::symlink(&precious, &lock).unwrap(),
        &|| std::os::unix::fs::symlink("nowhere", &lock).unwrap(),
        &|| fs::hard_link(&precious, &lock).unwrap(),
        &|| rustix::fs::mknodat(CWD, &lock, FileType::Fifo, Mode::RWXU, 0).unwrap(),
    ];
    for (number, plant) in plant.into_iter().enumerate() {
        plant();
        let error = Lock::acquire(&state, "test").unwrap_err();
        assert!(
            matches!(&error, LockError::NotMadeHere { path } if *path == lock),
            "{number}: {error:?}"
        );
        assert_eq!(fs::read(&precious).unwrap(), b"precious", "{number}");
        fs::remove_file(&lock).unwrap();
    }
    assert!(!state.join("nowhere").exists());
    Lock::acquire(&state, "test").unwrap();
}

#[test]
fn a_state_folder_that_leads_elsewhere_is_refused_and_nothing_is_made_there() {
    let scratch = tempfile::tempdir().unwrap();
    let [state, elsewhere] = ["state", "elsewhere"].map(|name| scratch.path().join(name));
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &state).unwrap();
    let error = Lock::acquire(&state, "test").unwrap_err();
    assert!(
        matches!(&error, LockError::NotMadeHere { path } if *path == state),
        "{error:?}"
    );
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn a_journal_in_the_tree_is_about_this_tree_and_no_other() {
    let tree = interrupted("commit", Path::new("undo"));
    let lock = into_the_tree(&tree);
    let inode = fs::metadata(tree.scratch.path()).unwrap().ino();
    relink(
        &tree.root.join(".code-commit/txn-root"),
        tree.scratch.path(),
    );
    edit(&tree.root.join(".code-commit/txn"), "journal", |journal| {
        journal["root_id"] = json!([0, inode]);
    });
    let error = code_commit_apply::recover(&lock, &tree.root).unwrap_err();
    assert!(
        matches!(error, RecoverError::ForeignRoot { .. }),
        "{error:?}"
    );
}

#[test]
fn a_journal_of_another_work_tree_is_refused_and_one_of_this_is_not() {
    let tree = interrupted("commit", Path::new("undo"));
    let other = tree.scratch.path().join("other");
    for folder in [&other, &tree.root.join("d")] {
        fs::create_dir_all(folder.join(".git")).unwrap();
        let error = code_commit_apply::recover(&tree.lock, folder).unwrap_err();
        assert!(
            matches!(error, RecoverError::ForeignRoot { .. }),
            "{error:?}"
        );
        fs::remove_dir(folder.join(".git")).unwrap();
    }
    fs::create_dir(tree.scratch.path().join(".git")).unwrap();
    let recovery = code_commit_apply::recover(&tree.lock, &other).unwrap();
    assert!(
        matches!(recovery, Recovery::RolledBack(_)),
        "the root of an earlier run beside it: {recovery:?}"
    );
}

#[test]
fn a_path_that_no_run_may_write_is_refused_before_anything_is_touched() {
    let tree = interrupted("commit", Path::new("undo"));
    let txn = tree.scratch.path().join("state/txn");
    let before = tree.files();
    for bad in ["../x", "/x", ".git/hooks/x", "d/.git", ".code-commit/x"] {
        for list in ["created_folders", "emptied_folders", "entries"] {
            let mut good = Value::Null;
            edit(&txn, "journal", |journal| {
                good = journal.clone();
                if list == "entries" {
                    journal[list][0]["path"] = json!(bad);
                } else {
                    journal[list] = json!([bad]);
                }
            });
            let error = tree.recover().unwrap_err();
            assert!(
                matches!(&error, RecoverError::Blocked { path } if path == bad),
                "{list} {bad}: {error:?}"
            );
            assert_eq!(tree.files(), before);
            edit(&txn, "journal", |journal| *journal = good);
        }
    }
    tree.roll_back();
}

#[test]
fn a_record_of_another_version_is_not_guessed_at() {
    let tree = interrupted("commit", Path::new("undo"));
    let txn = tree.scratch.path().join("state/txn");
    edit(&txn, "journal", |journal| {
        *journal = json!({ "version": 2 });
    });
    let error = tree.recover().unwrap_err();
    assert!(
        matches!(&error, RecoverError::OtherVersion { path, version: 2 } if *path == txn.join("journal"))
    );
    let mut tree = Tree::new(&[("a", "a")]);
    tree.apply(&[("a", Some(b"b"))]).unwrap();
    edit(&tree.undo(1), "manifest.json", |manifest| {
        manifest["version"] = json!(2);
    });
    let error = tree.undone(Force::Yes).unwrap_err();
    assert!(
        matches!(error, UndoError::OtherVersion { version: 2, .. }),
        "{error:?}"
    );
    assert_eq!(tree.read("a"), "b");
}

#[test]
fn pre_images_of_a_planted_manifest_go_nowhere_but_below_the_root() {
    for (undo, link) in [
        ("../elsewhere", "unused"),
        (".git", "unused"),
        ("logs/undo", "logs"),
    ] {
        let tree = interrupted("hand the pre-images over", Path::new("undo"));
        let lock = into_the_tree(&tree);
        std::os::unix::fs::symlink("..", tree.root.join(link)).unwrap();
        let meant = tree.root.join(undo);
        relink(&tree.root.join(".code-commit/txn-undo"), &meant);
        let Recovery::Finished { undo, .. } =
            code_commit_apply::recover(&lock, &tree.root).unwrap()
        else {
            panic!()
        };
        assert_eq!(undo, tree.root.join(".code-commit/left-1"));
        assert!(!meant.exists() && undo.join("manifest.json").is_file());
    }
}

#[test]
fn pre_images_of_a_tree_that_was_moved_go_with_it() {
    for in_tree in [false, true] {
        let tree = interrupted("hand the pre-images over", Path::new("logs/run/undo"));
        let own = in_tree.then(|| into_the_tree(&tree));
        let moved = tree.scratch.path().join("moved");
        fs::rename(&tree.root, &moved).unwrap();
        let own = own
            .map(drop)
            .map(|()| Lock::acquire(&moved.join(".code-commit"), "test").unwrap());
        let lock = own.as_ref().unwrap_or(&tree.lock);
        let Recovery::Finished { undo, .. } = code_commit_apply::recover(lock, &moved).unwrap()
        else {
            panic!()
        };
        assert_eq!(undo, moved.join("logs/run/undo"));
        assert!(!tree.root.exists());
        code_commit_apply::undo(lock, &moved, &[undo], code_commit_apply::Force::No).unwrap();
        assert_eq!(fs::read(moved.join("a")).unwrap(), b"old a");
    }
}
