//! Copies with the content and permissions of the original.

use std::ffi::OsStr;
use std::fs::File;
use std::io;

use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, Gid, Mode, Uid, XattrFlags};
use rustix::io::Errno;

use crate::Folder;

/// Makes a hard link, or a copy if that is impossible: no support, too many links, or another user's
/// file. Returns device and inode.
pub fn link_or_copy(folder: &Folder, name: &str, to: &Folder, twin: &str) -> io::Result<(u64, u64)> {
    match rustix::fs::linkat(folder, name, to, twin, AtFlags::empty()) {
        Ok(()) => {}
        Err(Errno::PERM | Errno::NOTSUP | Errno::MLINK | Errno::NOSYS) => copy_all(folder, name, to, twin)?,
        Err(error) => return Err(error.into()),
    }
    let stat = to.stat(twin)?.ok_or(Errno::NOENT)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Copies content, mode, access list, time and, if permitted, owner, and syncs them to disk.
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
    let _ = rustix::fs::fchown(&target, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)));
    protect_like(&source, &target, stat.st_mode & 0o777)?;
    target.set_modified(source.metadata()?.modified()?)?;
    target.sync_all()
}

/// Where Linux keeps a POSIX access list. If a file has one, its group bits are the mask, not the
/// permissions of the group.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// The longest possible attribute.
const ATTRIBUTE_BYTES: usize = 64 << 10;

/// Applies the permission bits and the access list of another file. If no list can be stored, the
/// group gets no permissions, because its bits would be the mask.
pub fn protect_like(model: &File, file: &File, mode: u32) -> io::Result<()> {
    let mut list = Vec::with_capacity(ATTRIBUTE_BYTES);
    let mode = match rustix::fs::fgetxattr(model, ACCESS_LIST, spare_capacity(&mut list)) {
        Ok(_) => {
            let given = rustix::fs::fsetxattr(file, ACCESS_LIST, &list, XattrFlags::empty());
            if given.is_ok() { mode } else { mode & !0o070 }
        }
        Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => mode,
        Err(error) => return Err(error.into()),
    };
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?)
}
