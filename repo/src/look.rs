//! What is not committed in a work tree, and further facts from the same read of the index.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use code_commit_names::ours::STATE;
use gix::bstr::{BString, ByteSlice as _};
use gix::index::{Entry, State};

use crate::{RepoError, WorkTree, dirty};

/// What to report about tracked files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// Files that changed after this time.
    pub since: Option<SystemTime>,
    /// Files whose path relative to the root begins with one of these.
    pub beginnings: &'a [String],
}

/// The result of [`WorkTree::look`]; paths are relative to the root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// The uncommitted files, as [`WorkTree::dirty_paths`] gives them.
    pub dirty: Vec<PathBuf>,
    /// Files that changed [since](Asked::since), according to the index; later changes are in
    /// `dirty`.
    pub since: Vec<PathBuf>,
    /// Files with one of the [beginnings](Asked::beginnings).
    pub tracked: Vec<PathBuf>,
}

impl WorkTree {
    /// The uncommitted files below the root: staged, changed or untracked, relative to the root,
    /// sorted. Leaves out files that git ignores and the harness's own.
    pub fn dirty(&self) -> Result<Vec<String>, RepoError> {
        Ok(self
            .dirty_paths()?
            .iter()
            .map(|path| path.display().to_string())
            .collect())
    }

    /// The uncommitted files, spelled as on disk: names need not be valid UTF-8.
    pub fn dirty_paths(&self) -> Result<Vec<PathBuf>, RepoError> {
        Ok(self.look(&Asked::default())?.dirty)
    }

    /// The uncommitted files and the requested facts about tracked files, in a single read of the
    /// index.
    pub fn look(&self, asked: &Asked<'_>) -> Result<Look, RepoError> {
        self.has_readable_references()?;
        let mut look = Look::default();
        let seen = dirty::look(self.repository(), |index| {
            look.since = asked
                .since
                .map_or_else(Vec::new, |since| self.changed_since(since, index));
            look.tracked = self.beginning_with(asked.beginnings, index);
        });
        let seen = seen.map_err(|e| self.git_error("compare the work tree", &e))?;
        let relative = |path: &BString| self.relative(path.as_bstr());
        self.below.replace(Some(
            seen.repositories.iter().filter_map(relative).collect(),
        ));
        look.dirty = seen.paths.iter().filter_map(relative).collect();
        look.dirty
            .sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        look.dirty.dedup();
        look.dirty.retain(|path| !path.starts_with(STATE));
        Ok(look)
    }

    fn changed_since(&self, since: SystemTime, index: &State) -> Vec<PathBuf> {
        let Ok(since) = since.duration_since(SystemTime::UNIX_EPOCH) else {
            return Vec::new();
        };
        let younger = index
            .entries()
            .iter()
            .filter(|entry| modified(entry) > since);
        younger
            .filter_map(|entry| self.relative(entry.path(index)))
            .collect()
    }
}

/// The time since 1970.
fn modified(entry: &Entry) -> Duration {
    let time = entry.stat.mtime;
    Duration::from_secs(time.secs.into()) + Duration::from_nanos(time.nsecs.into())
}
