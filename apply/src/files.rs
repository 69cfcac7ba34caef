//! The single steps on single files, each by descriptor and name.

use std::fs::File;
use std::io;

use dir::Folder;
use guard::Before;
use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, Gid, Mode, RenameFlags, Uid, XattrFlags};
use rustix::io::Errno;

/// A hard link, or a copy where there can be none: no support, too many, or a file of somebody else's.
pub(crate) fn keep_old(folder: &Folder, name: &str, txn: &Folder, kept: &str) -> io::Result<(u64, u64)> {
    match rustix::fs::linkat(folder, name, txn, kept, AtFlags::empty()) {
        Ok(()) => {}
        Err(Errno::PERM | Errno::NOTSUP | Errno::MLINK | Errno::NOSYS) => {
            copy(folder, name, txn, kept)?;
        }
        Err(error) => return Err(error.into()),
    }
    let stat = txn.stat(kept)?.ok_or(Errno::NOENT)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Copies content, mode, access list, time and, where permitted, owner, through to the disk.
pub(crate) fn copy(from: &Folder, name: &str, to: &Folder, copy: &str) -> io::Result<()> {
    let mut source = from.open_file(name)?;
    let mut target = to.create_file(copy, 0o600)?;
    io::copy(&mut source, &mut target)?;
    let stat = rustix::fs::fstat(&source)?;
    let _ = rustix::fs::fchown(&target, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)));
    protect_like(&source, &target, stat.st_mode & 0o777)?;
    target.set_modified(source.metadata()?.modified()?)?;
    target.sync_all()
}

/// Where Linux keeps a POSIX access list. The group bits of a file that has one are its mask, not what the group may do.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// No attribute is longer.
const ATTRIBUTE_BYTES: usize = 64 << 10;

/// Sets the permission bits and the access list of another file. Where there can be no list, the group gets nothing rather than the
/// mask.
pub(crate) fn protect_like(model: &File, file: &File, mode: u32) -> io::Result<()> {
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

/// Moves a staged file to where nothing may stand. Both ways fail with `EEXIST` if something does.
pub(crate) fn create_from(txn: &Folder, staged: &str, folder: &Folder, name: &str) -> io::Result<()> {
    match rustix::fs::renameat_with(txn, staged, folder, name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => {
            // The second name goes with the rest of the transaction's folder.
            Ok(rustix::fs::linkat(txn, staged, folder, name, AtFlags::empty())?)
        }
        moved => Ok(moved?),
    }
}

/// Renames to where nothing stands, or fails with `EEXIST`. Not every disk can look and rename in one; there somebody who is quick
/// enough is replaced.
pub(crate) fn rename_new(from: &Folder, name: &str, to: &Folder, new_name: &str) -> io::Result<()> {
    match rustix::fs::renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) if to.stat(new_name)?.is_some() => Err(Errno::EXIST.into()),
        Err(Errno::INVAL | Errno::NOSYS) => Ok(rustix::fs::renameat(from, name, to, new_name)?),
        renamed => Ok(renamed?),
    }
}

/// Looks at inode, size, time and content again, as late as possible. Fails with `ESTALE`.
pub(crate) fn check_unchanged(folder: &Folder, name: &str, before: &Before) -> io::Result<()> {
    let now = Before::of(&mut folder.open_file(name)?)?;
    // The second name in the transaction folder counts as a link.
    let unchanged = (now.id, now.len, now.mtime, now.mode, now.sha256)
        == (before.id, before.len, before.mtime, before.mode, before.sha256);
    if unchanged { Ok(()) } else { Err(Errno::STALE.into()) }
}

pub(crate) fn sync(folder: &Folder) -> io::Result<()> {
    Ok(rustix::fs::fsync(folder)?)
}
