//! What is not committed in a work tree, as git itself says it, and facts from its index.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use code_commit_names::ours::STATE;
use gix::bstr::ByteSlice as _;
use gix::index::{Entry, State};
use gix::submodule::config::Ignore;

use crate::{Git, GitError, RepoError, Submodule, WorkTree};

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
    /// Files that changed [since](Asked::since), according to the index; later changes are
    /// [not committed](WorkTree::dirty_paths).
    pub since: Vec<PathBuf>,
    /// Files with one of the [beginnings](Asked::beginnings).
    pub tracked: Vec<PathBuf>,
}

impl WorkTree {
    /// The uncommitted files below the root, as `git status` lists them: staged, changed or untracked, and submodules
    /// that have some. Relative to the root, sorted, spelled as on disk: names need not be valid UTF-8. Leaves out
    /// files that git ignores and the harness's own.
    pub fn dirty_paths(&self, git: &Git) -> Result<Vec<PathBuf>, GitError> {
        let (mut paths, mut repositories) = (Vec::new(), Vec::new());
        let submodules = self.submodules_in_index()?;
        let is_let_be = |path: &Path| {
            let ignored = |one: &Submodule| one.path == path && one.ignore == Some(Ignore::All);
            submodules.iter().any(ignored)
        };
        for changed in git.status("all")? {
            let Some(path) = self.relative(changed.path.as_os_str().as_bytes().as_bstr()) else {
                continue;
            };
            // Of all folders, git lists only other repositories.
            let path: PathBuf = path.components().collect();
            if changed.path.as_os_str().as_bytes().ends_with(b"/") {
                repositories.push(path.clone());
            }
            if !(changed.is_unstaged && is_let_be(&path)) {
                paths.push(path);
            }
        }
        for submodule in submodules {
            if self.has_changes_in(&submodule, git)? {
                paths.push(submodule.path.clone());
            }
            repositories.push(submodule.path);
        }
        self.below.replace(Some(repositories));
        paths.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        paths.dedup();
        paths.retain(|path| !path.starts_with(STATE));
        Ok(paths)
    }

    /// Whether files in a submodule are uncommitted. Asks a git that is pinned to it: one that git started there would
    /// run the programs of its configuration.
    fn has_changes_in(&self, submodule: &Submodule, git: &Git) -> Result<bool, GitError> {
        let inside = self.root.join(&submodule.path);
        if matches!(submodule.ignore, Some(Ignore::All | Ignore::Dirty))
            || inside.join(".git").symlink_metadata().is_err()
        {
            return Ok(false);
        }
        let git = git.at(inside);
        let tree = git.tree()?;
        if tree.root() != tree.top() {
            // Its repository is damaged, so the one around it was found.
            return Ok(true);
        }
        if submodule.ignore == Some(Ignore::Untracked) {
            return Ok(!git.status("no")?.is_empty());
        }
        Ok(!tree.dirty_paths(&git)?.is_empty())
    }

    /// The requested facts about tracked files, in a single read of the index.
    pub fn look(&self, asked: &Asked<'_>) -> Result<Look, RepoError> {
        let index = self.index()?;
        Ok(Look {
            since: asked
                .since
                .map_or_else(Vec::new, |since| self.changed_since(since, &index)),
            tracked: self.beginning_with(asked.beginnings, &index),
        })
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
