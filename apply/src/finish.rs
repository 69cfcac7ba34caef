//! After the commit: turns the transaction's folder into the folder that `undo` reads.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::{Folder, copy_all, reach};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use crate::error::RecoverError;
use crate::journal::{Journal, MANIFEST, Old, SHARED, Steps, TXN_FOLDER, kept_name};
use crate::location::Location;
use crate::lock::Lock;
use crate::place::Place;
use crate::report::Warning;

/// The result of a committed transaction.
pub(crate) struct Finished {
    /// Where the pre-images are.
    pub(crate) undo: PathBuf,
    /// What could not be cleaned up.
    pub(crate) warnings: Vec<Warning>,
}

/// Restores removed folders, removes emptied ones and moves the pre-images to the `undo` folder, or keeps them in the
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
    for (path, mode) in &journal.restored_folders {
        steps("restore a folder");
        let reason = restore_folder(root, journal, path, *mode).err();
        let reason = reason.map(|error| format!("cannot restore {path}: {error}"));
        warnings.extend(reason.map(|reason| Warning::CleanUp { reason }));
    }
    for path in &journal.emptied_folders {
        steps("remove an emptied folder");
        // A folder that cannot be removed must not prevent all later runs from starting.
        let reason = remove_folder(root, path)
            .err()
            .map(|error| format!("cannot remove {path}: {error}"));
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

/// Makes a folder that is missing, and gives one that this transaction has made its old mode.
fn restore_folder(root: &Arc<Folder>, journal: &Journal, path: &str, mode: u32) -> io::Result<()> {
    let place = Place::find_unless_blocked(root, path)?;
    let Some(parent) = place
        .parent()
        .filter(|_| journal.created_folders.iter().any(|made| made == path))
    else {
        return Ok(());
    };
    match parent.make_folder(place.name(), 0o700) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    reach::set_mode(
        parent.as_fd(),
        place.name().as_ref(),
        Mode::from_raw_mode(mode),
    )
}

/// Keeps only the manifest and the pre-images, and makes sure that none shares its inode with a file that may still
/// change. Such an inode stays beside the copy: as long as it is unchanged, it is what `undo` restores.
fn tidy(txn: &Folder, journal: &Journal) -> io::Result<()> {
    for (number, entry) in journal.entries.iter().enumerate() {
        let (name, copied) = (kept_name(number), format!("{number}.copy"));
        let was_shared = |old: &&Old| old.links > 1 && old.id == old.kept_id;
        let Some(old) = entry.old.as_ref().filter(was_shared) else {
            continue;
        };
        // Otherwise it is the copy that an interrupted clean-up has made.
        if txn
            .stat(&name)?
            .is_some_and(|stat| stat.st_ino == old.kept_id.1)
        {
            remove_if_there(txn, &copied)?;
            copy_all(txn, &name, txn, &copied)?;
            let shared = format!("{number}.{SHARED}");
            remove_if_there(txn, &shared)?;
            rustix::fs::linkat(txn, &name, txn, &shared, AtFlags::empty())?;
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
    let mut names: Vec<String> = txn
        .entries()?
        .into_iter()
        .filter_map(|(name, _)| String::from_utf8(name).ok())
        .collect();
    names.sort_by_key(|name| name == MANIFEST);
    for name in names.into_iter().filter(|name| !name.ends_with(SHARED)) {
        remove_if_there(&target, &name)?;
        copy_all(txn, &name, &target, &name)?;
    }
    target.sync()?;
    Folder::open(parent)?.sync()?;
    drop_record(lock, txn, MANIFEST, steps)
}

pub(crate) fn remove_if_there(folder: &Folder, name: impl AsRef<OsStr>) -> io::Result<()> {
    match folder.remove_file(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Removes a folder if it is empty; returns its parent if there is one.
pub(crate) fn remove_folder(root: &Arc<Folder>, path: &str) -> io::Result<Option<Arc<Folder>>> {
    let place = Place::find_unless_blocked(root, path)?;
    let Some(parent) = place.parent() else {
        return Ok(None);
    };
    match parent
        .remove_folder(place.name())
        .map_err(|error| (Errno::from_io_error(&error), error))
    {
        Ok(()) | Err((Some(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR), _)) => {
            Ok(Some(Arc::clone(parent)))
        }
        Err((_, error)) => Err(error),
    }
}

/// From here on there is nothing to restore or to move. That must be on disk before the old files
/// lose their names.
pub(crate) fn drop_record(
    lock: &Lock,
    txn: &Folder,
    record: &str,
    steps: Steps<'_>,
) -> io::Result<()> {
    steps("drop the record");
    txn.remove_file(record)?;
    txn.sync()?;
    discard(lock, steps)
}

/// Keeps the transaction's folder under another name, for the user to inspect.
pub(crate) fn set_aside(lock: &Lock) -> io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let name = format!("left-{number}");
        match lock.state.rename_new(TXN_FOLDER, &lock.state, &name) {
            Ok(()) => {
                Location::forget(&lock.state);
                return Ok(lock.path.join(name));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Removes the transaction's folder and everything in it.
pub(crate) fn discard(lock: &Lock, steps: Steps<'_>) -> io::Result<()> {
    let txn = lock.state.open_in(TXN_FOLDER)?;
    for (name, _) in txn.entries()? {
        steps("discard a file");
        txn.remove_file(OsStr::from_bytes(&name))?;
    }
    steps("discard the folder");
    lock.state.remove_folder(TXN_FOLDER)?;
    Location::forget(&lock.state);
    Ok(())
}
