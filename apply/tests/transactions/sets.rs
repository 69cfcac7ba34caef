//! One set: bytes, modes, reports, and every reason not to apply it.

use std::fs;
use std::os::unix::fs::MetadataExt;

use code_commit_apply::{Action, ApplyError, ChangeSet, Force, Lock, LockError, Warning};
use code_commit_guard::Op;

use crate::tree::{Tree, admit};

#[test]
fn bytes_arrive_as_they_are() {
    let mut tree = Tree::new(&[("a", "x")]);
    let odd: &[u8] = b"\xef\xbb\xbfone\r\ntwo\nno newline at the end \xff\0";
    tree.apply(&[("a", Some(odd)), ("b/c", Some(b""))]).unwrap();
    assert_eq!(fs::read(tree.root.join("a")).unwrap(), odd);
    assert_eq!(tree.read("b/c"), "");
}

#[test]
fn an_old_file_keeps_its_mode_and_a_new_one_is_never_executable() {
    let mut tree = Tree::new(&[("run.sh", "1"), ("secret", "2"), ("set-id", "3")]);
    tree.chmod("run.sh", 0o755);
    tree.chmod("secret", 0o600);
    tree.chmod("set-id", 0o6755);
    let applied = tree
        .apply(&[
            ("run.sh", Some(b"a")),
            ("secret", Some(b"b")),
            ("set-id", Some(b"c")),
            ("new.sh", Some(b"#!/bin/sh")),
        ])
        .unwrap();
    let modes = ["run.sh", "secret", "set-id"].map(|path| tree.mode(path));
    assert_eq!(modes, [0o755, 0o600, 0o755]);
    assert_eq!(tree.mode("new.sh") & 0o111, 0);
    let path = "set-id".to_owned();
    assert_eq!(applied.warnings, [Warning::SpecialBitsDropped { path }]);
}

#[test]
fn a_new_file_gets_what_the_umask_leaves() {
    let mut tree = Tree::new(&[]);
    let plain = tree.scratch.path().join("plain");
    fs::File::create(&plain).unwrap();
    tree.apply(&[("new", Some(b"x"))]).unwrap();
    assert_eq!(
        tree.mode("new"),
        fs::metadata(plain).unwrap().mode() & 0o7777
    );
}

#[test]
fn a_new_file_in_a_set_group_id_folder_belongs_to_its_group() {
    let mut tree = Tree::new(&[("shared/a", "a")]);
    if let Err(error) = std::os::unix::fs::chown(tree.root.join("shared"), None, Some(65534)) {
        eprintln!(
            "SKIPPED: a folder of another group because chown is not permitted here: {error}"
        );
        return;
    }
    tree.chmod("shared", 0o2775);
    tree.apply(&[("shared/b", Some(b"b")), ("shared/d/c", Some(b"c"))])
        .unwrap();
    for path in ["shared/b", "shared/d", "shared/d/c"] {
        assert_eq!(
            fs::metadata(tree.root.join(path)).unwrap().gid(),
            65534,
            "{path}"
        );
    }
}

#[test]
fn the_report_says_what_happened_to_each_file() {
    let mut tree = Tree::new(&[("old", "old"), ("same", "same"), ("gone", "gone")]);
    for path in ["old", "same", "gone"] {
        tree.chmod(path, 0o644);
    }
    let set = tree.set(&[
        ("old", Some(b"new")),
        ("same", Some(b"same")),
        ("gone", None),
        ("absent", None),
        ("d/fresh", Some(b"")),
    ]);
    let planned = code_commit_apply::dry_run(&set);
    assert!(
        !tree.root.join("d").exists() && tree.read("old") == "old",
        "a dry run touches nothing"
    );
    let mut applied = tree.apply_set(set).unwrap();
    assert_eq!(
        code_commit_apply::read_applied(&tree.undo(1))
            .unwrap()
            .as_ref(),
        Some(&applied)
    );
    // This depends on the umask, which only the real run reads.
    applied.changes.last_mut().unwrap().after_mode = None;
    assert_eq!(applied, planned);
    let shown = serde_json::to_string(&applied).unwrap();
    insta::assert_snapshot!(shown.replace("},{", "},\n{"), @r#"
    {"changes":[{"path":"old","action":"write","before_sha256":"cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4","after_sha256":"11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437","created":false,"before_mode":420,"after_mode":420},
    {"path":"same","action":"none","before_sha256":"0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5","after_sha256":"0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5","created":false,"before_mode":420,"after_mode":420},
    {"path":"gone","action":"delete","before_sha256":"283bb9deef02e6843abfb538efa1eca70801bd8a701c3f98191e123496339247","after_sha256":null,"created":false,"before_mode":420,"after_mode":null},
    {"path":"absent","action":"none","before_sha256":null,"after_sha256":null,"created":false,"before_mode":null,"after_mode":null},
    {"path":"d/fresh","action":"write","before_sha256":null,"after_sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","created":true,"before_mode":null,"after_mode":null}],"warnings":[]}
    "#);
}

#[test]
fn what_is_already_so_is_not_touched() {
    let mut tree = Tree::new(&[("same", "same")]);
    let before = fs::metadata(tree.root.join("same")).unwrap();
    let applied = tree.apply(&[("same", Some(b"same"))]).unwrap();
    let after = fs::metadata(tree.root.join("same")).unwrap();
    assert_eq!(applied.changes.first().unwrap().action, Action::None);
    assert_eq!(
        (before.ino(), before.mtime_nsec()),
        (after.ino(), after.mtime_nsec())
    );
}

#[test]
fn an_empty_set_is_applied_and_can_be_read_back() {
    let mut tree = Tree::new(&[]);
    let applied = tree.apply_set(ChangeSet::new()).unwrap();
    assert_eq!(
        code_commit_apply::read_applied(&tree.undo(1)).unwrap(),
        Some(applied)
    );
}

#[test]
fn a_hard_link_is_broken_and_the_file_outside_stays_as_it_was() {
    let mut tree = Tree::new(&[]);
    let outside = tree.scratch.path().join("outside");
    fs::write(&outside, "outside").unwrap();
    fs::hard_link(&outside, tree.root.join("h.txt")).unwrap();
    let inode = fs::metadata(&outside).unwrap().ino();
    tree.apply(&[("h.txt", Some(b"inside"))]).unwrap();
    assert_eq!(fs::read(&outside).unwrap(), b"outside");
    assert_eq!(fs::metadata(&outside).unwrap().ino(), inode);
    assert_eq!(tree.read("h.txt"), "inside");
    // The pre-image must not change with the file outside.
    fs::write(&outside, "changed later").unwrap();
    tree.undone(Force::No).unwrap();
    assert_eq!(tree.read("h.txt"), "outside");
}

/// Runs `meddle` between the judgement and the change; nothing of the set may be applied.
fn changed_in_between(meddle: impl Fn(&Tree)) {
    let mut tree = Tree::new(&[("a", "a"), ("b", "b"), ("d/c", "c")]);
    let set = tree.set(&[
        ("a", Some(b"1")),
        ("new/x", Some(b"2")),
        ("b", Some(b"3")),
        ("d/c", None),
    ]);
    meddle(&tree);
    let meddled = tree.files();
    let error = tree.apply_set(set).unwrap_err();
    assert!(matches!(error, ApplyError::Changed { .. }), "{error:?}");
    assert_eq!(tree.files(), meddled);
    assert_eq!(tree.state(), ["lock"]);
    assert!(!tree.undo(1).exists());
}

#[test]
fn a_file_changed_since_it_was_judged_stops_the_set() {
    changed_in_between(|tree| tree.write("b", "edited"));
    changed_in_between(|tree| tree.write("b", "B"));
    changed_in_between(|tree| fs::remove_file(tree.root.join("b")).unwrap());
    changed_in_between(|tree| fs::remove_file(tree.root.join("d/c")).unwrap());
    changed_in_between(|tree| tree.chmod("b", 0o600));
    changed_in_between(|tree| {
        fs::write(tree.root.join("b2"), "b").unwrap();
        fs::rename(tree.root.join("b2"), tree.root.join("b")).unwrap();
    });
}

#[test]
fn a_place_taken_since_it_was_judged_stops_the_set() {
    changed_in_between(|tree| fs::create_dir(tree.root.join("new")).unwrap());
    changed_in_between(|tree| tree.write("new", "a file where the folder would be"));
    changed_in_between(|tree| fs::rename(tree.root.join("d"), tree.root.join("e")).unwrap());
    changed_in_between(|tree| {
        fs::remove_file(tree.root.join("b")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", tree.root.join("b")).unwrap();
    });
}

#[test]
fn a_new_file_does_not_replace_one_that_has_appeared() {
    let mut tree = Tree::new(&[]);
    let set = tree.set(&[("a", Some(b"ours")), ("b", Some(b"ours"))]);
    tree.write("b", "theirs");
    assert!(
        matches!(tree.apply_set(set).unwrap_err(), ApplyError::Changed { path } if path == "b")
    );
    assert!(!tree.root.join("a").exists());
    assert_eq!(tree.read("b"), "theirs");
}

#[test]
fn a_path_judged_for_something_else_is_refused() {
    let mut tree = Tree::new(&[("a", "a")]);
    let other = tempfile::tempdir().unwrap();
    let judged = |op| tree.admit(&[("a", op)]);
    let cases = [
        (judged(Op::Delete), "it was judged for the other operation"),
        (
            judged(Op::Write)
                .into_iter()
                .chain(judged(Op::Write))
                .collect(),
            "it is in the set twice",
        ),
        (
            admit(other.path(), &[("a", Op::Write)]),
            "it was judged under another root",
        ),
    ];
    for (paths, expected) in cases {
        let mut set = ChangeSet::new();
        for path in paths {
            set.write(path, b"x");
        }
        let error = tree.apply_set(set).unwrap_err();
        assert!(
            matches!(&error, ApplyError::Misused { reason, .. } if *reason == expected),
            "{error:?}"
        );
    }
    assert_eq!(tree.read("a"), "a");
}

#[test]
fn a_folder_of_pre_images_is_used_once() {
    let mut tree = Tree::new(&[("a", "a")]);
    tree.apply(&[("a", Some(b"b"))]).unwrap();
    let set = tree.set(&[("a", Some(b"c"))]);
    let error = code_commit_apply::apply(&tree.lock, &tree.root, set, &tree.undo(1)).unwrap_err();
    assert!(matches!(error, ApplyError::UndoTaken { .. }), "{error:?}");
    assert_eq!(tree.read("a"), "b");
}

#[test]
fn a_failure_to_tidy_up_is_a_warning_that_says_why() {
    let tree = Tree::new(&[("a", "a")]);
    let set = tree.set(&[("a", Some(b"b"))]);
    let mut block = |step: &'static str| {
        if step == "hand the pre-images over" {
            fs::write(tree.undo(1), "in the way").unwrap();
        }
    };
    let applied = tree.apply_with(set, &mut block).unwrap();
    let [Warning::CleanUp { reason }] = &applied.warnings[..] else {
        panic!("{:?}", applied.warnings)
    };
    assert!(
        reason.ends_with(": Not a directory (os error 20)"),
        "{reason}"
    );
}

#[test]
fn the_second_run_is_told_who_holds_the_lock() {
    let scratch = tempfile::tempdir().unwrap();
    let state = scratch.path().join(".code-commit");
    let first = Lock::acquire(&state, "code-commit implement").unwrap();
    let error = Lock::acquire(&state, "code-commit").unwrap_err();
    let LockError::Held { pid, what, since } = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        (pid, what.as_str()),
        (std::process::id(), "code-commit implement")
    );
    assert!(since > std::time::SystemTime::UNIX_EPOCH);
    drop(first);
    Lock::acquire(&state, "code-commit").unwrap();
    assert_eq!(
        fs::read(state.join(".gitignore")).unwrap(),
        b"*\n",
        "git must not see it"
    );
}
