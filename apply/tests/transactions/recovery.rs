//! Recovery after more than a crash: files changed in between, or the run was in another folder.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use code_commit_apply::{ApplyError, Force, RecoverError, Recovery};

use crate::tree::Tree;

const SET: [(&str, Option<&[u8]>); 4] = [
    ("a", Some(b"new a")),
    ("b", None),
    ("n/m", Some(b"new")),
    ("d/c", Some(b"new c")),
];

/// Leaves the state of a process that ends before this step for the nth time.
fn interrupt(tree: &Tree, at: &str, nth: usize) {
    let set = tree.set(&SET);
    let mut seen = 0;
    let mut steps = |step: &'static str| {
        seen += usize::from(step == at);
        assert!(seen < nth, "interrupted");
    };
    let run = || tree.apply_with(set, &mut steps);
    assert!(
        catch_unwind(AssertUnwindSafe(run)).is_err(),
        "{at} was not reached {nth} times"
    );
}

fn tree() -> Tree {
    Tree::new(&[("a", "old a"), ("b", "old b"), ("d/c", "old c")])
}

#[test]
fn a_file_that_somebody_has_written_since_is_left_and_the_old_one_is_kept() {
    let tree = tree();
    interrupt(&tree, "change a file", 4);
    fs::remove_file(tree.root.join("a")).unwrap();
    tree.write("a", "somebody's");
    let rolled_back = tree.roll_back();
    assert_eq!(rolled_back.left, ["a"]);
    assert_eq!(
        fs::read_to_string(rolled_back.left_in.unwrap().join("0.old")).unwrap(),
        "old a"
    );
    assert_eq!(
        (tree.read("a"), tree.read("b"), tree.read("d/c")),
        ("somebody's".into(), "old b".into(), "old c".into())
    );
    assert!(!tree.root.join("n").exists());
    assert_eq!(tree.recover().unwrap(), Recovery::Nothing);
}

#[test]
fn a_folder_that_became_a_symlink_is_not_followed() {
    let tree = tree();
    interrupt(&tree, "commit", 1);
    let outside = tree.scratch.path().join("outside");
    fs::rename(tree.root.join("d"), &outside).unwrap();
    std::os::unix::fs::symlink("../outside", tree.root.join("d")).unwrap();
    let rolled_back = tree.roll_back();
    assert_eq!(rolled_back.left, ["d/c"]);
    assert_eq!(
        fs::read(outside.join("c")).unwrap(),
        b"new c",
        "nothing outside the root is touched"
    );
    assert_eq!(tree.read("a"), "old a");
}

#[test]
fn a_run_in_another_folder_is_recovered_from_here() {
    let tree = tree();
    let old = tree.files();
    interrupt(&tree, "commit", 1);
    let recovery = code_commit_apply::recover(&tree.lock, &tree.root.join("d")).unwrap();
    assert!(matches!(recovery, Recovery::RolledBack(_)), "{recovery:?}");
    assert_eq!(tree.files(), old);
}

#[test]
fn a_root_that_is_gone_is_an_error_and_the_journal_stays() {
    let tree = tree();
    interrupt(&tree, "commit", 1);
    let moved = tree.scratch.path().join("moved");
    fs::rename(&tree.root, &moved).unwrap();
    let error = code_commit_apply::recover(&tree.lock, tree.scratch.path()).unwrap_err();
    assert!(matches!(error, RecoverError::RootMoved { .. }), "{error:?}");
    assert!(matches!(
        code_commit_apply::recover(&tree.lock, &moved).unwrap(),
        Recovery::RolledBack(_)
    ));
}

#[test]
fn nothing_is_applied_over_an_interrupted_transaction() {
    let mut tree = tree();
    interrupt(&tree, "commit", 1);
    let error = tree.apply(&[("z", Some(b"z"))]).unwrap_err();
    assert!(matches!(error, ApplyError::Unrecovered { .. }), "{error:?}");
}

#[test]
fn a_committed_transaction_is_finished_and_can_be_undone() {
    let mut tree = tree();
    let old = tree.files();
    interrupt(&tree, "hand the pre-images over", 1);
    assert_eq!(tree.read("a"), "new a");
    let recovery = tree.recover().unwrap();
    let Recovery::Finished { applied, undo } = recovery else {
        panic!("{recovery:?}")
    };
    assert_eq!(undo, tree.undo(1));
    assert_eq!(
        code_commit_apply::read_applied(&undo).unwrap(),
        Some(applied)
    );
    tree.apply(&[("later", Some(b"x"))]).unwrap_err();
    code_commit_apply::undo(&tree.lock, &tree.root, &[undo], Force::No).unwrap();
    assert_eq!(tree.files(), old);
}

#[test]
fn many_folders_are_put_back_with_few_descriptors() {
    let tree = Tree::new(&[]);
    let paths: Vec<String> = (0..400).map(|n| format!("n{n}/f")).collect();
    let changes: Vec<(&str, Option<&[u8]>)> = paths
        .iter()
        .map(|path| (path.as_str(), Some(&b"x"[..])))
        .collect();
    let set = tree.set(&changes);
    let mut stop = |step: &'static str| assert_ne!(step, "commit", "interrupted");
    let run = || tree.apply_with(set, &mut stop);
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    let in_tree = |fd: std::io::Result<fs::DirEntry>| {
        fs::read_link(fd.unwrap().path()).is_ok_and(|path| path.starts_with(&tree.root))
    };
    let mut most = 0;
    let mut count = |_: &'static str| {
        let open = fs::read_dir("/proc/self/fd").unwrap();
        most = most.max(open.map(in_tree).filter(|is_in_tree| *is_in_tree).count());
    };
    code_commit_apply::seam::recover(&tree.lock, &tree.root, &mut count).unwrap();
    assert!(tree.files().is_empty());
    assert!((1..200).contains(&most), "{most} descriptors");
}

#[test]
fn a_failure_after_which_somebody_has_written_names_what_was_left() {
    let tree = tree();
    let set = tree.set(&SET);
    let mut changed = 0;
    let mut steps = |step: &'static str| {
        changed += usize::from(step == "change a file");
        if step == "change a file" && changed == 2 {
            fs::remove_file(tree.root.join("a")).unwrap();
            tree.write("a", "somebody's");
            tree.write("b", "somebody's too");
        }
    };
    let error = tree.apply_with(set, &mut steps).unwrap_err();
    assert!(error.leaves_tree_changed());
    let ApplyError::PartlyRolledBack { cause, back } = error else {
        panic!("{error:?}")
    };
    assert!(!cause.leaves_tree_changed());
    assert!(matches!(*cause, ApplyError::Changed { path } if path == "b"));
    assert_eq!(back.left, ["a"]);
    assert_eq!(
        fs::read_to_string(back.left_in.unwrap().join("0.old")).unwrap(),
        "old a"
    );
}

#[test]
fn a_new_file_that_somebody_has_edited_since_is_named() {
    let tree = tree();
    interrupt(&tree, "commit", 1);
    tree.write("n/m", "edited");
    let rolled_back = tree.roll_back();
    assert_eq!(tree.read("n/m"), "edited");
    assert_eq!(
        (rolled_back.left, rolled_back.left_in),
        (vec!["n/m".to_owned()], None)
    );
    assert_eq!(tree.read("a"), "old a");
    assert_eq!(tree.recover().unwrap(), Recovery::Nothing);
}

#[test]
fn a_file_that_somebody_has_made_before_ours_had_its_turn_is_no_matter_of_the_recovery() {
    let tree = tree();
    interrupt(&tree, "make a folder", 1);
    fs::create_dir(tree.root.join("n")).unwrap();
    tree.write("n/m", "somebody's");
    let rolled_back = tree.roll_back();
    assert_eq!(
        (rolled_back.left, tree.read("n/m")),
        (Vec::new(), "somebody's".to_owned())
    );
}
