//! What of a work tree is not committed, and what its index tells beside.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use gix::bstr::{BString, ByteSlice as _};
use gix::index::{Entry, State};
use names::ours::STATE;

use crate::{RepoError, WorkTree, dirty};

/// What a look shall tell of the files that git tracks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// Those that were last changed after this moment.
    pub since: Option<SystemTime>,
    /// Those whose path from the root begins with one of these.
    pub beginnings: &'a [String],
}

/// What [`WorkTree::look`] has seen; paths are relative to the root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// As [`WorkTree::dirty_paths`] has it.
    pub dirty: Vec<PathBuf>,
    /// What was changed [since](Asked::since), as far as git noted it when it last wrote its index; later changes are `dirty`.
    pub since: Vec<PathBuf>,
    /// What has one of the [beginnings](Asked::beginnings).
    pub tracked: Vec<PathBuf>,
}

impl WorkTree {
    /// What lies below the root and is not committed: staged, changed or untracked files, relative to the root, sorted. Files that
    /// git ignores and the harness's own are left out.
    pub fn dirty(&self) -> Result<Vec<String>, RepoError> {
        Ok(self.dirty_paths()?.iter().map(|path| path.display().to_string()).collect())
    }

    /// The same as they are spelled on disk: names need not be UTF-8.
    pub fn dirty_paths(&self) -> Result<Vec<PathBuf>, RepoError> {
        Ok(self.look(&Asked::default())?.dirty)
    }

    /// The same, and by the same reading of the index what is asked of the files that git tracks.
    pub fn look(&self, asked: &Asked<'_>) -> Result<Look, RepoError> {
        self.has_readable_references()?;
        let mut look = Look::default();
        let seen = dirty::look(self.repository(), |index| {
            look.since = asked.since.map_or_else(Vec::new, |since| self.changed_since(since, index));
            look.tracked = self.beginning_with(asked.beginnings, index);
        });
        let seen = seen.map_err(|e| self.git_error("compare the work tree", &e))?;
        let relative = |path: &BString| self.relative(path.as_bstr());
        self.below.replace(Some(seen.repositories.iter().filter_map(relative).collect()));
        look.dirty = seen.paths.iter().filter_map(relative).collect();
        look.dirty.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        look.dirty.dedup();
        look.dirty.retain(|path| !path.starts_with(STATE));
        Ok(look)
    }

    fn changed_since(&self, since: SystemTime, index: &State) -> Vec<PathBuf> {
        let Ok(since) = since.duration_since(SystemTime::UNIX_EPOCH) else { return Vec::new() };
        let younger = index.entries().iter().filter(|entry| modified(entry) > since);
        younger.filter_map(|entry| self.relative(entry.path(index))).collect()
    }
}

/// Since 1970.
fn modified(entry: &Entry) -> Duration {
    let time = entry.stat.mtime;
    Duration::from_secs(time.secs.into()) + Duration::from_nanos(time.nsecs.into())
}
