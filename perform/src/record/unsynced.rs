//! The order in which a record gets to the disk: files, the folders with their names, the journal that names them.
//!
//! A reader relies on it: whatever precedes a synced answer, or the end of the run, is there. What follows may
//! have been torn by a power cut, and is left out by [`Past`](super::Past).

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

use code_commit_dir::Folder;
use code_commit_engine::Stored;
use code_commit_logging::{Journal, RunFolder};
use serde_json::Value;

use super::format::{JOURNAL, RecordError};
use super::texts::visit_stored;

/// More files than this are synced with everything else on their file system: a disk takes about as long for one
/// file.
const MOST_FILES: usize = 2;

/// What may not be on disk yet.
#[derive(Debug)]
pub(super) struct Unsynced {
    /// Also files and folders that the journal does not name, as when a run begins.
    all: bool,
    has_lines: bool,
    /// Its last line is an answer that was paid for.
    pub(super) is_paid: bool,
    files: BTreeSet<String>,
}

impl Default for Unsynced {
    /// When a run begins or goes on.
    fn default() -> Self {
        Self {
            all: true,
            has_lines: true,
            is_paid: false,
            files: BTreeSet::new(),
        }
    }
}

impl Unsynced {
    pub(super) fn add(&mut self, line: &Value) {
        self.has_lines = true;
        visit_stored(line, &mut |Stored { file, .. }| {
            self.files.insert(file);
        });
    }

    /// Syncs it. After an error the next call tries all of it again.
    pub(super) fn sync(
        &mut self,
        folder: &RunFolder,
        journal: &Journal,
    ) -> Result<(), RecordError> {
        if !self.has_lines {
            return Ok(());
        }
        let all = self.all || self.files.len() > MOST_FILES;
        if all {
            everything(folder.path())
        } else {
            files(folder.path(), &self.files)
        }
        .map_err(|source| folder.error("sync", JOURNAL, source))?;
        if !all {
            journal.sync()?;
        }
        *self = Self::nothing();
        Ok(())
    }

    /// Of a record whose file system was synced.
    pub(super) fn nothing() -> Self {
        Self {
            all: false,
            has_lines: false,
            is_paid: false,
            files: BTreeSet::new(),
        }
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

fn files(folder: &Path, files: &BTreeSet<String>) -> io::Result<()> {
    let mut folders = BTreeSet::new();
    for file in files {
        match File::open(folder.join(file)) {
            // A file that is gone makes the record unreadable anyway.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?.sync_all()?,
        }
        folders.extend(Path::new(file).ancestors().skip(1));
    }
    folders
        .into_iter()
        .try_for_each(|name| File::open(folder.join(name))?.sync_all())
}
