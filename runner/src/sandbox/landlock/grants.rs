//! All rights of the command, each granted for an open descriptor: a process left over from an
//! earlier build may replace what is behind a name at any moment.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use code_commit_dir::reach::names;
use landlock::{ABI, Access as _, AccessFs, BitFlags, RulesetError};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use crate::sandbox::access::Access;
use crate::sandbox::mount::{DEVICES, SYSTEM, TERMINAL};
use crate::sandbox::{plan, settings, toolchains};

/// With this version, no signal and no connection to an abstract socket leaves the domain.
pub(super) const WANTED: ABI = ABI::V6;

/// Programs look up accounts and themselves; there is no shorter list of accounts to show them.
const OTHERS: [&str; 3] = ["/proc", "/etc/passwd", "/etc/group"];

/// Only names a file: neither gives the right to read it nor needs it.
const NAMED: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Takes a file, or a folder with everything in it, and the rights to grant.
pub(super) type Give<'g> =
    dyn FnMut(BorrowedFd<'_>, BitFlags<AccessFs>) -> Result<(), RulesetError> + 'g;

/// Grants all rights of the command. Entries that disappeared since they were listed need none.
pub(super) fn grants(
    access: &Access,
    private: &Path,
    give: &mut Give<'_>,
) -> Result<(), RulesetError> {
    let read = AccessFs::from_read(WANTED);
    let change = AccessFs::from_all(WANTED)
        & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let mut seen: Vec<PathBuf> = SYSTEM.iter().chain(&OTHERS).map(PathBuf::from).collect();
    seen.extend(
        settings::shown(access)
            .iter()
            .cloned()
            .chain(toolchains::all(access)),
    );

    let held = access.held(&access.read_only);
    let open = plan::open_in_read_only(access, &held);
    let mut bare = Walk {
        held: Vec::new(),
        hidden: plan::masked(access, &held),
        give,
    };
    seen.iter()
        .try_for_each(|path| bare.grant_by_name(path, read))?;
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    DEVICES
        .iter()
        .filter(|path| **path != TERMINAL)
        .try_for_each(|path| bare.grant_by_name(Path::new(path), device))?;
    bare.grant_by_name(private, change)?;

    let mut walk = Walk { held, ..bare };
    for (paths, rights) in [(&access.readable, read), (&access.writable, change)] {
        let mut paths = plan::outside_the_tree(access, paths).into_iter();
        paths.try_for_each(|path| walk.grant_by_name(&path, rights))?;
    }
    open.into_iter()
        .filter_map(|path| Some((open_without_links(&path).ok()?, path)))
        .try_for_each(|(file, path)| walk.grant(&path, &file, change))?;
    walk.grant_by_name(&access.tree, change)
}

/// Grants rights to everything except protected paths.
struct Walk<'w, 'g> {
    held: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    give: &'w mut Give<'g>,
}

impl Walk<'_, '_> {
    /// Follows symlinks in the name.
    fn grant_by_name(
        &mut self,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<(), RulesetError> {
        let file = openat(CWD, path, NAMED, Mode::empty());
        file.map_or(Ok(()), |file| self.grant(path, &file, access))
    }

    /// Grants `access` to a folder and everything in it or, if something in it is protected, to
    /// each entry separately. `path` is how `file` was found.
    fn grant(
        &mut self,
        path: &Path,
        file: &OwnedFd,
        access: BitFlags<AccessFs>,
    ) -> Result<(), RulesetError> {
        if self.hidden.iter().any(|hidden| hidden == path) {
            return Ok(());
        }
        let is_held = self.held.iter().any(|held| held == path);
        let access = if is_held {
            access & AccessFs::from_read(WANTED)
        } else {
            access
        };
        let mut protected = self.held.iter().chain(&self.hidden);
        if !protected.any(|inner| inner != path && inner.starts_with(path)) {
            return self.give(file, access);
        }
        self.give(file, AccessFs::ReadDir.into())?;
        for name in names_in(file).unwrap_or_default() {
            if let Ok(entry) = open_entry(file, &name) {
                self.grant(&path.join(name), &entry, access)?;
            }
        }
        Ok(())
    }

    fn give(&mut self, file: &OwnedFd, access: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        let access = match fstat(file).map(|data| FileType::from_raw_mode(data.st_mode)) {
            Ok(FileType::Directory) => access,
            // A symlink planted by an earlier build would extend the right to its target.
            Ok(FileType::Symlink) | Err(_) => return Ok(()),
            Ok(_) => access & AccessFs::from_file(WANTED),
        };
        // The kernel rejects a rule that allows nothing.
        if access.is_empty() {
            Ok(())
        } else {
            (self.give)(file.as_fd(), access)
        }
    }
}

/// Opens the entry itself; never follows a symlink.
fn open_entry(folder: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(
        folder,
        name,
        NAMED | OFlags::NOFOLLOW,
        Mode::empty(),
    )?)
}

/// Opens an absolute path that was found to contain no symlink, step by step, and makes sure that
/// it still does not.
fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    let mut here = openat(CWD, "/", NAMED, Mode::empty())?;
    for part in path.components() {
        match part {
            Component::Normal(name) => here = open_entry(&here, name)?,
            Component::RootDir => {}
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
    }
    Ok(here)
}

/// A named file cannot be listed, so it is opened once more.
fn names_in(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    names(openat(folder, ".", flags, Mode::empty())?)
}

#[cfg(test)]
mod tests;
