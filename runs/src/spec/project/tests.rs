use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn a_file_that_was_edited_before_its_deletion_is_back() {
    let root = tempfile::tempdir().unwrap();
    make_folders(root.path()).unwrap();
    let path = folder(root.path(), BACKLOG).join("a.md");
    write(&path, "one\n").unwrap();
    let item = listing(root.path()).backlog.remove(0);
    write(&path, "two\n").unwrap();
    assert!(!delete_unchanged(root.path(), &item).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
    write(&path, "one\n").unwrap();
    assert!(delete_unchanged(root.path(), &item).unwrap());
    assert!(delete_unchanged(root.path(), &item).unwrap());
    assert!(!path.exists() && names(root.path(), WIP).is_empty());
}

#[test]
fn an_edit_that_was_saved_once_more_meanwhile_goes_before_the_first() {
    let root = tempfile::tempdir().unwrap();
    let [first, path] = ["first", "a.md"].map(|name| root.path().join(name));
    for (name, text) in [(&first, "one\n"), (&path, "two\n")] {
        write(name, text).unwrap();
    }
    put_back(&first, &path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
    assert!(!first.exists());
}

#[test]
fn a_file_that_is_still_being_written_under_a_hidden_name_does_not_wait() {
    let root = tempfile::tempdir().unwrap();
    make_folders(root.path()).unwrap();
    write(&folder(root.path(), BACKLOG).join(".a.md.swp"), "x").unwrap();
    assert_eq!(listing(root.path()), Listing::default());
}

#[test]
fn work_has_arrived_once_a_file_can_be_a_task_and_one_that_looks_the_same_is_not_read_again() {
    let root = tempfile::tempdir().unwrap();
    make_folders(root.path()).unwrap();
    let path = folder(root.path(), BACKLOG).join("a.md");
    let put = |bytes: &[u8]| {
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(bytes).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    };
    let mut arrivals = Arrivals::default();
    put(b" ");
    assert!(!arrivals.look(root.path()));
    put(b"x");
    assert!(!arrivals.look(root.path()), "it was read");
    assert!(Arrivals::default().look(root.path()));
    put(b"xy");
    assert!(arrivals.look(root.path()));
    fs::remove_file(&path).unwrap();
    assert!(!arrivals.look(root.path()));
}

#[test]
fn a_spec_issue_is_one_whatever_its_name() {
    let root = tempfile::tempdir().unwrap();
    make_folders(root.path()).unwrap();
    let at = folder(root.path(), ISSUES);
    fs::File::create(at.join(OsStr::from_bytes(b"\xff"))).unwrap();
    symlink("nowhere", at.join("a.md")).unwrap();
    assert_eq!(listing(root.path()).issues, ["a.md", "\u{fffd}"]);
}
