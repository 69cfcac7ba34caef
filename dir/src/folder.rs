//! A folder held open by its descriptor. The only way down is one name at a time, without following
//! symlinks.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat, StatxAttributes, StatxFlags,
};
use rustix::io::Errno;

use crate::{open, reach};

/// Buffer size for the entries that one system call returns.
const BUFFER_BYTES: usize = 32 << 10;
/// For reading a file: does not follow a symlink, and does not wait for the other end of a FIFO.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// A folder that stays the same folder whatever happens to its name.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    dev: u64,
    ino: u64,
}

impl Folder {
    /// Opens a folder by a path that the user chose; symlinks are followed.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Folder::from_fd(open::openat(CWD, path, flags, Mode::empty())?)
    }

    /// Opens a folder inside this one.
    ///
    /// Fails with `ELOOP` or `ENOTDIR` at a symlink and with `EXDEV` at another mount: a single name, looked up by
    /// `openat2` with `RESOLVE_BENEATH | NO_SYMLINKS | NO_MAGICLINKS | NO_XDEV`, or, where the kernel or a
    /// seccomp filter denies that call, by `openat` with `O_NOFOLLOW`.
    pub fn open_in(&self, name: impl AsRef<OsStr>) -> io::Result<Folder> {
        let name = single(name.as_ref())?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match open::openat2(&self.fd, name, flags, Mode::empty(), beneath()) {
            Err(Errno::NOSYS | Errno::PERM) => open::openat(&self.fd, name, flags, Mode::empty())?,
            opened => opened?,
        };
        let folder = Folder::from_fd(fd)?;
        if folder.dev != self.dev {
            return Err(Errno::XDEV.into());
        }
        Ok(folder)
    }

    /// Another descriptor of the same folder.
    pub fn try_clone(&self) -> io::Result<Folder> {
        Ok(Folder {
            fd: self.fd.try_clone()?,
            dev: self.dev,
            ino: self.ino,
        })
    }

    /// The folder that contains `path`, which is relative to this one; every name is opened by
    /// [`open_in`](Self::open_in).
    pub fn folder_of(&self, path: &Path) -> io::Result<Folder> {
        let mut folder = self.try_clone()?;
        for name in path.parent().into_iter().flat_map(Path::iter) {
            folder = folder.open_in(name)?;
        }
        Ok(folder)
    }

    /// Creates a file with this mode, less the umask; fails with `EEXIST` if the name is taken.
    pub fn create_file(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = single(name.as_ref())?;
        Ok(File::from(open::openat(
            &self.fd,
            name,
            flags,
            Mode::from_raw_mode(mode),
        )?))
    }

    /// Opens a regular file in this folder for reading, also one of ours whose mode forbids that. Anything else
    /// fails; a FIFO does not block.
    pub fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = single(name.as_ref())?;
        let file = match open::openat(&self.fd, name, READ, Mode::empty()) {
            Err(Errno::ACCESS) => reach::open_closed(&self.fd, name)?,
            opened => File::from(opened?),
        };
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::other("it is not a regular file"))
        }
    }

    /// Opens a regular file at a path below this folder for reading, on any mount. `None` if there is
    /// no regular file, or if the path passes through a symlink.
    pub fn open_file_below(&self, path: &Path) -> io::Result<Option<File>> {
        let beneath =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = match open::openat2(&self.fd, path, READ, Mode::empty(), beneath) {
            Err(Errno::NOSYS | Errno::PERM) => self.walk_to_file(path),
            opened => opened,
        };
        let file = match opened {
            // The last is a socket's.
            Err(Errno::LOOP | Errno::NOENT | Errno::NOTDIR | Errno::NXIO) => return Ok(None),
            opened => File::from(opened?),
        };
        Ok(file.metadata()?.is_file().then_some(file))
    }

    /// Opens a file below the folder name by name. `O_NOFOLLOW` applies only to the last name, so each folder is opened
    /// separately.
    fn walk_to_file(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut here = None;
        for name in path.parent().into_iter().flat_map(Path::iter) {
            let at = here.as_ref().unwrap_or(&self.fd);
            here = Some(open::openat(at, single(name)?, way, Mode::empty())?);
        }
        let name = single(path.file_name().unwrap_or_default())?;
        open::openat(here.as_ref().unwrap_or(&self.fd), name, READ, Mode::empty())
    }

    /// The metadata of `name`, without following a symlink; `None` if there is nothing.
    pub fn stat(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.fd, single(name.as_ref())?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether `name` is a mount point, which nothing can be renamed over, even if it is a file of the
    /// same file system. False if the kernel cannot tell (before Linux 5.8).
    pub fn is_mount(&self, name: &str) -> bool {
        let found = rustix::fs::statx(
            &self.fd,
            name,
            AtFlags::SYMLINK_NOFOLLOW,
            StatxFlags::empty(),
        );
        found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
    }

    /// The names in this folder with their types, without `.` and `..`, in no order.
    pub fn entries(&self) -> io::Result<Vec<(Vec<u8>, FileType)>> {
        self.entries_if(|_, _| true)
    }

    /// The entries that are `wanted`. The others use no memory, because folders may be large.
    pub fn entries_if(
        &self,
        wanted: impl Fn(&[u8], FileType) -> bool,
    ) -> io::Result<Vec<(Vec<u8>, FileType)>> {
        // A separate descriptor, because the read position belongs to the open file description.
        let fd = open::openat(
            &self.fd,
            ".",
            OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        let mut folder = RawDir::new(fd, buffer.spare_capacity_mut());
        let mut found = Vec::new();
        while let Some(entry) = folder.next() {
            let entry = entry?;
            let (name, file_type) = (entry.file_name().to_bytes(), entry.file_type());
            if name != b"." && name != b".." && wanted(name, file_type) {
                found.push((name.to_vec(), file_type));
            }
        }
        Ok(found)
    }

    /// Device and inode, which identify a folder.
    pub fn id(&self) -> (u64, u64) {
        (self.dev, self.ino)
    }

    fn from_fd(fd: OwnedFd) -> io::Result<Folder> {
        let stat = rustix::fs::fstat(&fd)?;
        Ok(Folder {
            fd,
            dev: stat.st_dev,
            ino: stat.st_ino,
        })
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn beneath() -> ResolveFlags {
    ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV
}

/// A name with a slash would be a path, and `..` would be a way up.
pub(crate) fn single(name: &OsStr) -> rustix::io::Result<&OsStr> {
    let bytes = name.as_encoded_bytes();
    let is_single = !bytes.is_empty() && bytes != b"." && bytes != b".." && !bytes.contains(&b'/');
    if is_single {
        Ok(name)
    } else {
        Err(Errno::INVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_is_opened_as_one() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::open(scratch.path()).unwrap();
        File::create(scratch.path().join("file")).unwrap();
        std::fs::create_dir(scratch.path().join("folder")).unwrap();
        std::os::unix::fs::symlink("file", scratch.path().join("link")).unwrap();
        rustix::fs::mknodat(&folder, "fifo", FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(folder.open_file("file").is_ok());
        for other in ["folder", "link", "fifo"] {
            assert!(folder.open_file(other).is_err(), "{other}");
        }
    }

    #[test]
    fn a_file_below_is_opened_through_no_symlink_with_openat2_and_without() {
        let scratch = tempfile::tempdir().unwrap();
        let (root, outside) = (scratch.path().join("root"), scratch.path().join("outside"));
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        for file in [root.join("a/b/file"), outside.join("file")] {
            File::create(file).unwrap();
        }
        std::os::unix::fs::symlink(&outside, root.join("out")).unwrap();
        std::os::unix::fs::symlink("a", root.join("link")).unwrap();
        std::os::unix::fs::symlink("file", root.join("a/b/link")).unwrap();
        let folder = Folder::open(&root).unwrap();
        let opened = |path: &str| folder.open_file_below(Path::new(path)).unwrap().is_some();
        let walked = |path: &str| folder.walk_to_file(Path::new(path)).is_ok();
        assert!(opened("a/b/file") && walked("a/b/file"));
        for other in [
            "out/file",
            "link/b/file",
            "a/b/link",
            "a/b/none",
            "a/b/file/x",
        ] {
            assert!(!opened(other) && !walked(other), "{other}");
        }
        assert!(!opened("a/b"));
        for way_up in ["../outside/file", "a/../../outside/file", ""] {
            assert!(
                folder
                    .open_file_below(Path::new(way_up))
                    .ok()
                    .flatten()
                    .is_none(),
                "{way_up}"
            );
            assert!(!walked(way_up), "{way_up}");
        }
    }
}
