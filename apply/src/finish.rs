//! After the commit: what is left of the transaction becomes the folder that `undo` reads.

use std::io;
use std::path::Path;
use std::sync::Arc;

use guard::Folder;
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use crate::Steps;
use crate::files::{copy, sync};
use crate::journal::{Journal, MANIFEST, kept};
use crate::lock::Lock;
use crate::recover::{RecoverError, discard, remove_folder};
use crate::transaction::TXN;

/// Removes emptied folders and hands the pre-images over. May be repeated after an interruption at any point.
pub(crate) fn finish(
    lock: &Lock,
    txn: &Folder,
    journal: &Journal,
    root: &Arc<Folder>,
    undo: &Path,
    steps: Steps<'_>,
) -> Result<(), RecoverError> {
    for path in &journal.emptied_folders {
        steps("remove an emptied folder");
        remove_folder(root, path).map_err(RecoverError::io(path))?;
    }
    steps("tidy the transaction folder");
    tidy(txn, journal).map_err(RecoverError::io(lock.path.join(TXN)))?;
    steps("hand the pre-images over");
    hand_over(lock, txn, undo, steps).map_err(RecoverError::io(undo))
}

/// Leaves the manifest and the pre-images only, none of which shares its inode with a file that may still change.
fn tidy(txn: &Folder, journal: &Journal) -> io::Result<()> {
    for (number, entry) in journal.entries.iter().enumerate() {
        let (name, copied) = (kept(number), format!("{number}.copy"));
        let is_shared = entry.old.as_ref().is_some_and(|old| old.links > 1 && old.id == old.kept_id);
        if is_shared {
            remove_if_there(txn, &copied)?;
            copy(txn, &name, txn, &copied)?;
            rustix::fs::renameat(txn, &copied, txn, &name)?;
        }
    }
    for (name, _) in txn.entries()? {
        if name.ends_with(b".new") {
            rustix::fs::unlinkat(txn, &name, AtFlags::empty())?;
        }
    }
    Ok(())
}

/// One rename; to another file system, a copy of each file, the manifest last, since it says that all are there.
fn hand_over(lock: &Lock, txn: &Folder, undo: &Path, steps: Steps<'_>) -> io::Result<()> {
    if let Some(parent) = undo.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match rustix::fs::renameat(&lock.state, TXN, CWD, undo) {
        Err(Errno::XDEV) => {}
        moved => return Ok(moved?),
    }
    std::fs::create_dir_all(undo)?;
    let target = Folder::open(undo)?;
    let mut names: Vec<String> =
        txn.entries()?.into_iter().filter_map(|(name, _)| String::from_utf8(name).ok()).collect();
    names.sort_by_key(|name| name == MANIFEST);
    for name in names {
        remove_if_there(&target, &name)?;
        copy(txn, &name, &target, &name)?;
    }
    sync(&target)?;
    discard(lock, steps)
}

fn remove_if_there(folder: &Folder, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
