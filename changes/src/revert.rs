//! Takes back sets of changes: those of a killed command, of a failed run, of a rollback.

use std::fs;
use std::path::{Path, PathBuf};

use code_commit_apply::{Action, Force, Lock, UNDONE, UndoError, Undone};
use code_commit_dir::Folder;
use rustix::fs::FileType;

use crate::backup::Backup;
use crate::fault::Fault;

/// Undoes sets of changes, oldest first, whatever somebody has written there since: that goes to the backup. Gives the
/// paths.
pub fn undo(
    lock: &Lock,
    root: &Path,
    sets: &[PathBuf],
    backup: &mut Backup<'_>,
) -> Result<Vec<String>, Fault> {
    let Some(newest) = sets.last() else {
        return Ok(Vec::new());
    };
    let left = code_commit_apply::hashes_after(sets).map_err(Fault::Undo)?;
    let undone = undo_past_obstacles(lock, root, sets, backup)?;
    // An earlier attempt may have been killed, too.
    for entry in code_commit_dir::list(newest).map_err(Fault::file("list", newest))? {
        let folder = entry.map_err(Fault::file("list", newest))?.path();
        let Ok(Some(replaced)) = code_commit_apply::read_applied(&folder) else {
            continue;
        };
        let kept = Folder::open(&folder).map_err(Fault::file("open", &folder))?;
        for (number, change) in replaced.changes.iter().enumerate() {
            let came_out = change.before_sha256.is_some() && change.action != Action::None;
            if came_out && left.get(&change.path) != Some(&change.before_sha256) {
                let name = code_commit_apply::kept_name(number);
                let taken = backup.take_in(&kept, name.as_ref(), change.path.as_ref());
                taken.map_err(Fault::file("keep", &folder.join(name)))?;
            }
        }
    }
    Ok(undone
        .applied
        .changes
        .into_iter()
        .map(|change| change.path)
        .collect())
}

/// Undoes sets of changes, oldest first. What somebody has written there since is kept beside the newest set; the backup
/// gets only what would block the undo.
pub fn undo_past_obstacles(
    lock: &Lock,
    root: &Path,
    sets: &[PathBuf],
    backup: &mut Backup<'_>,
) -> Result<Undone, Fault> {
    let undo = || code_commit_apply::undo(lock, root, sets, Force::Yes);
    let undone = match undo() {
        Err(UndoError::Blocked { .. }) => {
            make_way(root, sets, backup)?;
            undo()
        }
        done => done,
    };
    undone.map_err(Fault::Undo)
}

/// Moves to the backup what would block an undo of these sets: a folder, a symlink or a FIFO in the place of a file, or
/// something other than a folder above it.
fn make_way(root: &Path, sets: &[PathBuf], backup: &mut Backup<'_>) -> Result<(), Fault> {
    for (path, was) in code_commit_apply::hashes_before(sets).map_err(Fault::Undo)? {
        let path = Path::new(&path);
        // An undo replaces a file, and leaves a folder where there was no file.
        let may_stay = |kind: FileType| kind.is_file() || (kind.is_dir() && was.is_none());
        let found = code_commit_dir::obstacle::find(root, path).ok().flatten();
        if found.is_some_and(|(place, kind)| place != path || !may_stay(kind)) {
            // If it cannot be moved, the next attempt reports the obstacle.
            let _ = backup.take_from(root, path);
        }
    }
    Ok(())
}

/// How they are named once the changes were reapplied.
const REDONE: &str = "redone";

/// Whether these sets were undone, by a restore or by a person.
pub fn were_undone(rounds: &[PathBuf]) -> bool {
    !undos(rounds).is_empty()
}

/// After the changes were reapplied: what undos had replaced no longer counts as undone, and is kept under another name.
pub fn put_away(undos: &[PathBuf]) -> Result<(), Fault> {
    for undo in undos {
        let free = code_commit_apply::free_name(undo.parent().unwrap_or(undo), REDONE);
        fs::rename(undo, &free).map_err(Fault::file("rename", undo))?;
    }
    Ok(())
}

/// What undos of these sets have replaced, the oldest first: undoing all of it reapplies the changes. It is beside the
/// newest pre-images.
pub fn undos(rounds: &[PathBuf]) -> Vec<PathBuf> {
    let entries = rounds
        .last()
        .and_then(|newest| code_commit_dir::list(newest).ok())
        .into_iter()
        .flatten()
        .flatten();
    let number = |path: &Path| {
        let name = path.file_name()?.to_str()?.strip_prefix(UNDONE)?;
        if name.is_empty() {
            Some(1)
        } else {
            name.strip_prefix('-')?.parse::<u32>().ok()
        }
    };
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((number(&entry.path())?, entry.path())))
        .filter(|(_, path)| {
            code_commit_apply::read_applied(path).is_ok_and(|applied| applied.is_some())
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}
