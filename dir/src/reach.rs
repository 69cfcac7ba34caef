//! Walks down from a folder by descriptors, to any depth and never through a symlink. An agent may
//! have changed the modes of our own files: a folder that its owner may not enter is made accessible
//! first.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::fs::{chmod, fchmod, fstat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::open::openat;

mod descent;

pub use descent::Descent;

/// The permissions it takes to list a folder and to stat what is in it.
pub const LOOK: Mode = Mode::from_raw_mode(0o500);
/// The permissions it takes to change what is in a folder.
pub const CHANGE: Mode = Mode::from_raw_mode(0o700);

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a folder by a path that the harness chose. One of ours that lacks the permissions gets them.
pub fn root(path: &Path, need: Mode) -> io::Result<OwnedFd> {
    let open = || {
        openat(
            CWD,
            path,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
    };
    let folder = match open() {
        Err(Errno::ACCESS) => {
            open_up(CWD, path, CHANGE)?;
            open()?
        }
        opened => opened?,
    };
    usable(folder, need)
}

/// The folder in which `place` lies below `top`.
pub fn folder_of(top: &Path, place: &Path, need: Mode) -> io::Result<OwnedFd> {
    let mut here = root(top, need)?;
    let names = place.parent().into_iter().flat_map(Path::components);
    for name in names {
        here = enter(&here, name.as_os_str(), need)?;
    }
    Ok(here)
}

/// Whether the error means that there is no folder: nothing, a file, or a symlink.
pub fn is_gone(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// A folder inside of another; one of ours that cannot be used is made usable.
fn enter(at: impl AsFd, name: &OsStr, need: Mode) -> io::Result<OwnedFd> {
    let folder = match openat(&at, name, FOLDER, Mode::empty()) {
        Err(Errno::ACCESS) => {
            open_up(&at, name, CHANGE)?;
            openat(at, name, FOLDER, Mode::empty())?
        }
        opened => opened?,
    };
    usable(folder, need)
}

fn usable(folder: OwnedFd, need: Mode) -> io::Result<OwnedFd> {
    let data = fstat(&folder)?;
    if lacks(&data, need) {
        fchmod(&folder, Mode::from_raw_mode(data.st_mode) | CHANGE)?;
    }
    Ok(folder)
}

/// Whether we lack a permission that we can give ourselves.
fn lacks(data: &Stat, need: Mode) -> bool {
    let us = geteuid();
    !us.is_root() && data.st_uid == us.as_raw() && !Mode::from_raw_mode(data.st_mode).contains(need)
}

/// Adds to the mode of anything but a symlink.
fn open_up(at: impl AsFd, name: impl rustix::path::Arg, more: Mode) -> io::Result<()> {
    change_mode(at, name, |mode| mode | more)
}

/// Sets the mode of anything but a symlink, even of a folder that its owner may not open.
pub fn set_mode(at: impl AsFd, name: &OsStr, mode: Mode) -> io::Result<()> {
    change_mode(at, name, |_| mode)
}

fn change_mode(
    at: impl AsFd,
    name: impl rustix::path::Arg,
    change: impl FnOnce(Mode) -> Mode,
) -> io::Result<()> {
    let there = openat(
        at,
        name,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let data = fstat(&there)?;
    if kind(&data) == FileType::Symlink {
        return Err(Errno::LOOP.into());
    }
    // A descriptor opened with `O_PATH` can only be changed through `/proc`, where its name cannot
    // be swapped.
    let itself = format!("/proc/self/fd/{}", there.as_raw_fd());
    Ok(chmod(itself, change(Mode::from_raw_mode(data.st_mode)))?)
}

/// Opens a regular file of ours that its owner may not read, which any command can make. Its mode is restored at
/// once; only its change time tells.
pub(crate) fn open_closed(at: impl AsFd, name: &OsStr) -> io::Result<File> {
    let there = openat(
        at,
        name,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let data = fstat(&there)?;
    if kind(&data) != FileType::RegularFile || !lacks(&data, Mode::RUSR) {
        return Err(Errno::ACCESS.into());
    }
    // As in `change_mode`: its name may be another file's by now.
    let itself = format!("/proc/self/fd/{}", there.as_raw_fd());
    let mode = Mode::from_raw_mode(data.st_mode);
    chmod(&itself, mode | Mode::RUSR)?;
    let opened = openat(
        CWD,
        &itself,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    );
    chmod(&itself, mode)?;
    Ok(File::from(opened?))
}

/// The type of the entry: file, folder, symlink, …
pub fn kind(data: &Stat) -> FileType {
    FileType::from_raw_mode(data.st_mode)
}

/// The metadata, without following a symlink. Makes our own file readable first if needed. `None` if
/// it is gone.
pub fn look(at: &OwnedFd, name: &OsStr) -> io::Result<Option<Stat>> {
    let stat = || match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(None),
        data => Ok(Some(data?)),
    };
    match stat()? {
        Some(data) if kind(&data) == FileType::RegularFile && lacks(&data, Mode::RUSR) => {
            open_up(at, name, Mode::RUSR)?;
            stat()
        }
        data => Ok(data),
    }
}

/// The names in a folder.
pub fn names(folder: impl AsFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

/// Removes a file or a folder with all its content, if it exists.
pub fn remove(at: impl AsFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(&at, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR) => {
            empty(enter(&at, name, CHANGE)?)?;
            Ok(unlinkat(at, name, AtFlags::REMOVEDIR)?)
        }
        done => Ok(done?),
    }
}

fn empty(folder: OwnedFd) -> io::Result<()> {
    let mut way = Descent::from(folder, CHANGE);
    let mut left = vec![unlink_files(&way.here)?];
    while let Some(folders) = left.last_mut() {
        if let Some(name) = folders.pop() {
            way.enter(&name)?;
            left.push(unlink_files(&way.here)?);
            continue;
        }
        left.pop();
        if let Some(name) = way.leave()? {
            unlinkat(&way.here, &name, AtFlags::REMOVEDIR)?;
        }
    }
    Ok(())
}

/// Removes everything but folders, which it returns.
fn unlink_files(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut folders = Vec::new();
    for name in names(folder)? {
        match unlinkat(folder, &name, AtFlags::empty()) {
            Err(Errno::ISDIR) => folders.push(name),
            Err(Errno::NOENT) => {}
            done => done?,
        }
    }
    Ok(folders)
}
