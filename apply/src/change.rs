//! One file, and what it will become; the folders that a set of changes may leave empty.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::{Attributes, Folder, copy_all, inherit_list};
use code_commit_guard::Before;
use code_commit_model::{Action, Changed};
use rustix::fs::{AtFlags, Gid, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::finish::remove_if_there;
use crate::journal::{SHARED, hex};
use crate::place::{Place, folders_above};
use crate::report::Warning;

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
}

impl Change<'_> {
    pub(crate) fn report(&self) -> Changed {
        let before_sha256 = self.before.as_ref().map(|before| hex(before.sha256));
        let after_sha256 = self.content.as_ref().map(|content| hex(content.sha256()));
        let before_mode = self.before.as_ref().map(|before| before.mode & 0o7777);
        let wanted_mode = self
            .attributes
            .map(|(mode, _)| mode & 0o7777)
            .or(before_mode.map(|mode| mode & 0o777));
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
        let kept = self
            .before
            .as_ref()
            .map(|before| (before.mode, before.owner));
        self.attributes
            .or(kept)
            .map(|(mode, owner)| (mode & 0o777, owner))
    }

    /// The file whose attributes are copied.
    fn model(&self) -> io::Result<Option<File>> {
        match (&self.content, &self.before, self.place.parent()) {
            (Some(Content::Kept(kept, _)), ..) => File::open(kept).map(Some),
            (_, Some(_), Some(folder)) => folder.open_file(self.place.name()).map(Some),
            _ => Ok(None),
        }
    }
}

/// A file that was written outside the tree.
pub(crate) struct Staged {
    pub(crate) id: (u64, u64),
    pub(crate) mode: u32,
    /// What the file that it replaces, or was, has and this one lacks.
    pub(crate) warnings: Vec<Warning>,
}

/// Stages the file that was replaced, if it is at hand. Otherwise creates one with mode 0666 minus the umask, or with
/// the mode, the attributes and the owner of the file that it replaces.
pub(crate) fn write_staged(txn: &Folder, name: &str, change: &Change<'_>) -> io::Result<Staged> {
    let kept = match &change.content {
        Some(Content::Kept(kept, sha256)) => reuse(kept, *sha256, txn, name)?,
        Some(Content::Bytes(_)) | None => None,
    };
    let is_new = kept.is_none();
    let mut file = kept.map_or_else(|| txn.create_file(name, 0o666), Ok)?;
    if is_new {
        change
            .content
            .as_ref()
            .map_or(Ok(()), |content| content.write_to(&mut file))?;
    }
    let (path, mut warnings) = (|| change.place.path.clone(), Vec::new());
    if let Some((mode, (uid, gid))) = change.wanted() {
        let stat = rustix::fs::fstat(&file)?;
        let is_its = (stat.st_uid, stat.st_gid) == (uid, gid)
            || rustix::fs::fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
                .is_ok();
        warnings.extend((!is_its).then(|| Warning::OwnerNotKept { path: path() }));
        if !is_new && stat.st_mode & 0o777 != mode {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        }
        if is_new {
            let attributes = change
                .model()?
                .map_or_else(|| Ok(Attributes::default()), |model| Attributes::of(&model));
            let names = attributes?.give(&file, mode)?;
            warnings.extend((!names.is_empty()).then(|| Warning::AttributesNotKept {
                path: path(),
                names,
            }));
        }
    }
    if change.before.is_none() && is_new {
        inherit(&file, change.place.nearest())?;
    }
    let stat = rustix::fs::fstat(&file)?;
    let special = change
        .attributes
        .map(|(mode, _)| mode)
        .or(change.before.as_ref().map(|before| before.mode));
    if special.unwrap_or(0) & !stat.st_mode & 0o7000 != 0 {
        warnings.push(Warning::SpecialBitsDropped { path: path() });
    }
    if change
        .before
        .as_ref()
        .is_some_and(|before| before.links > 1)
    {
        warnings.push(Warning::LinkBroken { path: path() });
    }
    Ok(Staged {
        id: (stat.st_dev, stat.st_ino),
        mode: stat.st_mode & 0o7777,
        warnings,
    })
}

/// Stages the old inode of a pre-image, with all that it has, and leaves a copy in its place. `None` if the inode is
/// elsewhere, on another disk, or may be written to under another name.
///
/// Its time is now: what was built from the file that it replaces must not look newer, to make or cargo.
fn reuse(kept: &Path, sha256: [u8; 32], txn: &Folder, name: &str) -> io::Result<Option<File>> {
    let folder = Folder::open(kept.parent().unwrap_or(kept))?;
    let (own, shared) = (
        kept.file_name().unwrap_or_default(),
        kept.with_extension(SHARED),
    );
    let shared = shared.file_name().unwrap_or_default();
    let is_unchanged =
        || Ok::<_, io::Error>(Before::of(&mut folder.open_file(shared)?)?.sha256 == sha256);
    let is_shared = folder.stat(shared)?.is_some() && is_unchanged()?;
    if !is_shared && folder.stat(own)?.is_none_or(|stat| stat.st_nlink != 1) {
        return Ok(None);
    }
    let from = if is_shared { shared } else { own };
    match rustix::fs::linkat(&folder, from, txn, name, AtFlags::empty()) {
        Err(Errno::XDEV | Errno::PERM | Errno::NOTSUP | Errno::MLINK | Errno::NOSYS) => {
            return Ok(None);
        }
        linked => linked?,
    }
    if !is_shared {
        let copied = kept.with_extension("copy");
        let copied = copied.file_name().unwrap_or_default();
        remove_if_there(&folder, copied)?;
        copy_all(&folder, own, &folder, copied)?;
        folder.rename(copied, &folder, own)?;
    }
    let file = txn.open_file(name)?;
    let time = |nanos| Timespec {
        tv_sec: 0,
        tv_nsec: nanos,
    };
    let times = Timestamps {
        last_access: time(UTIME_OMIT),
        last_modification: time(UTIME_NOW),
    };
    // Of another owner's file it may stay.
    let _ = rustix::fs::futimens(&file, &times);
    Ok(Some(file))
}

/// A new file in a set-group-ID folder belongs to the folder's group, and one in a folder with a default access list
/// gets that. It is staged elsewhere, so this is done by hand.
fn inherit(file: &File, folder: &Folder) -> io::Result<()> {
    let stat = rustix::fs::fstat(folder)?;
    if stat.st_mode & 0o2000 != 0 {
        // If we may not change the group, it stays: the file is readable anyway.
        let _ = rustix::fs::fchown(file, None, Some(Gid::from_raw(stat.st_gid)));
    }
    inherit_list(folder, file)
}

/// Folders that deletions may leave empty, innermost first; never the root. Git does not track empty folders, so they
/// would stay unnoticed. Each is removed after the commit if it contains neither ignored files nor another folder.
pub(crate) fn emptied_folders(root: &Arc<Folder>, changes: &[Change<'_>]) -> Vec<String> {
    let deleted = changes
        .iter()
        .filter(|change| change.content.is_none() && change.before.is_some());
    let above: BTreeSet<&str> = deleted
        .flat_map(|change| folders_above(&change.place.path))
        .collect();
    let Some(umask) = umask().filter(|_| !above.is_empty()) else {
        return Vec::new();
    };
    above
        .into_iter()
        .rev()
        .filter(|folder| is_ordinary(root, folder, umask))
        .map(str::to_owned)
        .collect()
}

/// Whether `undo` would create it with the same mode and without attributes: a folder that only its owner may enter
/// must not come back open to others.
fn is_ordinary(root: &Arc<Folder>, folder: &str, umask: u32) -> bool {
    let found = Place::find(root, folder).ok();
    let stat = found.and_then(|place| {
        let parent = place.parent()?;
        let itself = format!(
            "/proc/self/fd/{}/{}",
            parent.as_fd().as_raw_fd(),
            place.name()
        );
        parent
            .stat(place.name())
            .ok()?
            .filter(|_| !Attributes::are_at(itself.as_ref()))
    });
    stat.is_some_and(|stat| {
        stat.st_mode & 0o7777 == 0o777 & !umask
            && stat.st_uid == rustix::process::geteuid().as_raw()
    })
}

/// The umask of this process, which can be read without changing it only here.
fn umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok()
}
