//! Changes to the names in an open folder: create, rename, remove, always through its descriptor.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, FsWord, Gid, Mode, RenameFlags, Stat, Timespec, Timestamps, Uid,
};
use rustix::io::{Errno, retry_on_intr};

use crate::Folder;
use crate::folder::single;

/// `FUSE_SUPER_MAGIC` of `linux/magic.h`.
const FUSE: FsWord = 0x6573_5546;

impl Folder {
    /// Creates a folder inside this one with this mode, less the umask; fails with `EEXIST` if the name is taken.
    pub fn make_folder(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(
            self,
            single(name.as_ref())?,
            Mode::from_raw_mode(mode),
        )?)
    }

    /// Creates a symlink to `target`; fails with `EEXIST` if the name is taken.
    pub fn make_link(&self, name: impl AsRef<OsStr>, target: &CString) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, self, single(name.as_ref())?)?)
    }

    /// Creates a named pipe with exactly this mode; fails with `EEXIST` if the name is taken.
    pub fn make_fifo(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<()> {
        let (name, mode) = (single(name.as_ref())?, Mode::from_raw_mode(mode));
        rustix::fs::mknodat(self, name, FileType::Fifo, mode, 0)?;
        // The umask was applied.
        Ok(rustix::fs::chmodat(self, name, mode, AtFlags::empty())?)
    }

    /// The target of a symlink; fails with `EINVAL` if it is not one.
    pub fn read_link(&self, name: impl AsRef<OsStr>) -> io::Result<CString> {
        Ok(rustix::fs::readlinkat(
            self,
            single(name.as_ref())?,
            Vec::new(),
        )?)
    }

    /// Renames, replacing whatever has the new name.
    pub fn rename(
        &self,
        name: impl AsRef<OsStr>,
        to: &Folder,
        new_name: impl AsRef<OsStr>,
    ) -> io::Result<()> {
        let (name, new_name) = (single(name.as_ref())?, single(new_name.as_ref())?);
        Ok(rustix::fs::renameat(self, name, to, new_name)?)
    }

    /// Swaps two entries in one step, whatever they are; both must exist.
    pub fn exchange(
        &self,
        name: impl AsRef<OsStr>,
        other: &Folder,
        other_name: impl AsRef<OsStr>,
    ) -> io::Result<()> {
        let (name, other_name) = (single(name.as_ref())?, single(other_name.as_ref())?);
        Ok(rustix::fs::renameat_with(
            self,
            name,
            other,
            other_name,
            RenameFlags::EXCHANGE,
        )?)
    }

    /// Gives an entry the owner, if permitted, and the times of another one. Follows no symlink.
    pub fn date_like(&self, name: impl AsRef<OsStr>, model: &Stat) -> io::Result<()> {
        let name = single(name.as_ref())?;
        let time = |seconds, nanos: u64| Timespec {
            tv_sec: seconds,
            tv_nsec: nanos.try_into().unwrap_or(0),
        };
        let times = Timestamps {
            last_access: time(model.st_atime, model.st_atime_nsec),
            last_modification: time(model.st_mtime, model.st_mtime_nsec),
        };
        let owner = (model.st_uid, model.st_gid);
        let is_its = |found: Stat| (found.st_uid, found.st_gid) == owner;
        // It would cost a set-id bit.
        if !self.stat(name)?.is_some_and(is_its) {
            let (uid, gid) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
            let _ =
                rustix::fs::chownat(self, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW);
        }
        Ok(rustix::fs::utimensat(
            self,
            name,
            &times,
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Renames to a path that the harness chose.
    pub fn rename_to(&self, name: impl AsRef<OsStr>, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat(
            self,
            single(name.as_ref())?,
            CWD,
            path,
        )?)
    }

    /// Renames, or fails with `EEXIST` if the new name is taken. Some file systems cannot check and
    /// rename in one step; there, a file that appears in between is replaced.
    pub fn rename_new(
        &self,
        name: impl AsRef<OsStr>,
        to: &Folder,
        new_name: impl AsRef<OsStr>,
    ) -> io::Result<()> {
        let (name, new_name) = (single(name.as_ref())?, single(new_name.as_ref())?);
        match rustix::fs::renameat_with(self, name, to, new_name, RenameFlags::NOREPLACE) {
            Err(error) if lacks(error) && to.stat(new_name)?.is_some() => Err(Errno::EXIST.into()),
            Err(error) if lacks(error) => Ok(rustix::fs::renameat(self, name, to, new_name)?),
            renamed => Ok(renamed?),
        }
    }

    /// Renames without ever replacing a file. On file systems that cannot check and rename in one
    /// step, the file keeps its old name, too; without hard links it replaces an empty file that claims the
    /// new name first, and that stays if this process ends in between.
    pub fn place_new(
        &self,
        name: impl AsRef<OsStr>,
        to: &Folder,
        new_name: impl AsRef<OsStr>,
    ) -> io::Result<()> {
        let (name, new_name) = (single(name.as_ref())?, single(new_name.as_ref())?);
        match rustix::fs::renameat_with(self, name, to, new_name, RenameFlags::NOREPLACE) {
            Err(error) if lacks(error) => {}
            placed => return Ok(placed?),
        }
        match rustix::fs::linkat(self, name, to, new_name, AtFlags::empty()) {
            Err(error) if lacks(error) => {}
            linked => return Ok(linked?),
        }
        to.create_file(new_name, 0o600)?;
        self.rename(name, to, new_name)
    }

    /// Removes anything but a folder.
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(
            self,
            single(name.as_ref())?,
            AtFlags::empty(),
        )?)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(
            self,
            single(name.as_ref())?,
            AtFlags::REMOVEDIR,
        )?)
    }

    /// Syncs the names in this folder to disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fsync(self))?)
    }

    /// Syncs everything on the file system of this folder, in one call. On [FUSE](Self::is_fuse) it need not do anything.
    pub fn sync_file_system(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::syncfs(self))?)
    }

    /// Syncs everything below this folder: with its whole file system, or one by one on FUSE.
    pub fn sync_all(&self) -> io::Result<()> {
        if self.is_fuse()? {
            self.sync_each()
        } else {
            self.sync_file_system()
        }
    }

    fn sync_each(&self) -> io::Result<()> {
        for (name, _) in self.entries()? {
            let name = OsStr::from_bytes(&name);
            let stat = self.stat(name)?;
            let kind = stat.map(|stat| FileType::from_raw_mode(stat.st_mode));
            if kind == Some(FileType::Directory) {
                self.open_in(name)?.sync_each()?;
            } else if kind == Some(FileType::RegularFile) {
                self.open_file(name)?.sync_all()?;
            }
        }
        self.sync()
    }

    /// Whether a program serves this file system.
    pub fn is_fuse(&self) -> io::Result<bool> {
        Ok(rustix::fs::fstatfs(self)?.f_type == FUSE)
    }
}

/// Whether [a wait for all of the one file system](Folder::sync_all) is one for the other; not on FUSE.
pub fn is_one_file_system(path: &Path, other: &Path) -> bool {
    let device = |path| {
        let folder = Folder::open(path).ok()?;
        (!folder.is_fuse().ok()?).then_some(folder.id().0)
    };
    device(path).is_some_and(|own| device(other) == Some(own))
}

/// Whether the file system may not have what was asked for: hard links, symlinks or flags of a rename. vfat says
/// `EPERM`.
pub(crate) fn lacks(error: Errno) -> bool {
    matches!(
        error,
        Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::PERM
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_by_one_files_and_folders_are_synced_whatever_lies_between() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::open(scratch.path()).unwrap();
        folder.make_folder("below", 0o700).unwrap();
        let below = folder.open_in("below").unwrap();
        for folder in [&folder, &below] {
            folder.create_file("file", 0o200).unwrap();
            folder
                .make_link("link", &CString::new("/none").unwrap())
                .unwrap();
            folder.make_fifo("pipe", 0o600).unwrap();
        }
        folder.sync_each().unwrap();
        assert!(is_one_file_system(
            scratch.path(),
            &scratch.path().join("below")
        ));
        assert!(!is_one_file_system(scratch.path(), Path::new("/proc")));
    }
}
