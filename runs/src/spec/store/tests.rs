use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use code_commit_dir::replace;

use super::*;

/// A store with its folders in an empty project.
fn store(root: &tempfile::TempDir) -> Store {
    let root = root.path().to_owned();
    let store = Store {
        runs: root.join("runs"),
        watch: root.join("watch"),
        root,
    };
    store.make_folders().unwrap();
    store
}

#[test]
fn a_file_that_was_edited_before_its_deletion_is_back() {
    let root = tempfile::tempdir().unwrap();
    let store = store(&root);
    let path = store.folder(BACKLOG).join("a.md");
    replace(&path, b"one\n").unwrap();
    let item = store.scan().0.backlog.remove(0);
    replace(&path, b"two\n").unwrap();
    assert!(!store.delete_unchanged(&item).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
    replace(&path, b"one\n").unwrap();
    assert!(store.delete_unchanged(&item).unwrap());
    assert!(store.delete_unchanged(&item).unwrap());
    assert!(!path.exists() && store.names(WIP).is_empty());
    replace(&path, b"one\n").unwrap();
    fs::create_dir(store.folder(WIP).join("a.md")).unwrap();
    store.delete_unchanged(&item).unwrap_err();
}

#[test]
fn an_edit_that_was_saved_once_more_meanwhile_goes_before_the_first() {
    let root = tempfile::tempdir().unwrap();
    let [first, path] = ["first", "a.md"].map(|name| root.path().join(name));
    for (name, text) in [(&first, "one\n"), (&path, "two\n")] {
        replace(name, text.as_bytes()).unwrap();
    }
    put_back(&first, &path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
    assert!(!first.exists());
}

#[test]
fn a_file_that_is_still_being_written_under_a_hidden_name_does_not_wait() {
    let root = tempfile::tempdir().unwrap();
    let store = store(&root);
    replace(&store.folder(BACKLOG).join(".a.md.swp"), b"x").unwrap();
    assert_eq!(store.scan(), (Listing::default(), PassedOver::new()));
}

#[test]
fn work_has_arrived_once_a_file_can_be_a_task() {
    let root = tempfile::tempdir().unwrap();
    let store = store(&root);
    let path = store.folder(BACKLOG).join("a.md");
    for (bytes, is_work) in [(&b" "[..], false), (b"\xff", false), (b"x", true)] {
        replace(&path, bytes).unwrap();
        assert_eq!(store.scan().0.is_work(), is_work, "{bytes:?}");
    }
}

#[test]
fn a_task_is_parked_until_it_is_edited_and_counted_anew_once_it_has_come_to_an_end() {
    let root = tempfile::tempdir().unwrap();
    let store = store(&root);
    let path = store.folder(BACKLOG).join("a.md");
    replace(&path, b"one\n").unwrap();
    let item = store.scan().0.backlog.remove(0);
    let fail = || store.note_failure(&item, Some("why")).unwrap();
    assert_eq!([fail(), fail()], [1, 2]);
    assert_eq!(store.note_failure(&item, None).unwrap(), 0);
    assert_eq!([fail(), fail(), fail()], [1, 2, 3]);
    let (listing, passed_over) = store.scan();
    assert!(!listing.is_work() && passed_over.len() == 1 && store.parked().len() == 1);
    replace(&path, b"two\n").unwrap();
    assert!(store.scan().0.is_work() && store.parked().is_empty());
}

#[test]
fn a_spec_issue_is_one_whatever_its_name() {
    let root = tempfile::tempdir().unwrap();
    let store = store(&root);
    let at = store.folder(ISSUES);
    fs::File::create(at.join(OsStr::from_bytes(b"\xff"))).unwrap();
    symlink("nowhere", at.join("a.md")).unwrap();
    assert_eq!(store.issues(), ["a.md", "\u{fffd}"]);
}

#[test]
fn version_and_variant_are_where_the_standard_has_them() {
    let (one, two) = (uuid_v7(), uuid_v7());
    assert_ne!(one, two);
    assert!(one.get(..13) <= two.get(..13), "{one} {two}");
    let parts: Vec<usize> = one.split('-').map(str::len).collect();
    assert_eq!(
        (&*parts, one.get(14..15)),
        (&[8, 4, 4, 4, 12][..], Some("7"))
    );
    assert!("89ab".contains(one.get(19..20).unwrap()), "{one}");
}
