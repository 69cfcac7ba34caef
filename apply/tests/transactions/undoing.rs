//! `undo`: from pre-images alone, one set or several, and never overwriting other changes unless forced.

use std::fs;
use std::path::PathBuf;

use code_commit_apply::{ApplyError, Force, UndoError};

use crate::tree::{Files, Tree};

#[test]
fn several_sets_are_undone_at_once() {
    let mut tree = Tree::new(&[("a", "a"), ("b", "b"), ("c", "c")]);
    tree.chmod("a", 0o750);
    tree.chmod("b", 0o4755);
    let old = tree.files();
    tree.apply(&[("a", Some(b"a1")), ("x/y/z", Some(b"z1")), ("b", None)])
        .unwrap();
    tree.apply(&[("a", None), ("x/y/z", Some(b"z2")), ("x/w", Some(b"w"))])
        .unwrap();
    tree.apply(&[("a", Some(b"a3")), ("b", Some(b"b3")), ("x/w", None)])
        .unwrap();
    tree.undone(Force::No).unwrap();
    assert_eq!(tree.files(), old);
    assert_eq!(tree.state(), ["lock"]);
}

#[test]
fn a_file_changed_since_is_named_and_nothing_is_undone() {
    let mut tree = Tree::new(&[("a", "a"), ("b", "b"), ("c", "c")]);
    tree.apply(&[
        ("a", Some(b"1")),
        ("b", Some(b"2")),
        ("c", None),
        ("d", Some(b"4")),
    ])
    .unwrap();
    tree.write("a", "edited");
    tree.write("c", "back, but different");
    fs::remove_file(tree.root.join("d")).unwrap();
    let before = tree.files();
    let error = tree.undone(Force::No).unwrap_err();
    let UndoError::ChangedSince { paths } = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        paths,
        ["a", "c"],
        "a created file that is gone is as it was"
    );
    assert_eq!(tree.files(), before);
}

#[test]
fn forced_it_puts_the_old_tree_back_and_keeps_the_edits() {
    let mut tree = Tree::new(&[("a", "a")]);
    tree.apply(&[("a", Some(b"1"))]).unwrap();
    tree.write("a", "edited");
    let undone = tree.undone(Force::Yes).unwrap();
    assert_eq!(tree.read("a"), "a");
    assert_eq!(
        fs::read_to_string(undone.replaced[0].join("0.old")).unwrap(),
        "edited"
    );
    // And that can be undone in turn.
    code_commit_apply::undo(&tree.lock, &tree.root, &undone.replaced, Force::No).unwrap();
    assert_eq!(tree.read("a"), "edited");
}

#[test]
fn forced_it_keeps_what_is_saved_at_the_last_moment_too() {
    let mut tree = Tree::new(&[("a", "a"), ("b", "b")]);
    let old = tree.files();
    tree.apply(&[("a", Some(b"1")), ("b", Some(b"2"))]).unwrap();
    let mut saved = 0;
    // Between the look at the files and their change, twice.
    let mut save = |step: &'static str| {
        if step == "write the journal" && saved < 2 {
            saved += 1;
            fs::write(tree.root.join("b"), format!("saved {saved}")).unwrap();
        }
    };
    let undone =
        code_commit_apply::seam::undo(&tree.lock, &tree.root, &tree.undos(), Force::Yes, &mut save)
            .unwrap();
    assert_eq!((tree.files(), saved), (old, 2));
    let kept = undone
        .replaced
        .iter()
        .map(|folder| fs::read_to_string(folder.join("1.old")).unwrap());
    assert_eq!(kept.collect::<Vec<_>>(), ["saved 2"]);
    assert_eq!(tree.state(), ["lock"]);
}

#[test]
fn an_undo_ends_even_if_somebody_saves_at_every_last_moment() {
    for (force, tries) in [(Force::No, 1), (Force::Yes, 5)] {
        let mut tree = Tree::new(&[("a", "a")]);
        tree.apply(&[("a", Some(b"1"))]).unwrap();
        let mut saved = 0;
        let mut save = |step: &'static str| {
            if step == "write the journal" && saved < 2 * tries {
                saved += 1;
                fs::write(tree.root.join("a"), format!("saved {saved}")).unwrap();
            }
        };
        let folders = tree.undos();
        let undone =
            code_commit_apply::seam::undo(&tree.lock, &tree.root, &folders, force, &mut save);
        let is_told = matches!(undone, Err(UndoError::Apply(ApplyError::Changed { .. })));
        assert_eq!((is_told, saved), (true, tries));
        assert_eq!(tree.read("a"), format!("saved {tries}"));
    }
}

#[test]
fn undoing_twice_changes_nothing_more() {
    let mut tree = Tree::new(&[("a", "a")]);
    let old = tree.files();
    tree.apply(&[("a", Some(b"1")), ("n/m", Some(b"2"))])
        .unwrap();
    for _ in 0..2 {
        tree.undone(Force::No).unwrap();
        assert_eq!(tree.files(), old);
    }
}

#[test]
fn a_created_folder_with_somebody_elses_file_stays() {
    let mut tree = Tree::new(&[]);
    tree.apply(&[("x/y/z", Some(b"z"))]).unwrap();
    tree.write("x/mine", "mine");
    tree.undone(Force::No).unwrap();
    assert_eq!(tree.files().keys().collect::<Vec<_>>(), ["x", "x/mine"]);
}

#[test]
fn a_damaged_pre_image_is_not_put_back() {
    let mut tree = Tree::new(&[("a", "a")]);
    tree.apply(&[("a", Some(b"1"))]).unwrap();
    fs::write(tree.undo(1).join("0.old"), "tampered").unwrap();
    let error = tree.undone(Force::Yes).unwrap_err();
    assert!(matches!(error, UndoError::Damaged { .. }), "{error:?}");
    assert_eq!(tree.read("a"), "1");
}

#[test]
fn a_symlink_on_the_way_blocks_the_undo_even_by_force() {
    let mut tree = Tree::new(&[("d/a", "a")]);
    tree.apply(&[("d/a", Some(b"1"))]).unwrap();
    let outside = tree.scratch.path().join("outside");
    fs::rename(tree.root.join("d"), &outside).unwrap();
    std::os::unix::fs::symlink("../outside", tree.root.join("d")).unwrap();
    let error = tree.undone(Force::Yes).unwrap_err();
    assert!(matches!(error, UndoError::Blocked { .. }), "{error:?}");
    assert_eq!(fs::read(outside.join("a")).unwrap(), b"1");
}

#[test]
fn one_set_of_several_whose_manifest_is_lost_keeps_all_from_being_undone() {
    let mut tree = Tree::new(&[("a", "a")]);
    tree.apply(&[("a", Some(b"1"))]).unwrap();
    tree.apply(&[("a", Some(b"2"))]).unwrap();
    let undos = tree.undos();
    for lose in [fs::remove_file as fn(PathBuf) -> _, |manifest| {
        fs::remove_dir_all(manifest.parent().unwrap())
    }] {
        lose(tree.undo(1).join("manifest.json")).unwrap();
        let error =
            code_commit_apply::undo(&tree.lock, &tree.root, &undos, Force::Yes).unwrap_err();
        let UndoError::NoManifest { path } = error else {
            panic!("{error:?}")
        };
        assert_eq!(path, tree.undo(1).join("manifest.json"));
        assert_eq!(tree.read("a"), "2");
        assert_eq!(
            code_commit_apply::read_applied(&tree.undo(1)).unwrap(),
            None
        );
    }
}

/// One round removes a file, and a later one creates a folder with its name.
fn folder_in_the_place_of_a_file() -> (Tree, Files) {
    let mut tree = Tree::new(&[("tool", "#!/bin/sh\n"), ("z", "z")]);
    tree.chmod("tool", 0o755);
    let old = tree.files();
    tree.apply(&[("tool", None), ("z", Some(b"1"))]).unwrap();
    tree.apply(&[("tool/main.sh", Some(b"new")), ("tool/lib/a", Some(b"a"))])
        .unwrap();
    (tree, old)
}

#[test]
fn a_folder_that_the_sets_made_in_the_place_of_a_file_is_undone() {
    let (tree, old) = folder_in_the_place_of_a_file();
    let new = tree.files();
    let undone = tree.undone(Force::No).unwrap();
    assert_eq!(tree.files(), old);
    assert_eq!(undone.applied.changes.len(), 4);
    code_commit_apply::undo(&tree.lock, &tree.root, &undone.replaced, Force::No).unwrap();
    assert_eq!(tree.files(), new);
}

#[test]
fn a_folder_in_the_place_of_a_file_stays_with_what_is_somebodys() {
    for mine in ["tool/mine", "tool/lib/mine", "tool/other/mine"] {
        let (tree, _) = folder_in_the_place_of_a_file();
        fs::create_dir_all(tree.root.join(mine).parent().unwrap()).unwrap();
        tree.write(mine, "mine");
        let before = tree.files();
        let error = tree.undone(Force::Yes).unwrap_err();
        assert!(matches!(error, UndoError::Blocked { path } if path == "tool"));
        assert_eq!(tree.files(), before);
    }
}

#[test]
fn a_folder_in_the_place_of_a_created_file_stays_and_the_rest_is_undone() {
    for force in [Force::No, Force::Yes] {
        let mut tree = Tree::new(&[("a", "a")]);
        tree.apply(&[("a", Some(b"1")), ("made/b", Some(b"b"))])
            .unwrap();
        fs::remove_file(tree.root.join("made/b")).unwrap();
        fs::create_dir(tree.root.join("made/b")).unwrap();
        tree.write("made/b/mine", "mine");
        tree.undone(force).unwrap();
        assert_eq!(
            tree.files().keys().collect::<Vec<_>>(),
            ["a", "made", "made/b", "made/b/mine"]
        );
        assert_eq!(tree.read("a"), "a");
    }
}

#[test]
fn a_folder_that_a_delete_leaves_empty_goes_with_it_and_undo_brings_it_back() {
    let mut tree = Tree::new(&[
        ("a/b/one", "1"),
        ("a/b/two", "2"),
        ("c/kept", "k"),
        ("c/gone", "g"),
        ("top", "t"),
    ]);
    let old = tree.files();
    tree.apply(&[("a/b/one", None), ("c/gone", None), ("top", None)])
        .unwrap();
    assert!(tree.root.join("a/b/two").exists() && tree.root.join("c/kept").exists());
    tree.apply(&[("a/b/two", None)]).unwrap();
    assert!(!tree.root.join("a").exists(), "both folders are empty");
    assert!(tree.root.join("c").exists() && tree.root.exists());
    tree.undone(Force::No).unwrap();
    assert_eq!(tree.files(), old);
}

#[test]
fn a_folder_stays_that_somebody_has_something_in_or_has_closed_to_others() {
    let mut tree = Tree::new(&[
        ("ignored/x", "x"),
        ("private/y", "y"),
        ("parent/empty/z", "z"),
    ]);
    fs::write(tree.root.join("ignored/cache.o"), "o").unwrap();
    fs::create_dir(tree.root.join("parent/of-a-submodule")).unwrap();
    tree.chmod("private", 0o700);
    tree.apply(&[
        ("ignored/x", None),
        ("private/y", None),
        ("parent/empty/z", None),
    ])
    .unwrap();
    for (folder, stays) in [
        ("ignored", true),
        ("private", true),
        ("parent", true),
        ("parent/of-a-submodule", true),
        ("parent/empty", false),
    ] {
        assert_eq!(tree.root.join(folder).exists(), stays, "{folder}");
    }
}

#[test]
fn a_file_may_take_the_place_of_a_folder_that_a_delete_left_empty() {
    let mut tree = Tree::new(&[("a/x", "x")]);
    let old = tree.files();
    tree.apply(&[("a/x", None)]).unwrap();
    tree.apply(&[("a", Some(b"a file now"))]).unwrap();
    tree.undone(Force::No).unwrap();
    assert_eq!(tree.files(), old);
}
