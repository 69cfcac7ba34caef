//! Handles an interrupted transaction at the next start. May itself be interrupted any number of
//! times.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::Folder;
use code_commit_guard::Before;
use rustix::fs::FileType;

use crate::Action;
use crate::durable::sync_all;
use crate::error::{RecoverError, RolledBack};
use crate::finish::{self, discard, drop_record, remove_folder, set_aside};
use crate::journal::{
    Entry, JOURNAL, Journal, MANIFEST, Steps, TXN_FOLDER, UNSYNCED, hex, kept_name, staged_name,
};
use crate::location::Location;
use crate::lock::Lock;
use crate::place::Place;
use crate::report::Applied;
use crate::trust::{find_root, undo_folder};

/// What was found, and what was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// No transaction had touched the tree, or it had finished.
    Nothing,
    /// One was interrupted before its commit: the old tree is restored.
    RolledBack(RolledBack),
    /// One was interrupted after its commit: the new tree is in place, and the pre-images have been
    /// moved to their folder.
    Finished {
        /// What it did.
        applied: Applied,
        /// The folder of its pre-images. If no run here could have named that folder, they are kept
        /// in the state folder instead.
        undo: PathBuf,
    },
}

/// Rolls back or finishes what an earlier process left behind. Call it at every start, before
/// anything else.
pub fn recover(lock: &Lock, root: &Path) -> Result<Recovery, RecoverError> {
    recover_with(lock, root, &mut |_| {})
}

pub(crate) fn recover_with(
    lock: &Lock,
    root: &Path,
    steps: Steps<'_>,
) -> Result<Recovery, RecoverError> {
    let path = lock.path.join(TXN_FOLDER);
    let txn = match lock.state.open_in(TXN_FOLDER) {
        Ok(txn) => txn,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Location::forget(&lock.state);
            return Ok(Recovery::Nothing);
        }
        Err(error) => return Err(RecoverError::io(path)(error)),
    };
    let read = |name| Journal::read(&txn, name).map_err(RecoverError::unread(path.join(name)));
    let bearings = Location::read(&lock.state);
    if let Some(journal) = read(MANIFEST)? {
        let root = find_root(lock, &journal, &bearings, root)?;
        if !is_complete(&journal, &txn, &root.folder).map_err(RecoverError::io(&path))? {
            return roll_back(lock, &txn, &journal, MANIFEST, &root.folder, steps)
                .map(Recovery::RolledBack);
        }
        let undo = undo_folder(lock, &bearings, &root);
        let finished = finish::finish(lock, &txn, &journal, &root.folder, undo.as_deref(), steps)?;
        let mut applied = journal.applied();
        applied.warnings.extend(finished.warnings);
        return Ok(Recovery::Finished {
            applied,
            undo: finished.undo,
        });
    }
    let journal = match read(JOURNAL)? {
        Some(journal) => Some((journal, JOURNAL)),
        None => Journal::read_unsynced(&txn)
            .map_err(RecoverError::unread(path.join(UNSYNCED)))?
            .map(|journal| (journal, UNSYNCED)),
    };
    if let Some((journal, name)) = journal {
        let root = find_root(lock, &journal, &bearings, root)?;
        return roll_back(lock, &txn, &journal, name, &root.folder, steps)
            .map(Recovery::RolledBack);
    }
    discard(lock, steps).map_err(RecoverError::io(path))?;
    Ok(Recovery::Nothing)
}

/// Restores what the journal names, but each file only if the current file is the one that the
/// transaction wrote.
pub(crate) fn roll_back(
    lock: &Lock,
    txn: &Folder,
    journal: &Journal,
    record: &str,
    root: &Arc<Folder>,
    steps: Steps<'_>,
) -> Result<RolledBack, RecoverError> {
    let mut result = RolledBack::default();
    let mut touched = Touched::default();
    let mut leaves_old = false;
    let txn_path = lock.path.join(TXN_FOLDER);
    for (number, entry) in journal.entries.iter().enumerate().rev() {
        let path = &entry.change.path;
        let place = Place::find_unless_blocked(root, path).map_err(RecoverError::io(path))?;
        steps("put a file back");
        match put_back(number, entry, &place, txn).map_err(RecoverError::io(path))? {
            PutBack::Untouched => {}
            PutBack::Restored => result.restored.push(path.clone()),
            PutBack::Foreign => {
                leaves_old |= entry.old.is_some();
                result.left.push(path.clone());
            }
        }
        touched
            .add(place.parent().cloned())
            .map_err(RecoverError::io(&txn_path))?;
    }
    for path in journal.created_folders.iter().rev() {
        steps("remove a folder");
        let parent = remove_folder(root, path).map_err(RecoverError::io(path))?;
        touched.add(parent).map_err(RecoverError::io(&txn_path))?;
    }
    steps("sync what was restored");
    touched.sync().map_err(RecoverError::io(&txn_path))?;
    let dropped = if leaves_old {
        steps("set the old files aside");
        set_aside(lock).map(|path| result.left_in = Some(path))
    } else {
        drop_record(lock, txn, record, steps)
    };
    dropped.map_err(RecoverError::io(txn_path))?;
    Ok(result)
}

/// Folders that have not been synced yet, by device and inode. Each needs a descriptor, and the
/// limit on those may be low.
#[derive(Default)]
struct Touched(HashMap<(u64, u64), Arc<Folder>>);

/// The maximum number of them that are open at once.
const MOST_TOUCHED: usize = 128;

impl Touched {
    fn add(&mut self, folder: Option<Arc<Folder>>) -> io::Result<()> {
        self.0.extend(folder.map(|folder| (folder.id(), folder)));
        if self.0.len() < MOST_TOUCHED {
            Ok(())
        } else {
            self.sync()
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let folders: Vec<Arc<Folder>> = self.0.drain().map(|(_, folder)| folder).collect();
        sync_all(&folders, |folder| folder.sync())
    }
}

/// Whether the tree has every change of a committed transaction. A power cut may have kept the commit and lost a rename.
fn is_complete(journal: &Journal, txn: &Folder, root: &Arc<Folder>) -> io::Result<bool> {
    for (number, entry) in journal.entries.iter().enumerate() {
        let is_missing = match (entry.change.action, &entry.old) {
            (Action::Write, _) => txn.stat(staged_name(number))?.is_some(),
            (Action::Delete, Some(old)) => {
                let place = Place::find_unless_blocked(root, &entry.change.path)?;
                matches!(what_stands(entry, &place)?, Standing::Other(inode) if inode == old.id.1)
            }
            (Action::Delete | Action::None, _) => false,
        };
        if is_missing {
            return Ok(false);
        }
    }
    Ok(true)
}

enum PutBack {
    Untouched,
    Restored,
    Foreign,
}

fn put_back(number: usize, entry: &Entry, place: &Place, txn: &Folder) -> io::Result<PutBack> {
    let standing = what_stands(entry, place)?;
    // This step was not reached, so any difference here is someone else's work.
    let is_still_staged =
        entry.change.action == Action::Write && txn.stat(staged_name(number))?.is_some();
    let Some(old) = &entry.old else {
        let new = entry.new_id.map(|id| id.1);
        return match (standing, place.parent()) {
            (Standing::Ours, Some(folder)) => {
                folder.remove_file(place.name())?;
                Ok(PutBack::Restored)
            }
            // Without an atomic rename that replaces nothing, our file has both names.
            (Standing::Other(inode), _)
                if new.is_some() && (new == Some(inode) || !is_still_staged) =>
            {
                Ok(PutBack::Foreign)
            }
            _ => Ok(PutBack::Untouched),
        };
    };
    match (standing, place.parent()) {
        (Standing::Other(inode), _) if inode == old.id.1 || inode == old.kept_id.1 => {
            Ok(PutBack::Untouched)
        }
        (Standing::Nothing | Standing::Other(_), _) if is_still_staged => Ok(PutBack::Untouched),
        (Standing::Other(_), _) | (_, None) => Ok(PutBack::Foreign),
        (Standing::Nothing, Some(folder)) => {
            txn.rename_new(kept_name(number), folder, place.name())?;
            Ok(PutBack::Restored)
        }
        (Standing::Ours, Some(folder)) => {
            txn.rename(kept_name(number), folder, place.name())?;
            Ok(PutBack::Restored)
        }
    }
}

enum Standing {
    Nothing,
    /// The file that the transaction put there, with the content that the transaction gave it.
    Ours,
    /// Another inode, or ours with other content: inode numbers are reused.
    Other(u64),
}

fn what_stands(entry: &Entry, place: &Place) -> io::Result<Standing> {
    let Some(folder) = place.parent() else {
        return Ok(Standing::Nothing);
    };
    let Some(stat) = folder.stat(place.name())? else {
        return Ok(Standing::Nothing);
    };
    if entry.new_id.map(|id| id.1) == Some(stat.st_ino)
        && FileType::from_raw_mode(stat.st_mode).is_file()
    {
        let now = Before::of(&mut folder.open_file(place.name())?)?;
        if Some(hex(now.sha256)) == entry.change.after_sha256 {
            return Ok(Standing::Ours);
        }
    }
    Ok(Standing::Other(stat.st_ino))
}
