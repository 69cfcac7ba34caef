use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime};

use super::*;

fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir(tree.path().join("tests")).unwrap();
    let mut file = File::create_new(tree.path().join("build.sh")).unwrap();
    file.write_all(b"exit 1\n").unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o755))
        .unwrap();
    tree
}

fn seal(tree: &tempfile::TempDir) -> Seal {
    Seal::take(tree.path(), &["build.sh".into(), "tests/new".into()]).unwrap()
}

/// For an attic.
fn run() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// An attic that can store nothing, not even for root: nothing can be created below a device.
fn nowhere() -> Attic<'static> {
    Attic::of(Path::new("/dev/null/attic"))
}

#[test]
fn an_untouched_tree_is_left_alone() {
    let tree = tree();
    assert!(
        seal(&tree)
            .restore(&mut Attic::of(run().path()))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_changed_a_deleted_and_a_new_file_are_put_back_with_their_modes() {
    let tree = tree();
    let path = tree.path().join("build.sh");
    let seal = seal(&tree);
    fs::remove_file(&path).unwrap();
    symlink("/bin/true", &path).unwrap();
    File::create_new(tree.path().join("tests/new")).unwrap();
    assert_eq!(
        seal.restore(&mut Attic::of(run().path())).unwrap(),
        ["build.sh", "tests/new"]
    );
    assert_eq!(fs::read(&path).unwrap(), b"exit 1\n");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o755
    );
    assert!(!tree.path().join("tests/new").exists());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(
        seal.restore(&mut Attic::of(run().path())).unwrap(),
        ["build.sh"]
    );
}

#[test]
fn a_file_that_is_put_back_is_no_younger_than_it_was() {
    let tree = tree();
    let path = tree.path().join("build.sh");
    let then = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 500_000_000);
    File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .set_modified(then)
        .unwrap();
    let seal = seal(&tree);
    fs::remove_file(&path).unwrap();
    assert_eq!(
        seal.restore(&mut Attic::of(run().path())).unwrap(),
        ["build.sh"]
    );
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), then);
}

#[test]
fn nothing_is_written_or_deleted_through_a_folder_that_became_a_link() {
    let tree = tree();
    let outside = tempfile::tempdir().unwrap();
    for name in ["kept", "new"] {
        File::create_new(outside.path().join(name))
            .unwrap()
            .write_all(b"theirs")
            .unwrap();
    }
    File::create_new(tree.path().join("tests/kept"))
        .unwrap()
        .write_all(b"ours")
        .unwrap();
    let seal = Seal::take(tree.path(), &["tests/kept".into(), "tests/new".into()]).unwrap();
    fs::remove_dir_all(tree.path().join("tests")).unwrap();
    symlink(outside.path(), tree.path().join("tests")).unwrap();
    assert_eq!(
        seal.restore(&mut Attic::of(run().path())).unwrap(),
        ["tests/kept"]
    );
    assert_eq!(fs::read(outside.path().join("kept")).unwrap(), b"theirs");
    assert_eq!(fs::read(outside.path().join("new")).unwrap(), b"theirs");
    assert!(
        tree.path()
            .join("tests")
            .symlink_metadata()
            .unwrap()
            .is_dir()
    );
    assert_eq!(fs::read(tree.path().join("tests/kept")).unwrap(), b"ours");
}

#[test]
fn a_link_inside_of_the_project_is_not_written_through_either() {
    let tree = tree();
    fs::create_dir(tree.path().join(".git")).unwrap();
    File::create_new(tree.path().join(".git/config"))
        .unwrap()
        .write_all(b"[core]")
        .unwrap();
    File::create_new(tree.path().join("tests/config")).unwrap();
    let seal = Seal::take(tree.path(), &["tests/config".into()]).unwrap();
    fs::rename(tree.path().join("tests"), tree.path().join("tests.old")).unwrap();
    symlink(".git", tree.path().join("tests")).unwrap();
    assert_eq!(
        seal.restore(&mut Attic::of(run().path())).unwrap(),
        ["tests/config"]
    );
    assert_eq!(
        fs::read(tree.path().join(".git/config")).unwrap(),
        b"[core]"
    );
    assert_eq!(fs::read(tree.path().join("tests/config")).unwrap(), b"");
}

#[test]
fn a_file_is_put_back_with_the_folders_that_led_to_it_and_their_modes() {
    let tree = tree();
    fs::create_dir_all(tree.path().join("tests/deep/er")).unwrap();
    fs::set_permissions(
        tree.path().join("tests/deep"),
        fs::Permissions::from_mode(0o710),
    )
    .unwrap();
    let place = tree.path().join("tests/deep/er/a");
    for remains in [None, Some("tests"), Some("tests/deep")] {
        let _ = File::create(&place).unwrap().write_all(b"not committed");
        let seal = Seal::take(tree.path(), &["tests/deep/er/a".into()]).unwrap();
        fs::remove_dir_all(tree.path().join(remains.unwrap_or("tests"))).unwrap();
        if let Some(name) = remains {
            File::create_new(tree.path().join(name)).unwrap();
        }
        assert_eq!(
            seal.restore(&mut Attic::of(run().path())).unwrap(),
            ["tests/deep/er/a"]
        );
        assert_eq!(fs::read(&place).unwrap(), b"not committed");
        let mode = fs::metadata(tree.path().join("tests/deep"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o710);
    }
}

#[test]
fn a_link_that_became_a_file_is_a_link_again() {
    let tree = tree();
    let link = tree.path().join("tests/link");
    symlink("../build.sh", &link).unwrap();
    let seal = Seal::take(tree.path(), &["tests/link".into()]).unwrap();
    assert!(
        seal.restore(&mut Attic::of(run().path()))
            .unwrap()
            .is_empty()
    );
    fs::remove_file(&link).unwrap();
    File::create_new(&link).unwrap();
    assert_eq!(
        seal.restore(&mut Attic::of(run().path())).unwrap(),
        ["tests/link"]
    );
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("../build.sh"));
}

#[test]
fn a_file_of_another_size_and_one_that_cannot_be_read_any_more_is_put_back() {
    let tree = tree();
    let (seal, path) = (seal(&tree), tree.path().join("build.sh"));
    for (changed, name) in [
        (&path, "build.sh"),
        (&tree.path().join("tests/new"), "tests/new"),
    ] {
        File::create(changed).unwrap().set_len(1 << 42).unwrap();
        assert_eq!(seal.restore(&mut Attic::of(run().path())).unwrap(), [name]);
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o0)).unwrap();
    assert_eq!(
        seal.restore(&mut Attic::of(run().path())).unwrap(),
        ["build.sh"]
    );
    assert_eq!(fs::read(&path).unwrap(), b"exit 1\n");
}

/// A build may have moved files of the user's there.
#[test]
fn a_folder_in_place_of_a_file_is_kept_and_what_cannot_be_kept_is_named_in_the_error() {
    let (tree, run) = (tree(), tempfile::tempdir().unwrap());
    let seal = seal(&tree);
    fs::remove_file(tree.path().join("build.sh")).unwrap();
    fs::create_dir(tree.path().join("build.sh")).unwrap();
    File::create_new(tree.path().join("build.sh/moved")).unwrap();
    let error = seal.restore(&mut nowhere()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the build changed build.sh, which cannot be restored"
    );
    assert!(tree.path().join("build.sh/moved").exists());
    let mut attic = Attic::of(run.path());
    assert_eq!(seal.restore(&mut attic).unwrap(), ["build.sh"]);
    assert_eq!(fs::read(tree.path().join("build.sh")).unwrap(), b"exit 1\n");
    assert!(attic.folder().unwrap().join("build.sh/moved").exists());
}

#[test]
fn a_repository_that_was_planted_is_kept_as_something_else() {
    let (tree, run) = (tree(), tempfile::tempdir().unwrap());
    let seal = Seal::take(tree.path(), &["tests/.git".into()]).unwrap();
    fs::create_dir_all(tree.path().join("tests/.git/hooks")).unwrap();
    let mut attic = Attic::of(run.path());
    assert_eq!(seal.restore(&mut attic).unwrap(), ["tests/.git"]);
    assert!(!tree.path().join("tests/.git").exists());
    let kept = attic.folder().unwrap();
    assert!(kept.join("tests/dot-git/hooks").exists() && !kept.join("tests/.git").exists());
}

#[test]
fn what_stood_there_is_kept_wherever_the_run_folder_lies() {
    let (tree, near, far) = (
        tree(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir_in("/dev/shm").unwrap(),
    );
    for run in [&near, &far] {
        let (seal, mut attic) = (seal(&tree), Attic::of(run.path()));
        File::create(tree.path().join("build.sh"))
            .unwrap()
            .write_all(b"an hour of work\n")
            .unwrap();
        symlink("elsewhere", tree.path().join("tests/new")).unwrap();
        assert_eq!(seal.restore(&mut attic).unwrap(), ["build.sh", "tests/new"]);
        let kept = attic.folder().unwrap();
        assert_eq!(
            fs::read(kept.join("build.sh")).unwrap(),
            b"an hour of work\n"
        );
        assert_eq!(fs::read(tree.path().join("build.sh")).unwrap(), b"exit 1\n");
        assert_eq!(
            fs::read_link(kept.join("tests/new")).unwrap(),
            Path::new("elsewhere")
        );
    }
}

#[test]
fn what_does_not_fit_into_memory_is_put_back_all_the_same() {
    let tree = tree();
    let large = tree.path().join("tests/large");
    let file = File::create_new(&large).unwrap();
    file.set_len(content::HELD_BYTES + 1).unwrap();
    let seal = Seal::take(tree.path(), &["tests/large".into(), "build.sh".into()]).unwrap();
    assert!(
        seal.restore(&mut Attic::of(run().path()))
            .unwrap()
            .is_empty()
    );
    std::os::unix::fs::FileExt::write_at(&file, b"x", content::HELD_BYTES).unwrap();
    fs::remove_file(tree.path().join("build.sh")).unwrap();
    assert_eq!(
        seal.restore(&mut Attic::of(run().path())).unwrap(),
        ["tests/large", "build.sh"]
    );
    assert!(
        seal.restore(&mut Attic::of(run().path()))
            .unwrap()
            .is_empty()
    );
    assert_eq!(fs::read(tree.path().join("build.sh")).unwrap(), b"exit 1\n");
    fs::remove_file(&large).unwrap();
    assert_eq!(
        seal.restore(&mut Attic::of(run().path())).unwrap(),
        ["tests/large"]
    );
    assert!(fs::read(&large).unwrap().iter().all(|byte| *byte == 0));
}
