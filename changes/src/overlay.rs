//! The folders of an overlay over the tree, and how the kernel marks what is gone.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};

use code_commit_dir::{Folder, reach};
use rustix::fs::{FileType, Stat};

use crate::backup::Backup;
use crate::change::Seen;

/// Folder in the state folder: on the file system of the tree, since changes are moved.
const OVERLAY: &str = "view";
const UPPER: &str = "upper";
const WORK: &str = "work";
/// What came out of the tree while changes were brought in.
const OUT: &str = "out";
/// As old as the layer.
const SINCE: &str = "since";

/// The folders of one command after the other.
#[derive(Debug, Clone)]
pub(crate) struct Overlay {
    folder: PathBuf,
}

/// The folders that the kernel needs for one mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Receives the changes.
    pub upper: PathBuf,
    /// The kernel's own.
    pub work: PathBuf,
}

impl Overlay {
    pub(crate) fn below(state: &Path) -> Self {
        Self {
            folder: state.join(OVERLAY),
        }
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.folder.join(UPPER)
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.folder.join(OUT)
    }

    /// When the layer was made. What changed in the tree later was changed by somebody else.
    pub(crate) fn since(&self) -> io::Result<(i64, i64)> {
        let since = Folder::open(&self.folder)?.stat(SINCE)?;
        Ok(Seen::of(&since.ok_or(io::ErrorKind::NotFound)?).ctime)
    }

    /// An empty layer.
    pub(crate) fn renew(&self, run: &Path) -> io::Result<()> {
        self.clear(&mut Backup::of(run).or_in(self.state()))?;
        fs::create_dir_all(self.upper())?;
        fs::File::create_new(self.folder.join(SINCE)).map(drop)
    }

    /// The folders for the next command, which sees what the commands before it changed in the same layer. Only the
    /// work folder is new: the kernel refuses that of a volatile mount, since a crash of the machine could have
    /// left the layer incomplete.
    pub(crate) fn folders(&self) -> io::Result<Folders> {
        let (upper, work) = (self.upper(), self.folder.join(WORK));
        reach::remove(Folder::open(&self.folder)?.as_fd(), WORK.as_ref())?;
        fs::create_dir(&work)?;
        Ok(Folders { upper, work })
    }

    /// Removes the layer. If a harness was stopped while it brought in changes, files of the tree may be in it: then
    /// it goes to the backup.
    pub(crate) fn clear(&self, backup: &mut Backup<'_>) -> io::Result<()> {
        if self.out().symlink_metadata().is_err() {
            return self.remove();
        }
        self.keep(backup)
    }

    /// Moves the layer to the backup.
    pub(crate) fn keep(&self, backup: &mut Backup<'_>) -> io::Result<()> {
        let name = self.name();
        backup.take_in(&Folder::open(self.state())?, name, name.as_ref())
    }

    pub(crate) fn state(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        if !self.state().is_dir() {
            return Ok(());
        }
        // The kernel and the command leave folders that even their owner may not enter.
        reach::remove(Folder::open(self.state())?.as_fd(), self.name())
    }

    fn name(&self) -> &OsStr {
        self.folder.file_name().unwrap_or_default()
    }
}

/// A character device with number 0 stands for a removed entry.
pub(crate) fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_char_device() && stat.st_rdev == 0
}

/// Removed and made anew: nothing of the tree's folder shows through.
pub(crate) fn is_opaque(folder: &Folder, name: &OsStr) -> bool {
    let mut value = [0_u8; 4];
    let read = rustix::fs::lgetxattr(through(folder, name), "user.overlay.opaque", &mut value[..]);
    read.is_ok_and(|len| value.get(..len) == Some(b"y"))
}

/// A path that nobody can redirect: the folder by its descriptor, and a last name that is not followed.
pub(crate) fn through(folder: &Folder, name: &OsStr) -> PathBuf {
    Path::new("/proc/self/fd")
        .join(folder.as_fd().as_raw_fd().to_string())
        .join(name)
}
