//! The files that git tracks as they are on disk.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use prompt::rollup::{LARGEST_FILE, LeftOut, left_out};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// The root of the project. No link below it is followed: to git a file behind one is deleted, and it may lie outside.
pub struct OnDisk {
    root: OwnedFd,
}

/// What stands where git tracks a file.
pub enum Found {
    /// A regular file, which has been read.
    Content,
    /// A file that no model should see.
    LeftOut(LeftOut),
    Link,
    /// Nothing that could be shown: it is deleted, or a folder by now.
    Other,
}

impl OnDisk {
    /// Opens the root.
    pub fn at(root: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { root: rustix::fs::open(root, flags, Mode::empty())? })
    }

    /// Reads the file at a path relative to the root in place of `content`.
    pub fn read(&self, path: &str, content: &mut Vec<u8>) -> io::Result<Found> {
        content.clear();
        let file = match self.open(path) {
            Ok(file) => File::from(file),
            Err(Errno::LOOP) => return Ok(if self.is_link(path) { Found::Link } else { Found::Other }),
            // The last is a socket's.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NXIO) => return Ok(Found::Other),
            // What its name leaves out need not be readable.
            Err(error) => return left_out(path, 0).map(Found::LeftOut).ok_or_else(|| error.into()),
        };
        let stat = rustix::fs::fstat(&file)?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Ok(Found::Other);
        }
        if let Some(why) = left_out(path, u64::try_from(stat.st_size).unwrap_or_default()) {
            return Ok(Found::LeftOut(why));
        }
        // It may have grown since.
        file.take(LARGEST_FILE + 1).read_to_end(content)?;
        Ok(left_out(path, content.len() as u64).map_or(Found::Content, Found::LeftOut))
    }

    fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve) {
            // An old kernel, or a container that denies the call.
            Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(&self.root, path, flags, Mode::empty()),
            opened => opened,
        }
    }

    fn is_link(&self, path: &str) -> bool {
        let stat = rustix::fs::statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink())
    }
}
