//! What the next start does about a transaction that was interrupted. May itself be interrupted, as often as it likes.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use guard::{Before, Folder};
use rustix::fs::{AtFlags, FileType, RenameFlags};
use rustix::io::Errno;

use crate::durable::sync_all;
use crate::files::sync;
use crate::journal::{Entry, JOURNAL, Journal, MANIFEST, hex, kept, staged};
use crate::lock::Lock;
use crate::place::Place;
use crate::report::{Action, Applied};
use crate::transaction::TXN;
use crate::{Steps, finish};

/// What was found and done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// No transaction had touched the tree.
    Nothing,
    /// One was interrupted before its commit: the old tree is back.
    RolledBack(RolledBack),
    /// One was interrupted after its commit: the new tree is in place, and the pre-images are where they belong.
    Finished {
        /// What it did.
        applied: Applied,
        /// Its folder of pre-images.
        undo: PathBuf,
    },
}

/// What was put back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RolledBack {
    /// The paths that were restored or removed.
    pub restored: Vec<String>,
    /// The paths where somebody else has put something since; theirs was left alone.
    pub left: Vec<String>,
    /// Where the old files of `left` are now.
    pub left_in: Option<PathBuf>,
}

/// Why an interrupted transaction could not be dealt with. It stays, and the next start tries again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The journal belongs to another root, which is no longer where it was.
    #[error("the interrupted transaction belongs to {}, which is not there any more", root.display())]
    RootMoved {
        /// Where the root was.
        root: PathBuf,
    },
    /// The system refused something.
    #[error("cannot put back {}", path.display())]
    Io {
        /// Of what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl RecoverError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| RecoverError::Io { path, source }
    }
}

/// Rolls back or finishes what an earlier process left. To be called at every start, before anything else.
pub fn recover(lock: &Lock, root: &Path) -> Result<Recovery, RecoverError> {
    recover_with(lock, root, &mut |_| {})
}

pub(crate) fn recover_with(lock: &Lock, root: &Path, steps: Steps<'_>) -> Result<Recovery, RecoverError> {
    let path = lock.path.join(TXN);
    let txn = match lock.state.open_in(TXN) {
        Ok(txn) => txn,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Recovery::Nothing),
        Err(error) => return Err(RecoverError::io(path)(error)),
    };
    if let Some(journal) = Journal::read(&txn, MANIFEST).map_err(RecoverError::io(path.join(MANIFEST)))? {
        let root = find_root(&journal, root)?;
        let undo = PathBuf::from(&journal.undo);
        finish::finish(lock, &txn, &journal, &root, &undo, steps)?;
        return Ok(Recovery::Finished { applied: journal.applied(), undo });
    }
    if let Some(journal) = Journal::read(&txn, JOURNAL).map_err(RecoverError::io(path.join(JOURNAL)))? {
        let root = find_root(&journal, root)?;
        return roll_back(lock, &txn, &journal, &root, steps).map(Recovery::RolledBack);
    }
    discard(lock, steps).map_err(RecoverError::io(path))?;
    Ok(Recovery::Nothing)
}

/// The root that the journal is about: the given one, or, if a run in another folder was interrupted, that one.
///
/// Device numbers may change with a restart of the machine, so inodes alone are compared, here and below.
fn find_root(journal: &Journal, given: &Path) -> Result<Arc<Folder>, RecoverError> {
    let recorded = PathBuf::from(&journal.root);
    let opened = [given, &recorded].map(|path| Folder::open(path).ok());
    let found = opened.into_iter().flatten().find(|folder| folder.id().1 == journal.root_id.1);
    found.map(Arc::new).ok_or(RecoverError::RootMoved { root: recorded })
}

/// Puts back what the journal names, each file only if what stands there is what the transaction put there.
pub(crate) fn roll_back(
    lock: &Lock,
    txn: &Folder,
    journal: &Journal,
    root: &Arc<Folder>,
    steps: Steps<'_>,
) -> Result<RolledBack, RecoverError> {
    let mut result = RolledBack::default();
    let mut touched = HashMap::new();
    for (number, entry) in journal.entries.iter().enumerate().rev() {
        let path = &entry.change.path;
        let place = Place::find_unless_blocked(root, path).map_err(RecoverError::io(path))?;
        steps("put a file back");
        match put_back(number, entry, &place, txn).map_err(RecoverError::io(path))? {
            PutBack::Untouched => {}
            PutBack::Restored => result.restored.push(path.clone()),
            PutBack::Foreign => result.left.push(path.clone()),
        }
        touched.extend(place.parent().map(|folder| (folder.id(), Arc::clone(folder))));
    }
    for path in journal.created_folders.iter().rev() {
        steps("remove a folder");
        let parent = remove_folder(root, path).map_err(RecoverError::io(path))?;
        touched.extend(parent.map(|folder| (folder.id(), folder)));
    }
    steps("sync what was put back");
    let touched: Vec<Arc<Folder>> = touched.into_values().collect();
    let txn_path = lock.path.join(TXN);
    sync_all(&touched, |folder| sync(folder)).map_err(RecoverError::io(&txn_path))?;
    steps("drop the journal");
    let dropped = if result.left.is_empty() {
        drop_journal(lock, txn, steps)
    } else {
        set_aside(lock).map(|path| result.left_in = Some(path))
    };
    dropped.map_err(RecoverError::io(txn_path))?;
    Ok(result)
}

enum PutBack {
    Untouched,
    Restored,
    Foreign,
}

fn put_back(number: usize, entry: &Entry, place: &Place, txn: &Folder) -> io::Result<PutBack> {
    let standing = what_stands(entry, place)?;
    let Some(old) = &entry.old else {
        return match (standing, place.parent()) {
            (Standing::Ours, Some(folder)) => {
                rustix::fs::unlinkat(folder, place.name(), AtFlags::empty())?;
                Ok(PutBack::Restored)
            }
            _ => Ok(PutBack::Untouched),
        };
    };
    // Its turn had not come: what else stands there, or no longer stands there, is somebody else's doing.
    let is_still_staged = entry.change.action == Action::Write && txn.stat(staged(number))?.is_some();
    let flags = match standing {
        Standing::Other(inode) if inode == old.id.1 || inode == old.kept_id.1 => {
            return Ok(PutBack::Untouched);
        }
        Standing::Nothing | Standing::Other(_) if is_still_staged => return Ok(PutBack::Untouched),
        Standing::Other(_) => return Ok(PutBack::Foreign),
        Standing::Nothing => RenameFlags::NOREPLACE,
        Standing::Ours => RenameFlags::empty(),
    };
    let Some(folder) = place.parent() else { return Ok(PutBack::Foreign) };
    match rustix::fs::renameat_with(txn, kept(number), folder, place.name(), flags) {
        Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::renameat(txn, kept(number), folder, place.name())?,
        moved => moved?,
    }
    Ok(PutBack::Restored)
}

enum Standing {
    Nothing,
    /// The file that the transaction put there, with the content that it gave it.
    Ours,
    /// Some other inode, or ours with content of somebody else's: inode numbers are used again.
    Other(u64),
}

fn what_stands(entry: &Entry, place: &Place) -> io::Result<Standing> {
    let Some(folder) = place.parent() else { return Ok(Standing::Nothing) };
    let Some(stat) = folder.stat(place.name())? else { return Ok(Standing::Nothing) };
    if entry.new_id.map(|id| id.1) == Some(stat.st_ino) && FileType::from_raw_mode(stat.st_mode).is_file() {
        let now = Before::of(&mut folder.open_file(place.name())?)?;
        if Some(hex(now.sha256)) == entry.change.after_sha256 {
            return Ok(Standing::Ours);
        }
    }
    Ok(Standing::Other(stat.st_ino))
}

/// Removes a folder if nothing is in it; returns its parent if there is one.
pub(crate) fn remove_folder(root: &Arc<Folder>, path: &str) -> io::Result<Option<Arc<Folder>>> {
    let place = Place::find_unless_blocked(root, path)?;
    let Some(parent) = place.parent() else { return Ok(None) };
    match rustix::fs::unlinkat(parent, place.name(), AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {
            Ok(Some(Arc::clone(parent)))
        }
        Err(error) => Err(error.into()),
    }
}

/// From here on there is nothing to put back, which must be on the disk before the old files lose their names.
fn drop_journal(lock: &Lock, txn: &Folder, steps: Steps<'_>) -> io::Result<()> {
    rustix::fs::unlinkat(txn, JOURNAL, AtFlags::empty())?;
    sync(txn)?;
    discard(lock, steps)
}

/// Keeps the transaction's folder under another name, for a person to look at.
fn set_aside(lock: &Lock) -> io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let name = format!("left-{number}");
        match rustix::fs::renameat_with(&lock.state, TXN, &lock.state, &name, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(lock.path.join(name)),
            Err(Errno::EXIST) => number += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Removes the transaction's folder and all that is in it.
pub(crate) fn discard(lock: &Lock, steps: Steps<'_>) -> io::Result<()> {
    let txn = lock.state.open_in(TXN)?;
    for (name, _) in txn.entries()? {
        steps("discard a file");
        rustix::fs::unlinkat(&txn, &name, AtFlags::empty())?;
    }
    steps("discard the folder");
    Ok(rustix::fs::unlinkat(&lock.state, TXN, AtFlags::REMOVEDIR)?)
}
