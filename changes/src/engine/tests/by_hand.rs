//! Layers made by hand, as the kernel makes them. Commands change a copy of the tree, and the layer is what
//! distinguishes the copy from the tree.

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat};

/// Copies the tree, runs the command on the copy, and writes to `upper` what it changed.
pub(super) fn work(tree: &Path, upper: &Path, command: impl FnOnce(&Path)) {
    let scratch = tempfile::tempdir().unwrap();
    let copy = scratch.path().join("copy");
    assert!(
        Command::new("cp")
            .arg("-a")
            .args([tree, &copy])
            .status()
            .unwrap()
            .success()
    );
    command(&copy);
    let mode = copy.metadata().unwrap().permissions();
    close(&copy, 0o700);
    compare(tree, &copy, upper);
    fs::set_permissions(upper, mode).unwrap();
}

fn compare(tree: &Path, copy: &Path, upper: &Path) {
    for name in names(tree)
        .into_iter()
        .filter(|name| stat(&copy.join(name)).is_none())
    {
        whiteout(&upper.join(name));
    }
    for name in names(copy) {
        let (was, is, to) = (tree.join(&name), copy.join(&name), upper.join(&name));
        let (old, new) = (stat(&was), stat(&is).unwrap());
        if new.is_dir() {
            // Otherwise this user could not read a folder that the command has closed.
            close(&is, 0o700);
        }
        let had_folder = old.as_ref().is_some_and(Metadata::is_dir);
        if new.is_dir() {
            fs::create_dir(&to).unwrap();
            if had_folder {
                compare(&was, &is, &to);
            } else {
                opaque(&to);
                let empty = tempfile::tempdir().unwrap();
                compare(empty.path(), &is, &to);
            }
            fs::set_permissions(&to, new.permissions()).unwrap();
        } else if new.is_symlink() {
            if old.is_none_or(|_| fs::read_link(&was).ok() != fs::read_link(&is).ok()) {
                symlink(fs::read_link(&is).unwrap(), &to).unwrap();
            }
        } else if new.is_file() {
            let is_same = old.is_some_and(|old| {
                old.is_file()
                    && old.permissions() == new.permissions()
                    && old.modified().unwrap() == new.modified().unwrap()
                    && fs::read(&was).ok() == fs::read(&is).ok()
            });
            if !is_same {
                fs::copy(&is, &to).unwrap();
                fs::File::open(&to)
                    .unwrap()
                    .set_modified(new.modified().unwrap())
                    .unwrap();
            }
        } else {
            mknodat(CWD, &to, FileType::Fifo, Mode::RWXU, 0).unwrap();
        }
    }
}

fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect()
}

fn stat(path: &Path) -> Option<Metadata> {
    path.symlink_metadata().ok()
}

/// Stands for a removed entry.
pub(super) fn whiteout(path: &Path) {
    mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
}

/// Nothing of the tree shows through this folder.
pub(super) fn opaque(folder: &Path) {
    rustix::fs::setxattr(folder, "user.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
}

/// A folder that its owner may no longer use as before.
pub(super) fn close(folder: &Path, mode: u32) {
    fs::set_permissions(folder, Permissions::from_mode(mode)).unwrap();
}
