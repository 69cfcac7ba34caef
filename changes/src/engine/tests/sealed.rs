//! What decides whether the work is done, changed by a command that worked in the tree.

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

/// These files are sealed, and a command runs.
struct Seal {
    guard: Guard,
    run: tempfile::TempDir,
    engine: std::cell::RefCell<ChangeEngine>,
}

impl Seal {
    fn take(root: &Path, sealed: &[PathBuf]) -> Self {
        Self::in_run(root, sealed, tempfile::tempdir().unwrap())
    }

    fn in_run(root: &Path, sealed: &[PathBuf], run: tempfile::TempDir) -> Self {
        let guard = Guard::open(root, Policy::commit()).unwrap();
        let engine = engine("the build", Policy::build(Binds::Commit), Vec::new());
        let mut engine = engine;
        engine.sealed = sealed.to_vec();
        assert_eq!(engine.open(&guard, run.path()).unwrap(), None);
        Self {
            guard,
            run,
            engine: engine.into(),
        }
    }

    fn restore(&self) -> Vec<String> {
        self.restore_into(self.run.path()).unwrap().0
    }

    fn restore_into(&self, run: &Path) -> Result<(Vec<String>, Option<PathBuf>), Fault> {
        self.engine.borrow_mut().restore_sealed(&self.guard, run)
    }
}

fn seal(tree: &tempfile::TempDir) -> Seal {
    Seal::take(tree.path(), &["build.sh".into(), "tests/new".into()])
}

#[test]
fn an_untouched_tree_is_left_alone() {
    let tree = tree();
    assert!(seal(&tree).restore().is_empty());
}

#[test]
fn a_changed_a_deleted_and_a_new_file_are_put_back_with_their_modes() {
    let tree = tree();
    let path = tree.path().join("build.sh");
    let seal = seal(&tree);
    fs::remove_file(&path).unwrap();
    symlink("/bin/true", &path).unwrap();
    File::create_new(tree.path().join("tests/new")).unwrap();
    assert_eq!(seal.restore(), ["build.sh", "tests/new"]);
    assert_eq!(fs::read(&path).unwrap(), b"exit 1\n");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o755
    );
    assert!(!tree.path().join("tests/new").exists());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(seal.restore(), ["build.sh"]);
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
    assert_eq!(seal.restore(), ["build.sh"]);
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
    let seal = Seal::take(tree.path(), &["tests/kept".into(), "tests/new".into()]);
    fs::remove_dir_all(tree.path().join("tests")).unwrap();
    symlink(outside.path(), tree.path().join("tests")).unwrap();
    assert_eq!(seal.restore(), ["tests/kept"]);
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
    code_commit_repo::Git::new(tree.path(), "git", [])
        .init()
        .unwrap();
    let config = fs::read(tree.path().join(".git/config")).unwrap();
    File::create_new(tree.path().join("tests/config")).unwrap();
    let seal = Seal::take(tree.path(), &["tests/config".into()]);
    fs::rename(tree.path().join("tests"), tree.path().join("tests.old")).unwrap();
    symlink(".git", tree.path().join("tests")).unwrap();
    assert_eq!(seal.restore(), ["tests/config"]);
    assert_eq!(fs::read(tree.path().join(".git/config")).unwrap(), config);
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
        let seal = Seal::take(tree.path(), &["tests/deep/er/a".into()]);
        fs::remove_dir_all(tree.path().join(remains.unwrap_or("tests"))).unwrap();
        if let Some(name) = remains {
            File::create_new(tree.path().join(name)).unwrap();
        }
        assert_eq!(seal.restore(), ["tests/deep/er/a"]);
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
    let seal = Seal::take(tree.path(), &["tests/link".into()]);
    assert!(seal.restore().is_empty());
    fs::remove_file(&link).unwrap();
    File::create_new(&link).unwrap();
    assert_eq!(seal.restore(), ["tests/link"]);
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
        assert_eq!(seal.restore(), [name]);
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o0)).unwrap();
    assert_eq!(seal.restore(), ["build.sh"]);
    assert_eq!(fs::read(&path).unwrap(), b"exit 1\n");
}

/// A build may have moved files of the user's there.
#[test]
fn a_folder_in_place_of_a_file_is_kept_and_what_cannot_be_kept_is_named_in_the_error() {
    let tree = tree();
    let seal = seal(&tree);
    fs::remove_file(tree.path().join("build.sh")).unwrap();
    fs::create_dir(tree.path().join("build.sh")).unwrap();
    File::create_new(tree.path().join("build.sh/moved")).unwrap();
    let error = // Nothing can be created below a device, not even by root.
        seal.restore_into(Path::new("/dev/null/run")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the build changed build.sh, which cannot be restored"
    );
    assert!(tree.path().join("build.sh/moved").exists());
    let (restored, kept) = seal.restore_into(seal.run.path()).unwrap();
    assert_eq!(restored, ["build.sh"]);
    assert_eq!(fs::read(tree.path().join("build.sh")).unwrap(), b"exit 1\n");
    assert!(kept.unwrap().join("build.sh/moved").exists());
}

#[test]
fn a_repository_that_was_planted_is_kept_as_something_else() {
    let tree = tree();
    let seal = Seal::take(tree.path(), &["tests/.git".into()]);
    fs::create_dir_all(tree.path().join("tests/.git/hooks")).unwrap();
    let (restored, kept) = seal.restore_into(seal.run.path()).unwrap();
    assert_eq!(restored, ["tests/.git"]);
    assert!(!tree.path().join("tests/.git").exists());
    let kept = kept.unwrap();
    assert!(kept.join("tests/dot-git/hooks").exists() && !kept.join("tests/.git").exists());
}

#[test]
fn what_stood_there_is_kept_wherever_the_run_folder_lies() {
    let (tree, near, far) = (
        tree(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir_in("/dev/shm").unwrap(),
    );
    for run in [near, far] {
        let sealed = ["build.sh".into(), "tests/new".into()];
        let seal = Seal::in_run(tree.path(), &sealed, run);
        File::create(tree.path().join("build.sh"))
            .unwrap()
            .write_all(b"an hour of work\n")
            .unwrap();
        symlink("elsewhere", tree.path().join("tests/new")).unwrap();
        let (restored, kept) = seal.restore_into(seal.run.path()).unwrap();
        assert_eq!(restored, ["build.sh", "tests/new"]);
        let kept = kept.unwrap();
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
