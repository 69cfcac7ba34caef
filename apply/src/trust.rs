//! Which parts of an interrupted transaction are trusted: a state folder in the tree may have come
//! with a clone.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::Folder;
use code_commit_guard::Policy;

use crate::error::RecoverError;
use crate::journal::Journal;
use crate::location::Location;
use crate::lock::Lock;

/// The root that a journal refers to, as it is now.
pub(crate) struct Root {
    pub(crate) folder: Arc<Folder>,
    path: PathBuf,
}

/// Checks every path of the journal and finds its root: the given one, or, if a run in another folder of the same work tree was
/// interrupted, that one.
///
/// Device numbers may change with a restart of the machine, so inodes alone are compared, here and in the recovery.
pub(crate) fn find_root(
    lock: &Lock,
    journal: &Journal,
    bearings: &Location,
    given: &Path,
) -> Result<Root, RecoverError> {
    let files = journal.entries.iter().map(|entry| &entry.change.path);
    let restored = journal.restored_folders.iter().map(|(path, _)| path);
    let folders = journal
        .created_folders
        .iter()
        .chain(&journal.emptied_folders)
        .chain(restored);
    if let Some(path) = files.chain(folders).find(|path| !may_be_written(path)) {
        return Err(RecoverError::Blocked { path: path.clone() });
    }
    let given = std::path::absolute(given).map_err(RecoverError::io(given))?;
    let recorded = bearings.root.clone().unwrap_or_else(|| given.clone());
    let open = |path: &Path| {
        Folder::open(path)
            .ok()
            .filter(|folder| folder.id().1 == journal.root_id.1)
    };
    if let Some(folder) = open(&given) {
        return Ok(Root {
            folder: Arc::new(folder),
            path: given,
        });
    }
    let Some(folder) = open(&recorded) else {
        return Err(RecoverError::RootMoved { root: recorded });
    };
    // A state folder in the tree may only refer to the folder that it is in.
    if lock.is_in_tree() || !are_in_one_work_tree(&given, &recorded) {
        return Err(RecoverError::ForeignRoot { root: recorded });
    }
    Ok(Root {
        folder: Arc::new(folder),
        path: recorded,
    })
}

/// A journal or manifest may have been planted, so none of its paths may lead outside the root, or
/// to files of git or of the harness.
pub(crate) fn may_be_written(path: &str) -> bool {
    Policy::scoped([path]).refuses(path).is_none()
}

/// The folder for the pre-images: as recorded, relative to where the root is now. `None` if it is not
/// recorded, or only a planted record could name it.
pub(crate) fn undo_folder(lock: &Lock, bearings: &Location, root: &Root) -> Option<PathBuf> {
    let recorded = bearings.undo.clone()?;
    let below = bearings
        .root
        .as_ref()
        .and_then(|root| recorded.strip_prefix(root).ok());
    let undo = below.map_or_else(|| recorded.clone(), |below| root.path.join(below));
    let is_good = !lock.is_in_tree()
        || is_below(&lock.path, &undo, |_| true)
        || is_below(&root.path, &undo, may_be_written);
    is_good.then_some(undo)
}

/// Whether `path` is below `folder`, by its components and, as far as it exists, without a symlink
/// that leads outside.
fn is_below(folder: &Path, path: &Path, may_be: fn(&str) -> bool) -> bool {
    let Ok(below) = path.strip_prefix(folder) else {
        return false;
    };
    let is_plain = below
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let is_meant = is_plain
        && below
            .to_str()
            .is_some_and(|below| !below.is_empty() && may_be(below));
    let there = path
        .ancestors()
        .find(|above| above.symlink_metadata().is_ok());
    let leads_out = || -> io::Result<bool> {
        let there = there.unwrap_or(path).canonicalize()?;
        Ok(!there.starts_with(folder.canonicalize()?))
    };
    is_meant && !leads_out().unwrap_or(true)
}

/// Without git: whether one is inside the other.
fn are_in_one_work_tree(one: &Path, other: &Path) -> bool {
    let (Ok(one), Ok(other)) = (one.canonicalize(), other.canonicalize()) else {
        return false;
    };
    match (top(&one), top(&other)) {
        (None, None) => one.starts_with(&other) || other.starts_with(&one),
        (one, other) => one == other,
    }
}

fn top(folder: &Path) -> Option<&Path> {
    folder
        .ancestors()
        .find(|above| above.join(".git").symlink_metadata().is_ok())
}
