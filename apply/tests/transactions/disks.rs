//! Disks that are full, read-only, separate or not ours: a clear error, and nothing changed.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;

use code_commit_apply::{Applied, ApplyError, Force, Lock, LockError, Warning, seam};
use code_commit_guard::Op;
use rustix::fs::{Gid, Uid};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::tree::{Tree, admit};

/// A small separate file system; unmounted when dropped.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new(options: &str) -> Option<Disk> {
        let scratch = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "none"])
            .arg(scratch.path())
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Disk(scratch));
        }
        eprintln!("SKIPPED: a disk of its own because mount is not permitted here");
        None
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(
            Command::new("mount")
                .args(["-o", &options])
                .arg(self.0.path())
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Files `a` and `b` in `root`, and a set that changes both.
fn write_two(root: &Path, state: &Path, size: usize) -> Result<Applied, ApplyError> {
    let lock = Lock::acquire(state, "test").unwrap();
    let mut set = code_commit_apply::ChangeSet::new();
    for path in admit(root, &[("a", Op::Write), ("b", Op::Write)]) {
        set.write(path, vec![b'x'; size]);
    }
    code_commit_apply::apply(&lock, root, set, &root.parent().unwrap().join("undo"))
}

fn make_two(root: &Path) {
    fs::create_dir(root).unwrap();
    fs::write(root.join("a"), "old a").unwrap();
    fs::write(root.join("b"), "old b").unwrap();
}

fn assert_untouched(root: &Path, state: &Path) {
    assert_eq!(fs::read(root.join("a")).unwrap(), b"old a");
    assert_eq!(fs::read(root.join("b")).unwrap(), b"old b");
    assert_eq!(fs::read_dir(root).unwrap().count(), 2);
    assert!(!state.join("txn").exists());
}

#[test]
fn a_full_disk_is_an_error_and_changes_nothing() {
    let Some(disk) = Disk::new("size=256k") else {
        return;
    };
    let (root, state) = (disk.path("root"), disk.path("state"));
    make_two(&root);
    let error = write_two(&root, &state, 200 * 1024).unwrap_err();
    let ApplyError::Io { source, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull, "{error}");
    assert_untouched(&root, &state);
    write_two(&root, &state, 1024).unwrap();
}

#[test]
fn a_read_only_disk_is_an_error_and_changes_nothing() {
    let Some(disk) = Disk::new("size=256k") else {
        return;
    };
    let (root, state) = (disk.path("root"), disk.path("state"));
    make_two(&root);
    let lock = Lock::acquire(&state, "test").unwrap();
    drop(lock);
    disk.remount("ro");
    let error = Lock::acquire(&state, "test").unwrap_err();
    assert!(matches!(error, LockError::Io { .. }), "{error:?}");
    insta::assert_snapshot!(error.to_string().replace(disk.0.path().to_str().unwrap(), "DISK"), @"cannot use DISK/state/lock");
    assert_untouched(&root, &state);
}

#[test]
fn state_on_another_disk_than_the_tree_is_refused() {
    let Some(disk) = Disk::new("size=256k") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("root");
    make_two(&root);
    let error = write_two(&root, &disk.path("state"), 10).unwrap_err();
    assert!(
        matches!(error, ApplyError::OtherFileSystem { .. }),
        "{error:?}"
    );
    assert_untouched(&root, &disk.path("state"));
}

#[test]
fn pre_images_may_go_to_another_disk() {
    let Some(disk) = Disk::new("size=1m") else {
        return;
    };
    let tree = Tree::new(&[("a", "old"), ("gone", "gone")]);
    tree.chmod("a", 0o750);
    let old = tree.files();
    let undo = disk.path("run/undo");
    let set = tree.set(&[("a", Some(b"new")), ("gone", None)]);
    let applied = code_commit_apply::apply(&tree.lock, &tree.root, set, &undo).unwrap();
    assert_eq!(applied.warnings, []);
    assert_eq!(tree.state(), ["lock"]);
    assert_eq!(
        code_commit_apply::read_applied(&undo).unwrap(),
        Some(applied)
    );
    code_commit_apply::undo(&tree.lock, &tree.root, &[undo], Force::No).unwrap();
    assert_eq!(tree.files(), old);
}

#[test]
fn a_hand_over_to_another_disk_that_is_cut_off_anywhere_is_finished_by_the_next_start() {
    let Some(disk) = Disk::new("size=1m") else {
        return;
    };
    for stop_at in 1.. {
        let tree = Tree::new(&[("a", "old"), ("gone", "gone")]);
        for path in ["a", "gone"] {
            fs::hard_link(tree.root.join(path), tree.scratch.path().join(path)).unwrap();
        }
        let old = tree.files();
        let undo = disk.path(&format!("run/{stop_at}"));
        let set = tree.set(&[("a", Some(b"new")), ("gone", None)]);
        let mut step = 0;
        let mut steps = |_: &'static str| {
            step += 1;
            assert_ne!(step, stop_at, "interrupted");
        };
        let run = || {
            code_commit_apply::seam::apply(&tree.lock, &tree.root, set, &undo, &mut steps).unwrap()
        };
        let was_cut_off = catch_unwind(AssertUnwindSafe(run)).is_err();
        tree.recover()
            .unwrap_or_else(|error| panic!("{stop_at}: {error:?}"));
        assert_eq!(tree.state(), ["lock"], "{stop_at}");
        if undo.exists() {
            code_commit_apply::undo(&tree.lock, &tree.root, &[undo], Force::No).unwrap();
        }
        assert_eq!(tree.files(), old, "{stop_at}");
        if !was_cut_off {
            break;
        }
    }
}

/// Runs in a thread whose user is not root.
fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let (gid, uid) = (Gid::from_raw(65534), Uid::from_raw(65534));
            let changed = rustix::thread::set_thread_res_gid(gid, gid, gid)
                .and_then(|()| rustix::thread::set_thread_res_uid(uid, uid, uid));
            changed.is_ok().then(work)
        });
        let result = worker.join().unwrap();
        if result.is_none() {
            eprintln!(
                "SKIPPED: a folder without permission because this user cannot become another"
            );
        }
        result
    })
}

/// Including its content; only root may do this.
fn give_to_nobody(folder: &Path) -> bool {
    let chown = Command::new("chown")
        .args(["-R", "65534:65534"])
        .arg(folder)
        .status();
    chown.is_ok_and(|status| status.success())
}

#[test]
fn a_folder_without_write_permission_is_an_error_and_changes_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("root");
    make_two(&root);
    fs::create_dir(root.join("closed")).unwrap();
    fs::write(root.join("closed/c"), "old c").unwrap();
    let state = scratch.path().join("state");
    fs::create_dir(&state).unwrap();
    for path in [
        scratch.path(),
        &root,
        &state,
        &root.join("a"),
        &root.join("b"),
    ] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap_or_default();
    }
    let Some(error) = as_nobody(|| {
        let lock = Lock::acquire(&state, "test").unwrap();
        let mut set = code_commit_apply::ChangeSet::new();
        for path in admit(
            &root,
            &[("a", Op::Write), ("closed/c", Op::Write), ("b", Op::Write)],
        ) {
            set.write(path, b"new");
        }
        code_commit_apply::apply(&lock, &root, set, &scratch.path().join("undo")).unwrap_err()
    }) else {
        return;
    };
    insta::assert_snapshot!(error, @"cannot change closed/c");
    assert_eq!(fs::read(root.join("closed/c")).unwrap(), b"old c");
    fs::remove_dir_all(root.join("closed")).unwrap();
    assert_untouched(&root, &state);
}

#[test]
fn an_owner_that_cannot_be_kept_is_a_warning() {
    let tree = Tree::new(&[("a", "a")]);
    for path in [
        tree.scratch.path(),
        &tree.root,
        &tree.scratch.path().join("state"),
    ] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap_or_default();
    }
    tree.chmod("a", 0o666);
    let set = tree.set(&[("a", Some(b"new"))]);
    let undo = tree.scratch.path().join("undo");
    let Some(applied) =
        as_nobody(|| code_commit_apply::apply(&tree.lock, &tree.root, set, &undo).unwrap())
    else {
        return;
    };
    let path = "a".to_owned();
    assert_eq!(applied.warnings, [Warning::OwnerNotKept { path }]);
    assert_eq!((tree.read("a"), tree.mode("a")), ("new".to_owned(), 0o666));
}

#[test]
fn a_set_is_applied_where_the_system_gives_no_thread() {
    let names: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let tree = Tree::new(
        &names
            .iter()
            .map(|name| (name.as_str(), "old"))
            .collect::<Vec<_>>(),
    );
    let is_given_away = give_to_nobody(tree.scratch.path());
    let changes: Vec<(&str, Option<&[u8]>)> = names
        .iter()
        .map(|name| (name.as_str(), Some(&b"new"[..])))
        .collect();
    let set = tree.set(&changes);
    let undo = tree.scratch.path().join("undo");
    let Some(applied) = as_nobody(|| {
        // Root, as which the other tests run, is not subject to it.
        let usual = getrlimit(Resource::Nproc);
        let current = Some(0);
        setrlimit(Resource::Nproc, Rlimit { current, ..usual }).unwrap();
        assert!(std::thread::Builder::new().spawn(|| ()).is_err());
        let applied = code_commit_apply::apply(&tree.lock, &tree.root, set, &undo);
        setrlimit(Resource::Nproc, usual).unwrap();
        applied
    }) else {
        return;
    };
    assert!(is_given_away);
    assert_eq!(applied.unwrap().warnings, []);
    assert!(names.iter().all(|name| tree.read(name) == "new"));
}

#[test]
fn an_emptied_folder_that_has_to_stay_is_a_warning_at_every_start() {
    let mut tree = Tree::new(&[("a", "a")]);
    tree.apply(&[("n/m", Some(b"new"))]).unwrap();
    let is_given_away = give_to_nobody(tree.scratch.path());
    let mut close_and_end = |step: &'static str| {
        if step == "remove an emptied folder" {
            tree.chmod("", 0o555);
        }
        assert_ne!(step, "tidy the transaction folder", "interrupted");
    };
    let recovered = as_nobody(|| {
        let folders = tree.undos();
        let mut undo = || {
            let steps = &mut close_and_end;
            seam::undo(&tree.lock, &tree.root, &folders, Force::No, steps)
        };
        assert!(catch_unwind(AssertUnwindSafe(&mut undo)).is_err());
        tree.recover()
    });
    tree.chmod("", 0o755);
    let Some(recovered) = recovered else { return };
    assert!(is_given_away);
    let code_commit_apply::Recovery::Finished { applied, undo } = recovered.unwrap() else {
        panic!("not finished")
    };
    assert!(
        matches!(&applied.warnings[..], [Warning::CleanUp { .. }]),
        "{:?}",
        applied.warnings
    );
    assert!(undo.join("manifest.json").exists() && tree.root.join("n").exists());
}
