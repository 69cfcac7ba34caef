//! After the commit: turns the transaction's folder into the folder that `undo` reads.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::{Folder, copy_all};

use crate::Steps;
use crate::journal::{Journal, MANIFEST, kept_name};
use crate::location::Location;
use crate::lock::Lock;
use crate::recover::{RecoverError, drop_record, remove_folder, set_aside};
use crate::report::Warning;
use crate::transaction::TXN_FOLDER;

/// The result of a committed transaction.
pub(crate) struct Finished {
    /// Where the pre-images are.
    pub(crate) undo: PathBuf,
    /// What could not be cleaned up.
    pub(crate) warnings: Vec<Warning>,
}

/// Removes emptied folders and moves the pre-images to the `undo` folder, or keeps them in the
/// state folder if there is none. Can be repeated after an interruption at any point.
pub(crate) fn finish(
    lock: &Lock,
    txn: &Folder,
    journal: &Journal,
    root: &Arc<Folder>,
    undo: Option<&Path>,
    steps: Steps<'_>,
) -> Result<Finished, RecoverError> {
    let mut warnings = Vec::new();
    for path in &journal.emptied_folders {
        steps("remove an emptied folder");
        // A folder that cannot be removed must not prevent all later runs from starting.
        let reason = remove_folder(root, path).err().map(|error| format!("cannot remove {path}: {error}"));
        warnings.extend(reason.map(|reason| Warning::CleanUp { reason }));
    }
    steps("tidy the transaction folder");
    tidy(txn, journal).map_err(RecoverError::io(lock.path.join(TXN_FOLDER)))?;
    steps("hand the pre-images over");
    let handed = match undo {
        Some(undo) => hand_over(lock, txn, undo, steps).map(|()| undo.to_owned()),
        None => set_aside(lock),
    };
    let undo = handed.map_err(RecoverError::io(undo.unwrap_or(&lock.path)))?;
    Location::forget(&lock.state);
    Ok(Finished { undo, warnings })
}

/// Keeps only the manifest and the pre-images, and makes sure that none shares its inode with a
/// file that may still change.
fn tidy(txn: &Folder, journal: &Journal) -> io::Result<()> {
    for (number, entry) in journal.entries.iter().enumerate() {
        let (name, copied) = (kept_name(number), format!("{number}.copy"));
        let is_shared = entry.old.as_ref().is_some_and(|old| old.links > 1 && old.id == old.kept_id);
        if is_shared {
            remove_if_there(txn, &copied)?;
            copy_all(txn, &name, txn, &copied)?;
            txn.rename(&copied, txn, &name)?;
        }
    }
    for (name, _) in txn.entries()? {
        if name.ends_with(b".new") {
            txn.remove_file(OsStr::from_bytes(&name))?;
        }
    }
    Ok(())
}

/// A single rename. To another file system, copies each file, the manifest last, because it means
/// that all are there; then deletes the manifest here first, because it means that all are here.
fn hand_over(lock: &Lock, txn: &Folder, undo: &Path, steps: Steps<'_>) -> io::Result<()> {
    let parent = undo.parent().unwrap_or(undo);
    std::fs::create_dir_all(parent)?;
    match lock.state.rename_to(TXN_FOLDER, undo) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
        moved => return moved,
    }
    std::fs::create_dir_all(undo)?;
    let target = Folder::open(undo)?;
    let mut names: Vec<String> =
        txn.entries()?.into_iter().filter_map(|(name, _)| String::from_utf8(name).ok()).collect();
    names.sort_by_key(|name| name == MANIFEST);
    for name in names {
        remove_if_there(&target, &name)?;
        copy_all(txn, &name, &target, &name)?;
    }
    target.sync()?;
    Folder::open(parent)?.sync()?;
    drop_record(lock, txn, MANIFEST, steps)
}

fn remove_if_there(folder: &Folder, name: &str) -> io::Result<()> {
    match folder.remove_file(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
