//! One file, and what it will become; the folders that a set of changes may leave empty.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use code_commit_dir::Folder;
use code_commit_guard::Before;
use code_commit_model::{Action, Changed};
use rustix::fs::{Gid, Mode, Uid};
use sha2::{Digest, Sha256};

use crate::journal::hex;
use crate::place::{Place, folders_above};
use code_commit_dir::protect_like;

#[derive(Debug)]
pub(crate) enum Content<'a> {
    Bytes(Cow<'a, [u8]>),
    /// In a pre-image, which may be larger than the memory, with its SHA-256.
    Kept(PathBuf, [u8; 32]),
}

impl Content<'_> {
    fn sha256(&self) -> [u8; 32] {
        match self {
            Self::Bytes(bytes) => Sha256::digest(bytes).into(),
            Self::Kept(_, sha256) => *sha256,
        }
    }

    fn write_to(&self, file: &mut File) -> io::Result<()> {
        match self {
            Self::Bytes(bytes) => file.write_all(bytes),
            Self::Kept(kept, _) => io::copy(&mut File::open(kept)?, file).map(drop),
        }
    }
}

/// The planned change of one file.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) place: Place,
    pub(crate) before: Option<Before>,
    /// `None` means that there will be no file.
    pub(crate) content: Option<Content<'a>>,
    /// Permission bits and owner, if they differ from the old file's.
    pub(crate) attributes: Option<(u32, (u32, u32))>,
    /// The file whose access list is copied, if it is not the old file.
    pub(crate) model: Option<PathBuf>,
}

impl Change<'_> {
    pub(crate) fn report(&self) -> Changed {
        let before_sha256 = self.before.as_ref().map(|before| hex(before.sha256));
        let after_sha256 = self.content.as_ref().map(|content| hex(content.sha256()));
        let before_mode = self.before.as_ref().map(|before| before.mode & 0o7777);
        let wanted_mode = self.attributes.map(|(mode, _)| mode).or(before_mode).map(|mode| mode & 0o777);
        let action = match &self.content {
            _ if before_sha256 == after_sha256
                && (self.attributes.is_none() || before_mode == wanted_mode) =>
            {
                Action::None
            }
            Some(_) => Action::Write,
            None => Action::Delete,
        };
        Changed {
            path: self.place.path.clone(),
            action,
            created: action == Action::Write && before_sha256.is_none(),
            before_mode,
            after_mode: if action == Action::None {
                before_mode
            } else {
                wanted_mode.filter(|_| self.content.is_some())
            },
            before_sha256,
            after_sha256,
        }
    }

    /// Permission bits and owner of the new file; `None` leaves them to the umask and this process.
    fn wanted(&self) -> Option<(u32, (u32, u32))> {
        let kept = self.before.as_ref().map(|before| (before.mode, before.owner));
        self.attributes.or(kept).map(|(mode, owner)| (mode & 0o777, owner))
    }

    /// The file whose access list is copied.
    fn model(&self) -> io::Result<Option<File>> {
        match (&self.model, &self.before, self.place.parent()) {
            (Some(model), ..) => File::open(model).map(Some),
            (None, Some(_), Some(folder)) => folder.open_file(self.place.name()).map(Some),
            (None, ..) => Ok(None),
        }
    }
}

/// A file that was written outside the tree.
pub(crate) struct Staged {
    pub(crate) id: (u64, u64),
    pub(crate) mode: u32,
    pub(crate) owner_kept: bool,
}

/// Creates the file with mode 0666 minus the umask, or with the mode, access list and owner of the
/// file that it replaces.
pub(crate) fn write_staged(txn: &Folder, name: &str, change: &Change<'_>) -> io::Result<Staged> {
    let mut file = txn.create_file(name, 0o666)?;
    change.content.as_ref().map_or(Ok(()), |content| content.write_to(&mut file))?;
    let mut owner_kept = true;
    if let Some((mode, (uid, gid))) = change.wanted() {
        let stat = rustix::fs::fstat(&file)?;
        if (stat.st_uid, stat.st_gid) != (uid, gid) {
            owner_kept =
                rustix::fs::fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).is_ok();
        }
        match change.model()? {
            Some(model) => protect_like(&model, &file, mode)?,
            None => rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?,
        }
    }
    if change.before.is_none() {
        inherit_group(&file, change.place.nearest())?;
    }
    let stat = rustix::fs::fstat(&file)?;
    Ok(Staged { id: (stat.st_dev, stat.st_ino), mode: stat.st_mode & 0o7777, owner_kept })
}

/// A new file in a set-group-ID folder belongs to the folder's group. It is staged elsewhere, so
/// this is done by hand.
fn inherit_group(file: &File, folder: &Folder) -> io::Result<()> {
    let folder = rustix::fs::fstat(folder)?;
    if folder.st_mode & 0o2000 != 0 {
        // If we may not change the group, it stays: the file is readable anyway.
        let _ = rustix::fs::fchown(file, None, Some(Gid::from_raw(folder.st_gid)));
    }
    Ok(())
}

/// Folders that deletions may leave empty, innermost first; never the root. Git does not track empty folders, so they
/// would stay unnoticed. Each is removed after the commit if it contains neither ignored files nor another folder.
pub(crate) fn emptied_folders(root: &Arc<Folder>, changes: &[Change<'_>]) -> Vec<String> {
    let deleted = changes.iter().filter(|change| change.content.is_none() && change.before.is_some());
    let above: BTreeSet<&str> = deleted.flat_map(|change| folders_above(&change.place.path)).collect();
    let Some(umask) = umask().filter(|_| !above.is_empty()) else { return Vec::new() };
    above.into_iter().rev().filter(|folder| is_ordinary(root, folder, umask)).map(str::to_owned).collect()
}

/// Whether `undo` would create it with the same mode: a folder that only its owner may enter must
/// not come back open to others.
fn is_ordinary(root: &Arc<Folder>, folder: &str, umask: u32) -> bool {
    let found = Place::find(root, folder).ok();
    let stat = found.and_then(|place| place.parent()?.stat(place.name()).ok()?);
    stat.is_some_and(|stat| {
        stat.st_mode & 0o7777 == 0o777 & !umask && stat.st_uid == rustix::process::geteuid().as_raw()
    })
}

/// The umask of this process, which can be read without changing it only here.
fn umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok()
}
