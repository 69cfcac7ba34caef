//! What is at a path below a folder, and how to create a file like a previous one.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, BufRead};
use std::path::Path;

use rustix::fs::{FileType, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use crate::{Attributes, Folder};

/// What is at a path.
#[derive(Debug)]
pub enum Found {
    /// Nothing, or the path passes through something that is not a folder.
    Absent,
    /// A regular file.
    File {
        /// Its content, from the beginning.
        content: File,
        /// Its metadata.
        inode: Inode,
    },
    /// A symlink and its target.
    Link(CString),
    /// Anything else, as its type and mode: enough to compare, not enough to create it again.
    Other(u32),
}

/// A file's metadata.
#[derive(Debug, Clone)]
pub struct Inode {
    /// Its permission bits.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// In bytes.
    pub len: u64,
    /// When it was last modified, in seconds and nanoseconds, so that a restored file does not look newer than what was
    /// built from it.
    pub modified: (i64, i64),
    /// Its access list and other attributes.
    pub attributes: Attributes,
}

impl Folder {
    /// What is at this path now. A file that we may not read counts as [`Found::Other`]; any other error
    /// says nothing about what is there.
    pub fn look(&self, path: &Path) -> io::Result<Found> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = match self.folder_of(path) {
            Ok(folder) => folder,
            Err(error) => return no_way(error),
        };
        let Some(stat) = folder.stat(name)? else {
            return Ok(Found::Absent);
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind.is_symlink() {
            return folder.read_link(name).map(Found::Link);
        }
        if !kind.is_file() {
            return Ok(Found::Other(stat.st_mode));
        }
        match folder.open_file(name) {
            Ok(content) => Ok(Found::File {
                inode: Inode::of(&stat, &content)?,
                content,
            }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Ok(Found::Other(stat.st_mode))
            }
            Err(error) => Err(error),
        }
    }

    /// Creates a file with this content, this metadata and, if permitted, this owner.
    pub fn make_file(
        &self,
        name: &OsStr,
        mut content: &mut dyn BufRead,
        inode: &Inode,
    ) -> io::Result<()> {
        let mut file = self.create_file(name, 0o600)?;
        io::copy(&mut content, &mut file)?;
        let (uid, gid) = inode.owner;
        // Set-id bits would be another owner's.
        let is_owned = std::os::unix::fs::fchown(&file, Some(uid), Some(gid)).is_ok();
        inode.attributes.give(
            &file,
            if is_owned {
                inode.mode
            } else {
                inode.mode & 0o777
            },
        )?;
        let time = Timespec {
            tv_sec: inode.modified.0,
            tv_nsec: inode.modified.1,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        Ok(rustix::fs::futimens(&file, &times)?)
    }
}

impl Inode {
    fn of(stat: &Stat, content: &File) -> io::Result<Self> {
        let (mode, owner) = (stat.st_mode & 0o7777, (stat.st_uid, stat.st_gid));
        let len = u64::try_from(stat.st_size).unwrap_or(0);
        let modified = (
            stat.st_mtime,
            i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
        );
        Ok(Self {
            mode,
            owner,
            len,
            modified,
            attributes: Attributes::of(content)?,
        })
    }
}

/// A folder on the path is missing or not a folder; or it is another mount or inaccessible, so what
/// is below it is unknown.
fn no_way(error: io::Error) -> io::Result<Found> {
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(Found::Absent),
        Some(Errno::XDEV | Errno::ACCESS) => Ok(Found::Other(0)),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_stands_at_a_path_is_told_through_no_symlink() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::open(scratch.path()).unwrap();
        folder.make_folder("folder", 0o755).unwrap();
        let owner = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        let attributes = Attributes::default();
        let old = Inode {
            mode: 0o640,
            owner,
            len: 2,
            modified: (0, 0),
            attributes,
        };
        folder
            .open_in("folder")
            .unwrap()
            .make_file("file".as_ref(), &mut &b"ab"[..], &old)
            .unwrap();
        symlink("folder", scratch.path().join("link")).unwrap();
        let look = |path: &str| folder.look(Path::new(path)).unwrap();
        assert!(
            matches!(look("folder/file"), Found::File { inode: Inode { mode: 0o640, len: 2, modified, .. }, .. } if modified == old.modified)
        );
        assert!(matches!(look("link"), Found::Link(target) if target.as_bytes() == b"folder"));
        assert!(matches!(look("folder"), Found::Other(_)));
        for absent in ["none", "none/file", "link/file", "folder/file/x"] {
            assert!(matches!(look(absent), Found::Absent), "{absent}");
        }
    }
}
