//! One descriptor for a whole tree.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, fstat};

use super::{FOLDER, enter};
use crate::open::openat;

/// Walks down a tree and up again with one descriptor, however deep the tree is.
#[derive(Debug)]
pub struct Descent {
    /// The folder reached so far.
    pub here: OwnedFd,
    need: Mode,
    /// Device and inode of each folder above, and the name in it that was entered.
    above: Vec<(u64, u64, OsString)>,
}

impl Descent {
    /// Starts in this folder; `need` are the permissions required in each folder below.
    pub fn from(here: OwnedFd, need: Mode) -> Self {
        Self {
            here,
            need,
            above: Vec::new(),
        }
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
        let Some((device, inode, name)) = self.above.pop() else {
            return Ok(None);
        };
        let up = openat(&self.here, "..", FOLDER, Mode::empty())?;
        let data = fstat(&up)?;
        if (data.st_dev, data.st_ino) != (device, inode) {
            return Err(io::Error::other("a folder was moved in the meantime"));
        }
        self.here = up;
        Ok(Some(name))
    }
}
