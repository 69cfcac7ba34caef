//! Down from a folder by descriptors, through no symlink, however deep it goes, and whatever modes an agent has set on what is ours: a
//! folder that its owner may not enter is opened up first.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::fs::{chmod, fchmod, fstat, mkdirat, openat, readlinkat, statat, symlinkat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// The permissions it takes to list a folder and to stat what is in it.
pub const LOOK: Mode = Mode::from_raw_mode(0o500);
/// The permissions it takes to change what is in a folder.
pub const CHANGE: Mode = Mode::from_raw_mode(0o700);

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A pipe must not hold us up.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a folder by a path that the harness chose. One of ours that lacks the permissions gets them.
pub fn root(path: &Path, need: Mode) -> io::Result<OwnedFd> {
    let open = || openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
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

/// The same folder, made if it is not there. A file or a link that the role has put in the place of one is removed: what is written below
/// must not come out elsewhere.
pub fn make_folder_of(top: &Path, place: &Path) -> io::Result<OwnedFd> {
    std::fs::create_dir_all(top)?;
    let mut here = root(top, CHANGE)?;
    let names = place.parent().into_iter().flat_map(Path::components);
    for name in names {
        let name = name.as_os_str();
        here = match enter(&here, name, CHANGE) {
            Err(error) if is_gone(&error) => {
                remove(&here, name)?;
                mkdirat(&here, name, Mode::from_raw_mode(0o777))?;
                enter(&here, name, CHANGE)?
            }
            entered => entered?,
        };
    }
    Ok(here)
}

/// Whether the error says that no folder is there: nothing, a file, or a symlink.
pub fn is_gone(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// A folder inside of another; one of ours that cannot be used is made usable.
fn enter(at: &OwnedFd, name: &OsStr, need: Mode) -> io::Result<OwnedFd> {
    let folder = match openat(at, name, FOLDER, Mode::empty()) {
        Err(Errno::ACCESS) => {
            open_up(at, name, CHANGE)?;
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

/// Whether we may not do it, and may allow it to ourselves.
fn lacks(data: &Stat, need: Mode) -> bool {
    let us = geteuid();
    !us.is_root() && data.st_uid == us.as_raw() && !Mode::from_raw_mode(data.st_mode).contains(need)
}

/// Adds to the mode of what is there, if that is no link.
fn open_up(at: impl AsFd, name: impl rustix::path::Arg, more: Mode) -> io::Result<()> {
    let there = openat(at, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let data = fstat(&there)?;
    if kind(&data) == FileType::Symlink {
        return Err(Errno::LOOP.into());
    }
    // Such a descriptor has no other way to it; its own name in `/proc` cannot be swapped.
    let itself = format!("/proc/self/fd/{}", there.as_raw_fd());
    Ok(chmod(itself, Mode::from_raw_mode(data.st_mode) | more)?)
}

/// The type of the entry: file, folder, symlink, …
pub fn kind(data: &Stat) -> FileType {
    FileType::from_raw_mode(data.st_mode)
}

/// What is there, a link for itself; a file of ours that cannot be read is made readable first. None if it is gone.
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

/// A file with its mode, or a link, where nothing is yet. Other kinds are not copied.
pub fn copy(from: &OwnedFd, to: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let data = statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match kind(&data) {
        FileType::Symlink => Ok(symlinkat(readlinkat(from, name, Vec::new())?, to, name)?),
        FileType::RegularFile => {
            let mut source = File::from(openat(from, name, FILE, Mode::empty())?);
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut copied = File::from(openat(to, name, flags, Mode::RUSR | Mode::WUSR)?);
            io::copy(&mut source, &mut copied)?;
            Ok(fchmod(&copied, Mode::from_raw_mode(data.st_mode))?)
        }
        FileType::Directory
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Ok(()),
    }
}

/// Whether two folders hold the same file or link under a name, the second one under this name alone.
pub fn is_same(one: &OwnedFd, other: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    let (Some(a), Some(b)) = (look(one, name)?, look(other, name)?) else { return Ok(false) };
    if (a.st_mode, a.st_size, 1) != (b.st_mode, b.st_size, b.st_nlink) {
        return Ok(false);
    }
    if kind(&a) == FileType::Symlink {
        return Ok(readlinkat(one, name, Vec::new())? == readlinkat(other, name, Vec::new())?);
    }
    let read = |folder| {
        let mut bytes = Vec::new();
        File::from(openat(folder, name, FILE, Mode::empty())?).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    Ok(kind(&a) == FileType::RegularFile && read(one)? == read(other)?)
}

/// Removes what is there, if anything is, with all that is in it.
pub fn remove(at: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(at, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR) => {
            empty(enter(at, name, CHANGE)?)?;
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

/// Removes what is no folder; gives the folders.
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

/// Goes down a tree and up again with one descriptor, however deep the tree is.
#[derive(Debug)]
pub struct Descent {
    /// The folder reached so far.
    pub here: OwnedFd,
    need: Mode,
    /// Device and inode of each folder above, and the name in it that was entered.
    above: Vec<(u64, u64, OsString)>,
}

impl Descent {
    /// Starts in this folder; `need` is what has to be allowed in each folder below.
    pub fn from(here: OwnedFd, need: Mode) -> Self {
        Self { here, need, above: Vec::new() }
    }

    /// One folder down.
    pub fn enter(&mut self, name: &OsStr) -> io::Result<()> {
        let data = fstat(&self.here)?;
        self.here = enter(&self.here, name, self.need)?;
        self.above.push((data.st_dev, data.st_ino, name.to_owned()));
        Ok(())
    }

    /// Back to the folder above; gives the name of the one that was left. None at the top.
    pub fn leave(&mut self) -> io::Result<Option<OsString>> {
        let Some((device, inode, name)) = self.above.pop() else { return Ok(None) };
        let up = openat(&self.here, "..", FOLDER, Mode::empty())?;
        let data = fstat(&up)?;
        if (data.st_dev, data.st_ino) != (device, inode) {
            return Err(io::Error::other("a folder was moved meanwhile"));
        }
        self.here = up;
        Ok(Some(name))
    }
}
