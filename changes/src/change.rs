//! What stands at a path, and what became of it.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use code_commit_repo::OnDisk;
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};

/// What was at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The type and the permission bits.
    pub mode: u32,
    /// In bytes.
    pub len: u64,
    /// When the content was last modified, in seconds and nanoseconds.
    pub mtime: (i64, i64),
    /// When the content or the metadata last changed.
    pub ctime: (i64, i64),
    /// Device and inode.
    pub id: (u64, u64),
    /// User and group.
    pub owner: (u32, u32),
    /// Whether the captured rules ignore it: a key, a database.
    pub is_ignored: bool,
    /// Whether it is ignored and can be built again.
    pub is_product: bool,
}

impl Seen {
    /// What `stat` says.
    pub fn of(stat: &Stat) -> Self {
        Self {
            mode: stat.st_mode,
            len: u64::try_from(stat.st_size).unwrap_or(0),
            mtime: (stat.st_mtime, stat.st_mtime_nsec.try_into().unwrap_or(0)),
            ctime: (stat.st_ctime, stat.st_ctime_nsec.try_into().unwrap_or(0)),
            id: (stat.st_dev, stat.st_ino),
            owner: (stat.st_uid, stat.st_gid),
            is_ignored: false,
            is_product: false,
        }
    }

    /// Whether it is a file, a folder, a symlink or something else.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Whether the mode is that of a folder.
    pub fn is_folder(mode: u32) -> bool {
        FileType::from_raw_mode(mode).is_dir()
    }

    /// What stays the same when it is moved or linked.
    pub(crate) fn identity(&self) -> (u32, u64, (i64, i64), (u64, u64)) {
        (self.mode, self.len, self.mtime, self.id)
    }

    pub(crate) fn on_disk(&self) -> OnDisk {
        OnDisk {
            len: self.len,
            mtime: self.mtime,
            ctime: self.ctime,
            inode: self.id.1,
        }
    }

    /// Whether it is unchanged. Ignores the content of a folder.
    pub(crate) fn is_untouched(&self, other: &Seen) -> bool {
        self == other || (self.kind().is_dir() && self.mode == other.mode)
    }
}

/// A path, and what was and is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the root.
    pub path: PathBuf,
    /// What was there before.
    pub before: Option<Seen>,
    /// What is there after.
    pub after: Option<Seen>,
}

impl Change {
    /// Whether only what the rules ignore was and is there.
    pub fn is_ignored(&self) -> bool {
        let mut both = self.before.iter().chain(&self.after);
        both.all(|seen| seen.is_ignored)
    }

    /// Whether a folder was there.
    pub(crate) fn was_folder(&self) -> bool {
        self.before.is_some_and(|was| was.kind().is_dir())
    }

    /// Whether a folder is there.
    pub(crate) fn is_folder(&self) -> bool {
        self.after.is_some_and(|is| is.kind().is_dir())
    }

    /// Whether a folder was and is there, whose content is judged separately.
    pub(crate) fn has_content(&self) -> bool {
        self.was_folder() && self.is_folder()
    }

    /// Whether a folder is there that was not, and that counts.
    pub(crate) fn is_new_folder(&self) -> bool {
        self.is_folder() && !self.was_folder() && !self.is_ignored()
    }
}

/// Changes, sorted by path: a folder comes before its content. Whoever made them, they are judged and put back alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeSet(Vec<Change>);

impl ChangeSet {
    pub(crate) fn new(mut changes: Vec<Change>) -> Self {
        changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Self(changes)
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &Change> {
        self.0.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, path: &Path) -> Option<&Change> {
        let at = self.0.binary_search_by(|one| (*one.path).cmp(path)).ok()?;
        self.0.get(at)
    }

    /// Those below a folder.
    pub(crate) fn below(&self, folder: &Path) -> impl Iterator<Item = &Change> {
        let start = self.0.partition_point(|one| *one.path <= *folder);
        let from = self.0.get(start..).unwrap_or_default().iter();
        from.take_while(move |one| one.path.starts_with(folder))
    }

    pub(crate) fn retain(&mut self, stays: impl FnMut(&Change) -> bool) {
        self.0.retain(stays);
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Change> {
        self.0.iter_mut()
    }
}

/// Paths of which none is below another.
#[derive(Debug, Default)]
pub(crate) struct Tops(BTreeSet<PathBuf>);

impl Tops {
    /// Adds a path after all those above it.
    pub(crate) fn insert(&mut self, path: &Path) {
        if self.over(path).is_none() {
            self.0.insert(path.to_owned());
        }
    }

    /// The one that is at or above a path.
    pub(crate) fn over(&self, path: &Path) -> Option<&Path> {
        // Nothing else comes between a path and what is below it.
        let mut up_to = self
            .0
            .range::<Path, _>((Bound::Unbounded, Bound::Included(path)));
        up_to
            .next_back()
            .map(PathBuf::as_path)
            .filter(|top| path.starts_with(top))
    }

    /// Whether one is at or below a path.
    pub(crate) fn has_below(&self, path: &Path) -> bool {
        let mut from = self
            .0
            .range::<Path, _>((Bound::Included(path), Bound::Unbounded));
        from.next().is_some_and(|top| top.starts_with(path))
    }
}

impl<'p> FromIterator<&'p Path> for Tops {
    fn from_iter<I: IntoIterator<Item = &'p Path>>(paths: I) -> Self {
        let sorted: BTreeSet<&Path> = paths.into_iter().collect();
        let mut tops = Self::default();
        sorted.into_iter().for_each(|path| tops.insert(path));
        tops
    }
}
