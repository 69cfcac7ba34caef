//! What changes in a folder that is held: names come, go and move, each by descriptor.

use std::ffi::{CString, OsStr};
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, RenameFlags};
use rustix::io::Errno;

use crate::Folder;
use crate::folder::single;

impl Folder {
    /// Makes a folder inside this one with this mode, less the umask; fails with `EEXIST` where anything stands.
    pub fn make_folder(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(self, single(name.as_ref())?, Mode::from_raw_mode(mode))?)
    }

    /// Makes a symlink that leads to `target`; fails with `EEXIST` where anything stands.
    pub fn make_link(&self, name: impl AsRef<OsStr>, target: &CString) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, self, single(name.as_ref())?)?)
    }

    /// Where a symlink leads; fails with `EINVAL` if it is none.
    pub fn read_link(&self, name: impl AsRef<OsStr>) -> io::Result<CString> {
        Ok(rustix::fs::readlinkat(self, single(name.as_ref())?, Vec::new())?)
    }

    /// Renames, and replaces what stands there.
    pub fn rename(
        &self,
        name: impl AsRef<OsStr>,
        to: &Folder,
        new_name: impl AsRef<OsStr>,
    ) -> io::Result<()> {
        let (name, new_name) = (single(name.as_ref())?, single(new_name.as_ref())?);
        Ok(rustix::fs::renameat(self, name, to, new_name)?)
    }

    /// The same to a path that the harness has chosen.
    pub fn rename_to(&self, name: impl AsRef<OsStr>, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat(self, single(name.as_ref())?, CWD, path)?)
    }

    /// Renames to where nothing stands, or fails with `EEXIST`. Not every disk can look and rename in one; there somebody who is quick
    /// enough is replaced.
    pub fn rename_new(
        &self,
        name: impl AsRef<OsStr>,
        to: &Folder,
        new_name: impl AsRef<OsStr>,
    ) -> io::Result<()> {
        let (name, new_name) = (single(name.as_ref())?, single(new_name.as_ref())?);
        match rustix::fs::renameat_with(self, name, to, new_name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) if to.stat(new_name)?.is_some() => Err(Errno::EXIST.into()),
            Err(Errno::INVAL | Errno::NOSYS) => Ok(rustix::fs::renameat(self, name, to, new_name)?),
            renamed => Ok(renamed?),
        }
    }

    /// The same, and nobody is ever replaced: where the disk cannot look and rename in one, the file keeps its old name beside the new one.
    pub fn place_new(
        &self,
        name: impl AsRef<OsStr>,
        to: &Folder,
        new_name: impl AsRef<OsStr>,
    ) -> io::Result<()> {
        let (name, new_name) = (single(name.as_ref())?, single(new_name.as_ref())?);
        match rustix::fs::renameat_with(self, name, to, new_name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) => {
                Ok(rustix::fs::linkat(self, name, to, new_name, AtFlags::empty())?)
            }
            placed => Ok(placed?),
        }
    }

    /// Removes what is no folder.
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self, single(name.as_ref())?, AtFlags::empty())?)
    }

    /// Removes a folder with nothing in it.
    pub fn remove_folder(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self, single(name.as_ref())?, AtFlags::REMOVEDIR)?)
    }

    /// Writes the names in it through to the disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(self)?)
    }
}
