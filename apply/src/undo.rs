//! Restores what a run's sets changed, from their pre-images, as one or two further transactions.
//! Does not need git.

mod history;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::Folder;

use crate::change::Change;
use crate::error::{ApplyError, UndoError};
use crate::journal::Steps;
use crate::lock::Lock;
use crate::place::folders_above;
use crate::report::Applied;
use crate::transaction::{self, FoldersAfter, Site};
use history::{File, History, manifest};

/// What to do about files that have changed since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Force {
    /// Refuse, and change nothing.
    #[default]
    No,
    /// Restore the old content anyway; the current version is kept in the folder that [`Undone`]
    /// names.
    Yes,
}

/// What of the sets is undone.
#[derive(Debug, Clone, Copy)]
pub enum Part<'p> {
    /// Everything.
    All,
    /// These files, by path.
    Files(&'p BTreeSet<String>),
}

/// What was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// The files and what happened to them.
    pub applied: Applied,
    /// Where the replaced files are; `undo` of these folders reverts the undo. More than one folder
    /// if a file replaced a folder that had been created since.
    pub replaced: Vec<PathBuf>,
}

/// How the names of the folders with what an undo replaces begin.
pub const UNDONE: &str = "undone";

/// How often a forced undo is tried: somebody may save one of its files, or git rewrite it, at any moment.
const TRIES: u32 = 5;

/// Restores the tree from before the first of the given sets, oldest first.
///
/// Leaves unchanged files alone, and folders that have new content. The list of changed files is complete.
/// Each folder must hold the manifest of an applied set: skipping a lost one would create a tree that never
/// existed.
pub fn undo(
    lock: &Lock,
    root: &Path,
    undo_folders: &[PathBuf],
    force: Force,
) -> Result<Undone, UndoError> {
    undo_part(lock, root, undo_folders, Part::All, force)
}

/// As [`undo`], for a part of what the sets changed.
pub fn undo_part(
    lock: &Lock,
    root: &Path,
    undo_folders: &[PathBuf],
    part: Part<'_>,
    force: Force,
) -> Result<Undone, UndoError> {
    undo_with(lock, root, undo_folders, part, force, &mut |_| {})
}

pub(crate) fn undo_with(
    lock: &Lock,
    root: &Path,
    undo_folders: &[PathBuf],
    part: Part<'_>,
    force: Force,
    steps: Steps<'_>,
) -> Result<Undone, UndoError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| UndoError::Io { path, source }
    };
    // The journal must be valid for a process with another working folder.
    let root = &std::path::absolute(root).map_err(failed(root))?;
    let folder = Arc::new(Folder::open(root).map_err(failed(root))?);
    let mut history = History::complete(undo_folders)?;
    if let Part::Files(files) = part {
        history.keep(files);
    }
    code_commit_guard::raise_descriptor_limit();
    let mut changes = history.changes(&folder)?;
    let changed_since = history.changed_since(&changes);
    if force == Force::No && !changed_since.is_empty() {
        return Err(UndoError::ChangedSince {
            paths: changed_since,
        });
    }
    let newest = undo_folders.last().unwrap_or(&lock.path);
    let newest = std::path::absolute(newest).map_err(failed(newest))?;
    let mut undone = Undone {
        applied: Applied::default(),
        replaced: Vec::new(),
    };
    let mut run = |changes: &[Change<'_>], after| -> Result<(), UndoError> {
        let replaced = free_name(&newest, UNDONE);
        let site = Site {
            lock,
            root: Arc::clone(&folder),
            root_path: root,
            undo: &replaced,
        };
        let applied = transaction::run(&site, changes, after, steps)?;
        undone.applied.changes.extend(applied.changes);
        undone.applied.warnings.extend(applied.warnings);
        undone.replaced.push(replaced);
        Ok(())
    };
    let mut tries = if force == Force::Yes { TRIES } else { 1 };
    loop {
        tries -= 1;
        match in_order(&mut run, &history, &folder, changes) {
            Err(UndoError::Apply(ApplyError::Changed { .. })) if tries > 0 => {}
            done => break done?,
        }
        changes = history.changes(&folder)?;
    }
    Ok(undone)
}

/// Runs one transaction, and then what is to happen to folders.
type Run<'r> = dyn FnMut(&[Change<'_>], FoldersAfter) -> Result<(), UndoError> + 'r;

/// Runs the changes as one transaction, or as two if something is in their way.
fn in_order(
    run: &mut Run<'_>,
    history: &History,
    folder: &Arc<Folder>,
    mut changes: Vec<Change<'static>>,
) -> Result<(), UndoError> {
    let (first, emptied) = in_the_way(&mut changes, &history.created_folders);
    if !first.is_empty() || !emptied.is_empty() {
        // If an undo is interrupted between the two transactions, it can be repeated: files that
        // are gone by then are already restored.
        run(&first, (emptied, Vec::new()))?;
        changes = history.changes(folder)?;
        changes.retain(|change| {
            first
                .iter()
                .all(|done| done.place.path != change.place.path)
        });
    }
    run(
        &changes,
        (
            history.created_folders.clone(),
            history.removed.clone().into_iter().collect(),
        ),
    )
}

/// Takes out the files that must be removed before a file can replace a folder, or the other way
/// round, together with their folders.
fn in_the_way(
    changes: &mut Vec<Change<'static>>,
    created_folders: &[String],
) -> (Vec<Change<'static>>, Vec<String>) {
    let coming = changes.iter().filter(|change| change.content.is_some());
    let coming: BTreeSet<String> = coming.map(|change| change.place.path.clone()).collect();
    let is_inside = |path: &str| folders_above(path).any(|folder| coming.contains(folder));
    let is_around = |path: &str| {
        let inside = format!("{path}/");
        coming
            .range(inside.clone()..)
            .next()
            .is_some_and(|first| first.starts_with(&inside))
    };
    let goes_first = |change: &mut Change<'_>| {
        let path = &change.place.path;
        change.content.is_none() && (is_inside(path) || is_around(path))
    };
    let first = changes.extract_if(.., goes_first).collect();
    let emptied = created_folders
        .iter()
        .filter(|folder| coming.contains(*folder) || is_inside(folder));
    (first, emptied.cloned().collect())
}

/// What a set did, read from its folder; `None` if it was not applied.
pub fn read_applied(undo: &Path) -> Result<Option<Applied>, UndoError> {
    Ok(manifest(undo)?.map(|journal| journal.applied()))
}

/// A file as it was before the first of several sets. Its content is read when it is asked for: all of them together
/// may be larger than the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreImage {
    /// Relative to the root.
    pub path: String,
    /// SHA-256, in hex, of its content; `None` if there was no file.
    pub sha256: Option<String>,
    /// Its permission bits.
    pub mode: Option<u32>,
    /// SHA-256, in hex, of the content that the last set wrote; `None` if it deleted the file.
    pub left_as: Option<String>,
    /// The permission bits that the last set gave it.
    pub left_mode: Option<u32>,
    kept: Option<PathBuf>,
}

impl PreImage {
    /// The whole content; `None` if there was no file, or if it is longer than `most` bytes.
    pub fn content(&self, most: u64) -> Result<Option<Vec<u8>>, UndoError> {
        let Some(kept) = &self.kept else {
            return Ok(None);
        };
        code_commit_dir::read(kept, most, code_commit_dir::Links::Refused).map_err(|source| {
            UndoError::Io {
                path: kept.clone(),
                source,
            }
        })
    }
}

/// The old version of every file that the sets changed, by path. The folders are given oldest
/// first.
pub fn pre_images(undo_folders: &[PathBuf]) -> Result<Vec<PreImage>, UndoError> {
    let image = |(path, file): (String, File)| PreImage {
        path,
        sha256: file.was.filter(|_| file.kept.is_some()),
        mode: file.kept.as_ref().map(|(_, mode, _)| *mode),
        left_as: file.left_as,
        left_mode: file.left_mode,
        kept: file.kept.map(|(kept, ..)| kept),
    };
    let files = History::read(undo_folders)?.files.into_iter();
    Ok(files.map(image).collect())
}

/// The SHA-256 of the content of each file, by path; `None` if there is none.
type Hashes = BTreeMap<String, Option<String>>;

/// The state in which the sets left each file.
pub fn hashes_after(undo_folders: &[PathBuf]) -> Result<Hashes, UndoError> {
    let files = History::read(undo_folders)?.files.into_iter();
    Ok(files.map(|(path, file)| (path, file.left_as)).collect())
}

/// The state in which the first of them found it.
pub fn hashes_before(undo_folders: &[PathBuf]) -> Result<Hashes, UndoError> {
    let files = History::read(undo_folders)?.files.into_iter();
    Ok(files.map(|(path, file)| (path, file.was)).collect())
}

/// Whether the sets changed anything, if only a folder. A set without a manifest may have.
pub fn changed_anything(undo_folders: &[PathBuf]) -> Result<bool, UndoError> {
    let history = History::complete(undo_folders)?;
    let is_any = !history.created_folders.is_empty() || !history.removed.is_empty();
    Ok(is_any || !history.files.is_empty())
}

/// The first path in a folder that is free: `name`, `name-2` and so on.
pub fn free_name(folder: &Path, name: &str) -> PathBuf {
    let names = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}-{n}")));
    names
        .map(|name| folder.join(name))
        .find(|path| path.symlink_metadata().is_err())
        .unwrap_or_default()
}
