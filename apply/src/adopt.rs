//! Turns changes that a command has already made in the tree into a set, which `undo` can revert like an
//! applied one.

use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use code_commit_dir::{Folder, Inode, copy_all, link_or_copy};
use code_commit_guard::Before;
use code_commit_model::{Action, Changed};
use rustix::fs::{AtFlags, FileType};

use crate::error::ApplyError;
use crate::journal::{Entry, Journal, MANIFEST, Old, SHARED, hex, kept_name};
use crate::place::{Finder, is_blocked};
use crate::report::{Applied, Warning};

/// A regular file that a command created, changed or removed.
pub struct Found<'f> {
    /// Relative to the root.
    pub path: String,
    /// The file that was there.
    pub before: Option<OldFile<'f>>,
}

/// Where the old state of a file is.
pub enum OldFile<'f> {
    /// Still in the tree, and about to be replaced there or removed, but not written to.
    InTree,
    /// Only here: the content from its beginning, and the metadata.
    Copy(Box<dyn BufRead + 'f>, Inode),
}

/// Records the changes in `undo`, with pre-images and a manifest; `folders` are those that the command created, and
/// those that it removed, with their permission bits. `now` holds the files after the command: the tree itself, or the layer with its changes. Both are
/// only read.
///
/// Replaces a set that an earlier call left unfinished in `undo`. When this returns, everything is on disk.
pub fn adopt<'f>(
    root: &Path,
    now: &Path,
    undo: &Path,
    found: impl IntoIterator<Item = Found<'f>>,
    (mut folders, removed): (Vec<String>, Vec<(String, u32)>),
) -> Result<Applied, ApplyError> {
    code_commit_dir::remove(undo).map_err(ApplyError::io("remove", undo))?;
    fs::create_dir_all(undo).map_err(ApplyError::io("create", undo))?;
    let kept = Folder::open(undo).map_err(ApplyError::io("open", undo))?;
    let tree = std::sync::Arc::new(Folder::open(root).map_err(ApplyError::io("open", root))?);
    let changed = std::sync::Arc::new(Folder::open(now).map_err(ApplyError::io("open", now))?);
    let mut journal = Journal::new(tree.id());
    folders.sort_unstable();
    (journal.created_folders, journal.removed_folders) = (folders, removed);
    let (mut finder, mut old_finder) = (Finder::new(&changed), Finder::new(&tree));
    for (number, Found { path, before }) in found.into_iter().enumerate() {
        let failed = |doing| ApplyError::io(doing, PathBuf::from(&path));
        let after = found_at(&mut finder, &path).map_err(failed("read"))?;
        let keep = |before| match before {
            OldFile::InTree => link(&kept, number, &mut old_finder, &path),
            OldFile::Copy(content, inode) => copy(&kept, number, content, inode),
        };
        let old = before.map(keep).transpose().map_err(failed("keep"))?;
        if after.is_some() && old.as_ref().is_some_and(|(old, ..)| old.links > 1) {
            journal
                .warnings
                .push(Warning::LinkBroken { path: path.clone() });
        }
        journal.entries.push(entry(path, old, after.as_ref()));
    }
    journal
        .write(&kept, "manifest.tmp")
        .and_then(|file| file.sync_all())
        .map_err(ApplyError::io("write", undo))?;
    kept.rename("manifest.tmp", &kept, MANIFEST)
        .map_err(ApplyError::io("publish", undo))?;
    kept.sync()
        .map_err(ApplyError::io("write to the disk", undo))?;
    Ok(journal.applied())
}

/// Takes files out of an adopted set: somebody else has changed them since, and what is there is theirs.
pub fn disown(undo: &Path, is_theirs: impl Fn(&str) -> bool) -> Result<(), ApplyError> {
    let disowned = || {
        let folder = Folder::open(undo)?;
        let read = Journal::read(&folder, MANIFEST).map_err(|_| io::ErrorKind::InvalidData)?;
        let mut journal = read.ok_or(io::ErrorKind::NotFound)?;
        let changes = journal.entries.iter_mut().map(|entry| &mut entry.change);
        for change in changes.filter(|change| is_theirs(&change.path)) {
            change.action = Action::None;
        }
        journal.write(&folder, "manifest.tmp")?.sync_all()?;
        folder.rename("manifest.tmp", &folder, MANIFEST)?;
        folder.sync()
    };
    disowned().map_err(ApplyError::io("write", undo))
}

fn entry(path: String, old: Option<(Old, String, u32)>, after: Option<&Before>) -> Entry {
    let change = Changed {
        action: if after.is_some() {
            Action::Write
        } else {
            Action::Delete
        },
        created: old.is_none(),
        before_sha256: old.as_ref().map(|(_, sha256, _)| sha256.clone()),
        before_mode: old.as_ref().map(|(_, _, mode)| *mode),
        after_mode: after.map(|after| after.mode & 0o7777),
        after_sha256: after.map(|after| hex(after.sha256)),
        path,
    };
    Entry {
        change,
        old: old.map(|(old, ..)| old),
        new_id: None,
    }
}

/// The regular file at the path; anything else there is not part of the set.
fn found_at(finder: &mut Finder, path: &str) -> io::Result<Option<Before>> {
    let place = match finder.find(path) {
        Err(error) if is_blocked(&error) => return Ok(None),
        place => place?,
    };
    let Some(folder) = place.parent() else {
        return Ok(None);
    };
    match folder.stat(place.name())? {
        Some(stat) if FileType::from_raw_mode(stat.st_mode).is_file() => {
            match folder.open_file(place.name()) {
                // Somebody has removed it since.
                Err(error) if code_commit_dir::reach::is_gone(&error) => Ok(None),
                file => Before::of(&mut file?).map(Some),
            }
        }
        Some(_) | None => Ok(None),
    }
}

/// Gives a file of the tree a second name as a pre-image, which needs no copy: the file is on disk. One that
/// has other names could be changed under those.
fn link(
    kept: &Folder,
    number: usize,
    finder: &mut Finder,
    path: &str,
) -> io::Result<(Old, String, u32)> {
    let place = finder.find(path)?;
    let folder = place.parent().ok_or(io::ErrorKind::NotFound)?;
    let mut file = folder.open_file(place.name())?;
    let before = Before::of(&mut file)?;
    let (name, twin) = (place.name(), kept_name(number));
    if before.links > 1 {
        // Its inode is what `undo` restores as long as it is unchanged; on another disk it cannot be.
        let _ = rustix::fs::linkat(
            folder,
            name,
            kept,
            format!("{number}.{SHARED}"),
            AtFlags::empty(),
        );
    }
    let linked = match before.links {
        1 => link_or_copy(folder, name, kept, &twin),
        _ => Err(io::ErrorKind::CrossesDevices.into()),
    };
    let kept_id = match linked {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy_all(folder, name, kept, &twin)?;
            kept.stat(&twin)?
                .map_or((0, 0), |stat| (stat.st_dev, stat.st_ino))
        }
        linked => linked?,
    };
    Ok((
        Old::new(&before, kept_id),
        hex(before.sha256),
        before.mode & 0o7777,
    ))
}

/// Writes one pre-image; returns its entry, hash and mode.
fn copy(
    kept: &Folder,
    number: usize,
    mut content: impl BufRead,
    inode: Inode,
) -> io::Result<(Old, String, u32)> {
    let (name, mode, owner) = (kept_name(number), inode.mode, inode.owner);
    // An undo reads it.
    let readable = Inode {
        mode: mode & 0o777 | 0o400,
        ..inode
    };
    kept.make_file(name.as_ref(), &mut content, &readable)?;
    let mut file = kept.open_file(&name)?;
    let before = Before::of(&mut file)?;
    file.sync_all()?;
    let old = Old {
        owner,
        ..Old::new(&before, before.id)
    };
    Ok((old, hex(before.sha256), mode & 0o7777))
}
