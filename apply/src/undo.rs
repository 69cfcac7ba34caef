//! Putting back what one run's sets changed, from their pre-images, as one more transaction or two. No git needed.

mod history;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dir::Folder;

use crate::Steps;
use crate::change::Change;
use crate::error::ApplyError;
use crate::journal::{Journal, MANIFEST, Unread};
use crate::lock::Lock;
use crate::place::folders_above;
use crate::report::Applied;
use crate::transaction::{self, Site};
use history::{File, History};

/// What to do about files that somebody changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// Refuse, and change nothing.
    No,
    /// Put the old content back over them; theirs is kept in the folder that [`Undone`] names.
    Yes,
}

/// What was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// The files and what happened to them.
    pub applied: Applied,
    /// Where the files are that stood there until now; `undo` of these folders takes the undo back. More than one where a file came
    /// back to where a folder had been made since.
    pub replaced: Vec<PathBuf>,
}

/// Why nothing was undone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    /// Files were changed since the run.
    #[error("changed since: {}", paths.join(", "))]
    ChangedSince {
        /// Relative to the root.
        paths: Vec<String>,
    },
    /// Something that is no regular file stands at the path or on the way to it, or no run may have written there.
    #[error("{path} cannot be put back: it is no regular file, or nothing that a run may write")]
    Blocked {
        /// Relative to the root.
        path: String,
    },
    /// A folder that should hold pre-images has no manifest: without it nothing is known of what its set has changed.
    #[error("what was changed cannot be told: {} is not there", path.display())]
    NoManifest {
        /// The manifest.
        path: PathBuf,
    },
    /// A pre-image is not what it was when it was kept.
    #[error("the old content of {path} is damaged: {}", kept.display())]
    Damaged {
        /// Relative to the root.
        path: String,
        /// The pre-image.
        kept: PathBuf,
    },
    /// Another version of this program has written the set: what its manifest says is not known here.
    #[error("{} was written by another version of code-commit (form {version})", path.display())]
    OtherVersion {
        /// The manifest.
        path: PathBuf,
        /// The version of its form.
        version: u32,
    },
    /// A folder of pre-images or the tree could not be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// Which path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The transaction failed.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

/// Puts back the tree from before the first of the sets whose folders are given, oldest first.
///
/// Files that already are as they were are left alone, and so are folders that somebody has put something into.
/// The list of files changed since is complete. Each folder has to hold the manifest of a set that was applied: to pass over one that
/// was lost would make a tree that never was.
pub fn undo(lock: &Lock, root: &Path, undo_folders: &[PathBuf], force: Force) -> Result<Undone, UndoError> {
    undo_with(lock, root, undo_folders, force, &mut |_| {})
}

pub(crate) fn undo_with(
    lock: &Lock,
    root: &Path,
    undo_folders: &[PathBuf],
    force: Force,
    steps: Steps<'_>,
) -> Result<Undone, UndoError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| UndoError::Io { path, source }
    };
    // The journal must make sense to a process that was started elsewhere.
    let root = &std::path::absolute(root).map_err(failed(root))?;
    let folder = Arc::new(Folder::open(root).map_err(failed(root))?);
    for folder in undo_folders {
        manifest(folder)?.ok_or_else(|| UndoError::NoManifest { path: folder.join(MANIFEST) })?;
    }
    let history = History::read(undo_folders)?;
    guard::raise_descriptor_limit();
    let mut changes = history.changes(&folder)?;
    let changed_since = history.changed_since(&changes);
    if force == Force::No && !changed_since.is_empty() {
        return Err(UndoError::ChangedSince { paths: changed_since });
    }
    let newest = undo_folders.last().unwrap_or(&lock.path);
    let newest = std::path::absolute(newest).map_err(failed(newest))?;
    let mut undone = Undone { applied: Applied::default(), replaced: Vec::new() };
    let mut run = |changes: &[Change<'_>], emptied| -> Result<(), UndoError> {
        let replaced = free_name(&newest);
        let site = Site { lock, root: Arc::clone(&folder), root_path: root, undo: &replaced };
        let applied = transaction::run(&site, changes, emptied, steps)?;
        undone.applied.changes.extend(applied.changes);
        undone.applied.warnings.extend(applied.warnings);
        undone.replaced.push(replaced);
        Ok(())
    };
    let (first, emptied) = in_the_way(&mut changes, &history.created_folders);
    if !first.is_empty() {
        // An undo that ends between the two can be begun again: what is gone by then is as it was.
        run(&first, emptied)?;
        changes = history.changes(&folder)?;
        changes.retain(|change| first.iter().all(|done| done.place.path != change.place.path));
    }
    run(&changes, history.created_folders)?;
    Ok(undone)
}

/// Takes out the files that have to go before a file can come back to the place of a folder, or the other way round, with the
/// folders that go with them.
fn in_the_way(
    changes: &mut Vec<Change<'static>>,
    created_folders: &[String],
) -> (Vec<Change<'static>>, Vec<String>) {
    let coming = changes.iter().filter(|change| change.content.is_some());
    let coming: BTreeSet<String> = coming.map(|change| change.place.path.clone()).collect();
    let is_inside = |path: &str| folders_above(path).any(|folder| coming.contains(folder));
    let is_around = |path: &str| {
        let inside = format!("{path}/");
        coming.range(inside.clone()..).next().is_some_and(|first| first.starts_with(&inside))
    };
    let goes_first = |change: &mut Change<'_>| {
        let path = &change.place.path;
        change.content.is_none() && (is_inside(path) || is_around(path))
    };
    let first = changes.extract_if(.., goes_first).collect();
    let emptied = created_folders.iter().filter(|folder| coming.contains(*folder) || is_inside(folder));
    (first, emptied.cloned().collect())
}

/// What a set did, read back from its folder; `None` if it was not applied.
pub fn read_applied(undo: &Path) -> Result<Option<Applied>, UndoError> {
    Ok(manifest(undo)?.map(|journal| journal.applied()))
}

/// A file as it was before the first of several sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreImage {
    /// Relative to the root.
    pub path: String,
    /// The whole content; `None` if there was no file.
    pub content: Option<Vec<u8>>,
    /// SHA-256, in hex, of what the last of the sets has written; `None` if it was deleted.
    pub left_as: Option<String>,
}

/// Every file that the sets changed, as it was before the first of them, by path. The folders are given oldest first.
pub fn pre_images(undo_folders: &[PathBuf]) -> Result<Vec<PreImage>, UndoError> {
    let image = |(path, file): (String, File)| {
        let content =
            file.kept.map(|(kept, ..)| read(&kept).map_err(|source| UndoError::Io { path: kept, source }));
        Ok(PreImage { path, content: content.transpose()?, left_as: file.left_as })
    };
    History::read(undo_folders)?.files.into_iter().map(image).collect()
}

/// How the last of the sets that changed a file has left it, by path: the SHA-256 of its content, `None` where it is gone.
pub fn hashes_after(undo_folders: &[PathBuf]) -> Result<BTreeMap<String, Option<String>>, UndoError> {
    Ok(History::read(undo_folders)?.files.into_iter().map(|(path, file)| (path, file.left_as)).collect())
}

fn manifest(undo: &Path) -> Result<Option<Journal>, UndoError> {
    let path = undo.join(MANIFEST);
    let read = match Folder::open(undo) {
        Ok(folder) => Journal::read(&folder, MANIFEST),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Unread::Io(error)),
    };
    read.map_err(|unread| match unread {
        Unread::Io(source) => UndoError::Io { path, source },
        Unread::OtherVersion(version) => UndoError::OtherVersion { path, version },
    })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    std::fs::File::open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// `undone` beside the pre-images, or `undone-2` and so on.
fn free_name(undo: &Path) -> PathBuf {
    let names = std::iter::once("undone".to_owned()).chain((2..).map(|n| format!("undone-{n}")));
    names.map(|name| undo.join(name)).find(|path| path.symlink_metadata().is_err()).unwrap_or_default()
}
