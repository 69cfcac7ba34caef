//! The order in which a record gets to the disk: files, the folders with their names, the journal that names them.
//!
//! A reader relies on it: whatever precedes a synced answer, or the end of the run, is there. What follows may
//! have been torn by a power cut, and is left out by [`Past`](super::Past).

use std::io;
use std::path::Path;

use code_commit_dir::Folder;
use code_commit_logging::{Journal, RunFolder};
use serde_json::Value;

use super::format::{JOURNAL, RecordError};
use super::texts::visit_stored;

/// What may not be on disk yet.
#[derive(Debug)]
pub(super) struct Unsynced {
    /// Also files: everything on their file system is synced then, which takes a disk no longer than one of them.
    has_files: bool,
    has_lines: bool,
    /// Its last line must be on disk before the next one is written.
    pub(super) is_awaited: bool,
}

impl Default for Unsynced {
    /// When a run begins or goes on.
    fn default() -> Self {
        Self {
            has_files: true,
            has_lines: true,
            is_awaited: false,
        }
    }
}

impl Unsynced {
    /// For a record whose file system was just synced.
    pub(super) fn nothing() -> Self {
        Self {
            has_files: false,
            has_lines: false,
            is_awaited: false,
        }
    }

    pub(super) fn add(&mut self, line: &Value) {
        self.has_lines = true;
        visit_stored(line, &mut |_| self.has_files = true);
    }

    /// Syncs it. After an error the next call tries all of it again.
    pub(super) fn sync(
        &mut self,
        folder: &RunFolder,
        journal: &Journal,
    ) -> Result<(), RecordError> {
        if self.has_files {
            everything(folder.path()).map_err(|source| folder.error("sync", JOURNAL, source))?;
        } else if self.has_lines {
            journal.sync()?;
        }
        *self = Self::nothing();
        Ok(())
    }
}

fn everything(path: &Path) -> io::Result<()> {
    let folder = Folder::open(path)?;
    folder.sync_all()?;
    if folder.is_fuse()? {
        // The folders above may be new.
        let above = path.ancestors().skip(1).map(Folder::open);
        let above = above.map_while(Result::ok);
        let is_in = |above: &Folder| above.id().0 == folder.id().0;
        above.take_while(is_in).try_for_each(|above| above.sync())?;
    }
    Ok(())
}
