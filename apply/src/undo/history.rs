//! What several sets did together, and what takes it back.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use guard::{Before, Folder};
use rustix::fs::FileType;
use sha2::{Digest, Sha256};

use super::{UndoError, manifest, read};
use crate::belief::may_be_written;
use crate::change::Change;
use crate::journal::{hex, kept_name};
use crate::place::{Finder, is_blocked};
use crate::report::Action;

/// What several sets did together.
#[derive(Default)]
pub(super) struct History {
    pub(super) files: BTreeMap<String, File>,
    /// Innermost first.
    pub(super) created_folders: Vec<String>,
}

/// One file, from before the first set to after the last.
pub(super) struct File {
    pub(super) was: Option<String>,
    /// Of the old file: where its content is kept, permission bits, owner.
    pub(super) kept: Option<(PathBuf, u32, (u32, u32))>,
    pub(super) left_as: Option<String>,
}

impl History {
    pub(super) fn read(undo_folders: &[PathBuf]) -> Result<History, UndoError> {
        let mut history = History::default();
        for undo in undo_folders {
            let Some(journal) = manifest(undo)? else { continue };
            history.created_folders.extend(journal.created_folders);
            for (number, entry) in journal.entries.into_iter().enumerate() {
                if entry.change.action == Action::None {
                    continue;
                }
                if !may_be_written(&entry.change.path) {
                    return Err(UndoError::Blocked { path: entry.change.path });
                }
                let left_as = entry.change.after_sha256.clone();
                let kept = entry.old.map(|old| {
                    (undo.join(kept_name(number)), entry.change.before_mode.unwrap_or(0o600), old.owner)
                });
                let was = entry.change.before_sha256;
                let file =
                    history.files.entry(entry.change.path).or_insert(File { was, kept, left_as: None });
                file.left_as = left_as;
            }
        }
        history.created_folders.sort_unstable();
        history.created_folders.dedup();
        history.created_folders.reverse();
        Ok(history)
    }
}

impl File {
    pub(super) fn change(&self, finder: &mut Finder, path: &str) -> Result<Change<'static>, UndoError> {
        let unreachable = |source: io::Error| {
            if is_blocked(&source) || source.kind() == io::ErrorKind::InvalidInput {
                return UndoError::Blocked { path: path.to_owned() };
            }
            UndoError::Io { path: PathBuf::from(path), source }
        };
        let place = finder.find(path).map_err(unreachable)?;
        let before = match place.parent() {
            Some(parent) => look(parent, place.name()).map_err(unreachable)?,
            None => None,
        };
        let Some((kept, mode, owner)) = &self.kept else {
            return Ok(Change { place, before, content: None, attributes: None, model: None });
        };
        let content = read(kept).map_err(|source| UndoError::Io { path: kept.clone(), source })?;
        if Some(hex(Sha256::digest(&content).into())) != self.was {
            return Err(UndoError::Damaged { path: path.to_owned(), kept: kept.clone() });
        }
        let (content, attributes) = (Some(Cow::Owned(content)), Some((*mode, *owner)));
        Ok(Change { place, before, content, attributes, model: Some(kept.clone()) })
    }
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
