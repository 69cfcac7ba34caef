use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

#[test]
fn a_file_is_put_at_its_place_with_its_mode_and_never_through_a_symlink() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let (kept, tree, place) = (at("kept"), at("tree"), Path::new("a/b/file"));
    for folder in ["kept/a/b", "tree", "elsewhere/b"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    crate::replace(&at("kept/a/b/file"), b"as it was").unwrap();
    fs::set_permissions(at("kept/a/b/file"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink(at("elsewhere"), at("tree/a")).unwrap();
    put(&kept, &tree, place).unwrap();
    assert_eq!(fs::read(at("tree/a/b/file")).unwrap(), b"as it was");
    assert_eq!(
        fs::metadata(at("tree/a/b/file"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o640
    );
    assert!(!at("elsewhere/b/file").exists() && !at("tree/a").is_symlink());
}

#[test]
fn empty_folders_are_removed_up_to_one_that_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let place = Path::new("a/b/c/file");
    fs::create_dir_all(scratch.path().join("a/b/c")).unwrap();
    remove_empty(
        folder_of(scratch.path(), place, LOOK).unwrap(),
        place,
        |above| above == Path::new("a"),
    );
    assert!(scratch.path().join("a").is_dir() && !scratch.path().join("a/b").exists());
}
