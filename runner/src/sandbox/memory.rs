//! Files in memory, for a launcher to inherit and read.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use rustix::io::{FdFlags, fcntl_setfd};

/// A file with these bytes. Programs get it only after [`inherit`].
pub(crate) fn memory_file(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    seek(&file, SeekFrom::Start(0))?;
    Ok(file.into())
}

/// From now on, every started program inherits these files. That includes programs that another
/// thread starts in the meantime, and keys in the files; this is acceptable, because such a program
/// runs outside the sandbox (only this crate sets up sandboxes, one command at a time) and could
/// read our memory anyway.
pub(super) fn inherit(files: &[OwnedFd]) -> io::Result<()> {
    files.iter().try_for_each(|file| fcntl_setfd(file, FdFlags::empty()).map_err(io::Error::from))
}

/// The argument by which a launcher is told the descriptor.
pub(super) fn number(file: &OwnedFd) -> String {
    file.as_raw_fd().to_string()
}
