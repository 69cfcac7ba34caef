//! Files in memory, for a launcher to inherit and read.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use rustix::io::{FdFlags, fcntl_setfd};

/// A file with these bytes. No program gets it before [`inherit`].
pub(super) fn memory_file(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    seek(&file, SeekFrom::Start(0))?;
    Ok(file.into())
}

/// Whatever is started from now on gets these. What another thread starts meanwhile does, too, keys included: that has no walls around
/// it, since only this crate puts up walls and one command at a time, and could as well read our memory.
pub(super) fn inherit(files: &[OwnedFd]) -> io::Result<()> {
    files.iter().try_for_each(|file| fcntl_setfd(file, FdFlags::empty()).map_err(io::Error::from))
}

/// How a launcher is told of it.
pub(super) fn number(file: &OwnedFd) -> String {
    file.as_raw_fd().to_string()
}
