//! Copies of files before a turn. Files that are unchanged since an earlier turn are not copied again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::agents::snapshot::tree::{Found, Stamp, Tree};
use code_commit_dir::reach;

/// The copies of one executor, removed with it unless protected files are still to be restored.
#[derive(Debug)]
pub struct Kept {
    root: PathBuf,
    folder: Option<PathBuf>,
    files: BTreeMap<String, Stamp>,
    /// Whether a turn has begun and what it may not touch is not restored yet.
    is_needed: bool,
    /// Seconds since 1970.
    pub(super) clock: fn() -> i64,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            root: PathBuf::new(),
            folder: None,
            files: BTreeMap::new(),
            is_needed: false,
            clock: now,
        }
    }
}

/// What a folder held before a turn, stored beside the copies until what the turn may not touch is restored:
/// a resumed run can still restore it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Noted<T, K> {
    pub(super) tree: T,
    /// Files known to git.
    pub(super) known: K,
}

/// The note beside the copies in `folder`; `None` if no turn was cut off.
pub(super) fn noted(folder: &Path) -> io::Result<Option<Noted<Tree, Option<BTreeSet<String>>>>> {
    match fs::read(note_of(folder)) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn note_of(folder: &Path) -> PathBuf {
    folder.with_extension("json")
}

impl Kept {
    /// The files of a folder, and the second before which every change is in the list.
    pub(super) fn look(&self, root: &Path, skip: &[String]) -> io::Result<(Tree, i64)> {
        let since = (self.clock)();
        Ok((Tree::whole(root, skip)?, since))
    }

    /// Copies those files of `tree`, listed at second `since`, that are `wanted` and not already kept in this
    /// state.
    pub(super) fn keep(
        &mut self,
        root: &Path,
        folder: &Path,
        (tree, since): (&Tree, i64),
        wanted: impl Fn(&str, &Found) -> bool,
    ) -> io::Result<()> {
        if self.folder.as_deref() != Some(folder) || self.root != root {
            self.forget()?;
            // Left by a killed run.
            forget(folder)?;
            (self.folder, self.root) = (Some(folder.to_owned()), root.to_owned());
        }
        self.files.retain(|path, stamp| {
            tree.files
                .get(path)
                .is_some_and(|found| found.stamp == *stamp)
        });
        for (path, found) in tree
            .files
            .iter()
            .filter(|(path, found)| wanted(path, found))
        {
            if self.files.contains_key(path) {
                continue;
            }
            reach::put(root, folder, &found.place.0)?;
            // A later change in the same second may leave the same time, so such a file is copied again next
            // time.
            if found.stamp.is_older_than(since) {
                self.files.insert(path.clone(), found.stamp);
            }
        }
        Ok(())
    }

    /// From now on the copies are needed, even if this process dies.
    pub(super) fn hold(
        &mut self,
        note: &Noted<&Tree, &Option<BTreeSet<String>>>,
    ) -> io::Result<()> {
        if let Some(folder) = &self.folder {
            // Not synced: a power cut may lose the copies as well.
            let note = serde_json::to_vec(note)?;
            code_commit_dir::replace_with(&note_of(folder), |file| file.write_all(&note))?;
            self.is_needed = true;
        }
        Ok(())
    }

    /// Everything is as it was.
    pub(super) fn release(&mut self) {
        self.is_needed = false;
        if let Some(folder) = &self.folder {
            // A leftover note is only read by a run that continues in the middle of this turn.
            let _ = code_commit_dir::remove(&note_of(folder));
        }
    }

    fn forget(&mut self) -> io::Result<()> {
        self.files.clear();
        self.folder.take().map_or(Ok(()), |folder| forget(&folder))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if !self.is_needed {
            // Leftovers are harmless: the next run in this folder removes them.
            let _ = self.forget();
        }
    }
}

/// Removes the copies and the note beside them.
pub fn forget(folder: &Path) -> io::Result<()> {
    code_commit_dir::remove(&note_of(folder))?;
    match (folder.parent(), folder.file_name()) {
        (Some(above), Some(name)) if above.is_dir() => {
            reach::remove(&reach::root(above, reach::CHANGE)?, name)
        }
        _ => Ok(()),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "file systems stamp their files by this clock"
)]
fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
