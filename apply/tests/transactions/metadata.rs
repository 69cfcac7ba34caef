//! What a restored file has besides its content.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, SystemTime};

use code_commit_apply::{Force, Found, OldFile, Warning, seam};
use code_commit_dir::{Attributes, Inode};
use rustix::fs::XattrFlags;

use crate::tree::Tree;

const NOTE: &str = "user.note";
const ACCESS_LIST: &str = "system.posix_acl_access";

fn set(path: &Path, name: &str, value: &[u8]) -> bool {
    let set = rustix::fs::setxattr(path, name, value, XattrFlags::empty()).is_ok();
    if !set {
        eprintln!("SKIPPED: no attribute {name} on {}", path.display());
    }
    set
}

fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = [0_u8; 128];
    let len = rustix::fs::lgetxattr(path, name, &mut value[..]).ok()?;
    value.get(..len).map(<[u8]>::to_vec)
}

fn inode(tree: &Tree, path: &str) -> u64 {
    fs::metadata(tree.root.join(path)).unwrap().ino()
}

fn modified(tree: &Tree, path: &str) -> SystemTime {
    fs::metadata(tree.root.join(path))
        .unwrap()
        .modified()
        .unwrap()
}

fn undo(tree: &Tree) -> Vec<Warning> {
    tree.undone(Force::No).unwrap().applied.warnings
}

/// All but the time: make and cargo would take what was built from the changed file for newer.
#[test]
fn undo_restores_the_old_inode_with_a_new_time_and_keeps_a_copy() {
    let mut tree = Tree::new(&[("a", "a")]);
    let old_time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options()
        .append(true)
        .open(tree.root.join("a"))
        .unwrap()
        .set_modified(old_time)
        .unwrap();
    tree.chmod("a", 0o2640);
    let has_note = set(&tree.root.join("a"), NOTE, b"mine");
    let old = inode(&tree, "a");
    let applied = tree.apply(&[("a", Some(b"new"))]).unwrap();
    let path = "a".to_owned();
    assert_eq!(applied.warnings, [Warning::SpecialBitsDropped { path }]);
    assert_eq!(
        attribute(&tree.root.join("a"), NOTE).is_some(),
        has_note,
        "the new file has it, too"
    );
    assert_eq!(undo(&tree), []);
    assert_eq!(
        (inode(&tree, "a"), tree.mode("a"), tree.read("a").as_str()),
        (old, 0o2640, "a")
    );
    assert!(modified(&tree, "a") > old_time);
    assert_eq!(attribute(&tree.root.join("a"), NOTE).is_some(), has_note);
    // Another edit is no damage of the pre-image, whose copy has everything, too.
    tree.write("a", "edited");
    let kept = tree.undo(1).join("0.old");
    assert_eq!(
        (fs::read(&kept).unwrap(), attribute(&kept, NOTE).is_some()),
        (b"a".to_vec(), has_note)
    );
    assert_eq!(fs::metadata(kept).unwrap().modified().unwrap(), old_time);
}

#[test]
fn a_hard_link_comes_back_as_one_unless_its_other_name_was_edited() {
    for edit in [false, true] {
        let mut tree = Tree::new(&[("a", "a")]);
        fs::hard_link(tree.root.join("a"), tree.root.join("b")).unwrap();
        let applied = tree.apply(&[("a", Some(b"new"))]).unwrap();
        let path = "a".to_owned();
        assert_eq!(applied.warnings, [Warning::LinkBroken { path }]);
        assert_eq!(
            (tree.read("a").as_str(), tree.read("b").as_str()),
            ("new", "a")
        );
        if edit {
            tree.write("b", "edited");
        }
        undo(&tree);
        assert_eq!(tree.read("a"), "a");
        assert_eq!(tree.read("b"), if edit { "edited" } else { "a" });
        assert_eq!(inode(&tree, "a") == inode(&tree, "b"), !edit);
    }
}

#[test]
fn two_names_of_one_file_that_are_both_replaced_are_one_file_again() {
    let mut tree = Tree::new(&[("a", "a")]);
    fs::hard_link(tree.root.join("a"), tree.root.join("b")).unwrap();
    tree.apply(&[("a", Some(b"1")), ("b", Some(b"2"))]).unwrap();
    undo(&tree);
    assert_eq!(inode(&tree, "a"), inode(&tree, "b"));
    assert_eq!(
        (tree.read("a").as_str(), tree.read("b").as_str()),
        ("a", "a")
    );
}

/// Wherever it is interrupted, in the change or in the undo of it.
#[test]
fn an_interrupted_change_or_undo_leaves_the_old_inode_or_a_full_copy() {
    for end in 0.. {
        let tree = Tree::new(&[("a", "a"), ("l", "l")]);
        tree.chmod("a", 0o640);
        let has_note = set(&tree.root.join("a"), NOTE, b"mine");
        fs::hard_link(tree.root.join("l"), tree.root.join("m")).unwrap();
        let set = tree.set(&[("a", Some(b"new")), ("l", Some(b"new"))]);
        let (mut step, folders) = (0, [tree.undo(1)]);
        let mut steps = |_: &'static str| {
            assert_ne!(step, end, "interrupted");
            step += 1;
        };
        let done = catch_unwind(AssertUnwindSafe(|| {
            tree.apply_with(set, &mut steps).unwrap();
            seam::undo(&tree.lock, &tree.root, &folders, Force::No, &mut steps).unwrap();
        }));
        tree.recover().unwrap();
        if tree.undo(1).join("manifest.json").exists() {
            code_commit_apply::undo(&tree.lock, &tree.root, &folders, Force::No).unwrap();
        }
        let a = tree.root.join("a");
        let found = (
            tree.read("a"),
            tree.mode("a"),
            attribute(&a, NOTE).is_some(),
        );
        let expected = ("a".to_owned(), 0o640, has_note);
        assert_eq!(found, expected, "ended before step {end}");
        let links = fs::metadata(a).unwrap().nlink();
        let is_one = inode(&tree, "l") == inode(&tree, "m");
        assert_eq!((links, is_one), (1, true), "ended before step {end}");
        if done.is_ok() {
            break;
        }
    }
}

#[test]
fn folders_that_a_command_removed_come_back_with_their_modes() {
    let tree = Tree::new(&[("shared/x", "x")]);
    tree.chmod("shared", 0o2775);
    fs::create_dir(tree.root.join("empty")).unwrap();
    tree.chmod("empty", 0o1777);
    let old = tree.files();
    fs::remove_dir_all(tree.root.join("shared")).unwrap();
    fs::remove_dir(tree.root.join("empty")).unwrap();
    let new = tree.files();
    let inode = Inode {
        mode: 0o644,
        owner: (0, 0),
        len: 1,
        modified: (0, 0),
        attributes: Attributes::default(),
    };
    let found = [Found {
        path: "shared/x".to_owned(),
        before: Some(OldFile::Copy(Box::new(&b"x"[..]), inode)),
    }];
    let folders = (
        Vec::new(),
        vec![("shared".to_owned(), 0o2775), ("empty".to_owned(), 0o1777)],
    );
    let undo = tree.undo(1);
    code_commit_apply::adopt(&tree.root, &tree.root, &undo, found, folders).unwrap();
    let undone = code_commit_apply::undo(&tree.lock, &tree.root, &[undo], Force::No).unwrap();
    assert_eq!(tree.files(), old);
    code_commit_apply::undo(&tree.lock, &tree.root, &undone.replaced, Force::No).unwrap();
    assert_eq!(tree.files(), new, "and that is undone as well");
}

#[test]
fn what_a_command_will_replace_is_kept_by_a_second_name_unless_it_has_one() {
    let tree = Tree::new(&[("alone", "1"), ("gone", "3"), ("linked", "2")]);
    let now = Tree::new(&[("alone", "new"), ("linked", "new"), ("made", "new")]);
    for name in ["gone", "linked"] {
        fs::hard_link(tree.root.join(name), tree.root.join(format!("{name}-too"))).unwrap();
    }
    let found = ["alone", "gone", "linked", "made"].map(|path| Found {
        path: path.to_owned(),
        before: (path != "made").then_some(OldFile::InTree),
    });
    let undo = tree.undo(1);
    let applied =
        code_commit_apply::adopt(&tree.root, &now.root, &undo, found, (vec![], vec![])).unwrap();
    let path = "linked".to_owned();
    assert_eq!(applied.warnings, [Warning::LinkBroken { path }]);
    let is_second_name = |(number, name): (usize, &str)| {
        let kept = fs::metadata(undo.join(format!("{number}.old"))).unwrap();
        kept.ino() == inode(&tree, name)
    };
    let names = [(0, "alone"), (1, "gone"), (2, "linked")];
    assert_eq!(names.map(is_second_name), [true, false, false]);
}

/// An access list with one named user, who may what the owner may, as the kernel stores it.
fn access_list(owner: u16, group: u16, other: u16) -> Vec<u8> {
    let any = u32::MAX;
    let entries = [
        (1_u16, owner, any),
        (2, owner, 65534),
        (4, group, any),
        (16, owner, any),
        (32, other, any),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

#[test]
fn a_replaced_file_and_one_that_is_put_back_have_their_access_list() {
    let mut tree = Tree::new(&[("a", "a"), ("gone", "gone")]);
    let list = access_list(6, 0, 0);
    for path in ["a", "gone"] {
        if !set(&tree.root.join(path), ACCESS_LIST, &list) {
            return;
        }
    }
    let found = |tree: &Tree, path| {
        (
            attribute(&tree.root.join(path), ACCESS_LIST),
            tree.mode(path),
        )
    };
    let expected = (Some(list), 0o660);
    tree.apply(&[("a", Some(b"new")), ("gone", None)]).unwrap();
    assert_eq!(found(&tree, "a"), expected);
    undo(&tree);
    for path in ["a", "gone"] {
        assert_eq!(found(&tree, path), expected, "{path}");
    }
}

#[test]
fn a_new_file_gets_the_default_access_list_of_its_folder_as_if_it_were_made_there() {
    let mut tree = Tree::new(&[("d/x", "x")]);
    let list = access_list(7, 5, 5);
    if !set(&tree.root.join("d"), "system.posix_acl_default", &list) {
        return;
    }
    tree.write("d/by-hand", "");
    tree.apply(&[("d/new", Some(b"new"))]).unwrap();
    let list = |path: &str| attribute(&tree.root.join(path), ACCESS_LIST);
    assert!(list("d/new").is_some());
    assert_eq!(
        (list("d/new"), tree.mode("d/new")),
        (list("d/by-hand"), tree.mode("d/by-hand"))
    );
}

#[test]
fn a_folder_with_attributes_stays_when_its_last_file_goes() {
    let mut tree = Tree::new(&[("d/x", "x")]);
    if set(&tree.root.join("d"), NOTE, b"mine") {
        tree.apply(&[("d/x", None)]).unwrap();
        assert!(tree.root.join("d").is_dir());
    }
}

#[test]
fn attributes_that_vouch_for_the_content_are_not_copied_and_named() {
    let mut tree = Tree::new(&[("a", "a")]);
    if !set(&tree.root.join("a"), "trusted.note", b"mine") {
        return;
    }
    let applied = tree.apply(&[("a", Some(b"new"))]).unwrap();
    let (path, names) = ("a".to_owned(), vec!["trusted.note".to_owned()]);
    let warning = Warning::AttributesNotKept { path, names };
    assert_eq!(applied.warnings, [warning]);
    assert_eq!(undo(&tree), []);
    assert_eq!(
        attribute(&tree.root.join("a"), "trusted.note").as_deref(),
        Some(&b"mine"[..])
    );
}
