//! The combined effect of several sets, and how to revert it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::Folder;
use code_commit_guard::Before;
use code_commit_model::Action;
use rustix::fs::FileType;

use crate::change::{Change, Content};
use crate::error::UndoError;
use crate::journal::{Journal, MANIFEST, Unread, hex, kept_name};
use crate::place::{Finder, Place, folders_above, is_blocked, name_of};
use crate::trust::may_be_written;

/// The combined effect of several sets.
#[derive(Default)]
pub(super) struct History {
    pub(super) files: BTreeMap<String, File>,
    /// Innermost first.
    pub(super) created_folders: Vec<String>,
    /// With their permission bits.
    pub(super) removed: BTreeMap<String, u32>,
}

/// One file, from before the first set until after the last one.
pub(super) struct File {
    pub(super) was: Option<String>,
    /// The old file: the path of its saved content, its permission bits and its owner.
    pub(super) kept: Option<(PathBuf, u32, (u32, u32))>,
    pub(super) left_as: Option<String>,
    pub(super) left_mode: Option<u32>,
}

impl History {
    pub(super) fn read(undo_folders: &[PathBuf]) -> Result<History, UndoError> {
        let mut history = History::default();
        for undo in undo_folders {
            let Some(journal) = manifest(undo)? else {
                continue;
            };
            for (path, mode) in journal.removed_folders {
                if !may_be_written(&path) {
                    return Err(UndoError::Blocked { path });
                }
                if !history.created_folders.contains(&path) {
                    history.removed.entry(path).or_insert(mode);
                }
            }
            history.created_folders.extend(journal.created_folders);
            for (number, entry) in journal.entries.into_iter().enumerate() {
                if entry.change.action == Action::None {
                    continue;
                }
                if !may_be_written(&entry.change.path) {
                    return Err(UndoError::Blocked {
                        path: entry.change.path,
                    });
                }
                let left_as = entry.change.after_sha256.clone();
                let kept = entry.old.map(|old| {
                    (
                        undo.join(kept_name(number)),
                        entry.change.before_mode.unwrap_or(0o600),
                        old.owner,
                    )
                });
                let was = entry.change.before_sha256;
                let file = history.files.entry(entry.change.path).or_insert(File {
                    was,
                    kept,
                    left_as: None,
                    left_mode: None,
                });
                file.left_as = left_as;
                file.left_mode = entry.change.after_mode;
            }
        }
        history.created_folders.sort_unstable();
        history.created_folders.dedup();
        history.created_folders.reverse();
        Ok(history)
    }

    /// As [`History::read`], but a set without a manifest is an error.
    pub(super) fn complete(undo_folders: &[PathBuf]) -> Result<Self, UndoError> {
        for folder in undo_folders {
            manifest(folder)?.ok_or_else(|| UndoError::NoManifest {
                path: folder.join(MANIFEST),
            })?;
        }
        Self::read(undo_folders)
    }

    /// Leaves out every file but these, and folders that are not above them.
    pub(super) fn keep(&mut self, files: &BTreeSet<String>) {
        self.files.retain(|path, _| files.contains(path));
        self.removed.retain(|folder, _| {
            let inside = format!("{folder}/");
            files
                .range(inside.clone()..)
                .next()
                .is_some_and(|path| path.starts_with(&inside))
        });
    }

    /// The changes that restore each file, by path, given the current tree.
    pub(super) fn changes(&self, root: &Arc<Folder>) -> Result<Vec<Change<'static>>, UndoError> {
        let mut finder = Finder::new(root);
        self.files
            .iter()
            .map(|(path, file)| self.change(&mut finder, path, file))
            .collect()
    }

    /// The files that are now neither as the sets left them nor as they were before.
    pub(super) fn changed_since(&self, changes: &[Change<'_>]) -> Vec<String> {
        let is_changed = |change: &&Change<'_>| {
            let now = change.before.as_ref().map(|before| hex(before.sha256));
            self.files
                .get(&change.place.path)
                .is_some_and(|file| now != file.left_as && now != file.was)
        };
        changes
            .iter()
            .filter(is_changed)
            .map(|change| change.place.path.clone())
            .collect()
    }

    /// The change that restores `path`. A folder that the sets created there is no obstacle if it
    /// contains only what they created, and where there was no file before, any folder stays.
    fn change(
        &self,
        finder: &mut Finder,
        path: &str,
        file: &File,
    ) -> Result<Change<'static>, UndoError> {
        let unreachable = |source: io::Error| {
            if is_blocked(&source) || source.kind() == io::ErrorKind::InvalidInput {
                return UndoError::Blocked {
                    path: path.to_owned(),
                };
            }
            UndoError::Io {
                path: PathBuf::from(path),
                source,
            }
        };
        let place = self.place(finder, path).map_err(unreachable)?;
        let before = match place.parent() {
            Some(parent) if self.is_made(parent, path).map_err(unreachable)? => None,
            Some(parent)
                if file.kept.is_none()
                    && is_folder(parent, place.name()).map_err(unreachable)? =>
            {
                None
            }
            Some(parent) => look(parent, place.name()).map_err(unreachable)?,
            None => None,
        };
        let Some((kept, mode, owner)) = &file.kept else {
            return Ok(Change {
                place,
                before,
                content: None,
                attributes: None,
            });
        };
        let hashed = std::fs::File::open(kept).and_then(|mut kept| Before::of(&mut kept));
        let sha256 = hashed
            .map_err(|source| UndoError::Io {
                path: kept.clone(),
                source,
            })?
            .sha256;
        if Some(hex(sha256)) != file.was {
            return Err(UndoError::Damaged {
                path: path.to_owned(),
                kept: kept.clone(),
            });
        }
        let (content, attributes) = (
            Some(Content::Kept(kept.clone(), sha256)),
            Some((*mode, *owner)),
        );
        Ok(Change {
            place,
            before,
            content,
            attributes,
        })
    }

    /// A file that the sets put in the place of a folder is no obstacle: another change removes it.
    fn place(&self, finder: &mut Finder, path: &str) -> io::Result<Place> {
        match finder.find(path) {
            Err(error)
                if is_blocked(&error)
                    && folders_above(path).any(|file| self.files.contains_key(file)) =>
            {
                Place::find_unless_blocked(finder.root(), path)
            }
            found => found,
        }
    }

    /// Whether `path` is a folder that the sets created and that contains only what they created.
    fn is_made(&self, parent: &Folder, path: &str) -> io::Result<bool> {
        if !self.makes(path) || !is_folder(parent, name_of(path))? {
            return Ok(false);
        }
        let mut todo = vec![(Arc::new(parent.open_in(name_of(path))?), path.to_owned())];
        while let Some((folder, path)) = todo.pop() {
            for (name, _) in folder.entries()? {
                let Ok(name) = String::from_utf8(name) else {
                    return Ok(false);
                };
                let path = format!("{path}/{name}");
                if self.makes(&path) && is_folder(&folder, &name)? {
                    todo.push((Arc::new(folder.open_in(&name)?), path));
                } else if self.files.get(&path).is_none_or(|file| file.was.is_some()) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn makes(&self, folder: &str) -> bool {
        self.created_folders
            .binary_search_by(|made| folder.cmp(made))
            .is_ok()
    }
}

fn is_folder(parent: &Folder, name: &str) -> io::Result<bool> {
    Ok(parent
        .stat(name)?
        .is_some_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir()))
}

/// The regular file at `name`; anything else is an error.
fn look(folder: &Folder, name: &str) -> io::Result<Option<Before>> {
    match folder.stat(name)? {
        None => Ok(None),
        Some(stat) if FileType::from_raw_mode(stat.st_mode).is_file() => {
            Before::of(&mut folder.open_file(name)?).map(Some)
        }
        Some(_) => Err(io::ErrorKind::InvalidInput.into()),
    }
}

pub(super) fn manifest(undo: &Path) -> Result<Option<Journal>, UndoError> {
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
