//! Copies with everything that the original has.

use std::ffi::OsStr;
use std::io;

use rustix::fs::{AtFlags, Gid, Uid};
use rustix::io::Errno;

use crate::change::lacks;
use crate::{Attributes, Folder};

/// Makes a hard link, or a copy if that is impossible: no support, too many links, or another user's
/// file. Returns device and inode.
pub fn link_or_copy(
    folder: &Folder,
    name: &str,
    to: &Folder,
    twin: &str,
) -> io::Result<(u64, u64)> {
    match rustix::fs::linkat(folder, name, to, twin, AtFlags::empty()) {
        Ok(()) => {}
        Err(error) if lacks(error) || error == Errno::MLINK => copy_all(folder, name, to, twin)?,
        Err(error) => return Err(error.into()),
    }
    let stat = to.stat(twin)?.ok_or(Errno::NOENT)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Copies content, mode, attributes, time and, if permitted, owner, and syncs them to disk.
pub fn copy_all(
    from: &Folder,
    name: impl AsRef<OsStr>,
    to: &Folder,
    twin: impl AsRef<OsStr>,
) -> io::Result<()> {
    let mut source = from.open_file(name)?;
    let mut target = to.create_file(twin, 0o600)?;
    io::copy(&mut source, &mut target)?;
    let stat = rustix::fs::fstat(&source)?;
    let _ = rustix::fs::fchown(
        &target,
        Some(Uid::from_raw(stat.st_uid)),
        Some(Gid::from_raw(stat.st_gid)),
    );
    Attributes::of(&source)?.give(&target, stat.st_mode & 0o777)?;
    target.set_modified(source.metadata()?.modified()?)?;
    target.sync_all()
}
