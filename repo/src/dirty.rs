//! What is not committed in a work tree, as git itself says it, and the other repositories in it.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use code_commit_names::ours::STATE;

use crate::index::Submodule;
use crate::{Git, GitError, WorkTree};

/// What `git status` lists below the root, relative to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// What is not committed: staged, changed or untracked files, and submodules that have some. Sorted, spelled as on
    /// disk: names need not be valid UTF-8. Leaves out files that git ignores and the harness's own.
    pub dirty: Vec<PathBuf>,
    /// Folders that are the top of another repository: submodules, even if they are not checked out, and repositories
    /// that git neither tracks nor ignores.
    pub repositories: Vec<PathBuf>,
}

impl WorkTree {
    /// Asks git, and of each submodule a git that is pinned to it.
    pub fn status(&self, git: &Git) -> Result<Status, GitError> {
        let submodules = self.submodules()?;
        let mut status = self.listed(&submodules, git)?;
        for submodule in &submodules {
            if self.has_changes_in(submodule, git)? {
                status.dirty.push(submodule.path.clone());
            }
        }
        let dirty = &mut status.dirty;
        dirty.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        dirty.dedup();
        dirty.retain(|path| !path.starts_with(STATE));
        Ok(status)
    }

    /// What git tracks below the root and is not committed, relative to it. Takes less time than [`Self::status`]: git does
    /// not look for other files.
    pub fn changed(&self, git: &Git) -> Result<Vec<PathBuf>, GitError> {
        let changed = git.status("no")?.into_iter();
        let below = changed.filter_map(|one| {
            let path = self.relative(one.path.as_os_str().as_bytes())?;
            Some(path.to_owned())
        });
        Ok(below.collect())
    }

    fn listed(&self, submodules: &[Submodule], git: &Git) -> Result<Status, GitError> {
        let mut status = Status::default();
        let is_let_be = |path: &Path| {
            let ignored = |one: &Submodule| one.path == path && one.ignore == "all";
            submodules.iter().any(ignored)
        };
        for changed in git.status("all")? {
            let listed = changed.path.as_os_str().as_bytes();
            let Some(path) = self.relative(listed) else {
                continue;
            };
            // Without the slash at the end.
            let path: PathBuf = path.components().collect();
            // Of all folders, git lists only other repositories.
            if listed.ends_with(b"/") {
                status.repositories.push(path.clone());
            }
            if !(changed.is_unstaged && is_let_be(&path)) {
                status.dirty.push(path);
            }
        }
        let paths = submodules.iter().map(|submodule| submodule.path.clone());
        status.repositories.extend(paths);
        Ok(status)
    }

    /// Whether files in a submodule are uncommitted. Asks a git that is pinned to it: one that git started there would
    /// run the programs of its configuration.
    fn has_changes_in(&self, submodule: &Submodule, git: &Git) -> Result<bool, GitError> {
        let inside = self.root.join(&submodule.path);
        if matches!(&*submodule.ignore, "all" | "dirty")
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
        if submodule.ignore == "untracked" {
            return Ok(!git.status("no")?.is_empty());
        }
        Ok(!tree.status(&git)?.dirty.is_empty())
    }

    /// The [repositories](Status::repositories) of a status, and those in them, at any depth.
    pub fn repositories_below(&self, status: Status, git: &Git) -> Vec<PathBuf> {
        let mut all = status.repositories;
        for folder in all.clone() {
            // A repository that cannot be opened or scanned has none that git would enter.
            if let Ok(inner) = Self::at(&self.root.join(&folder))
                && inner.root == inner.top
                && inner.top != self.top
                && let Ok(submodules) = inner.submodules()
                && let git = git.at(&*inner.root)
                && let Ok(status) = inner.listed(&submodules, &git)
            {
                let below = inner.repositories_below(status, &git).into_iter();
                all.extend(below.map(|below| folder.join(below)));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::scratch::{self, Scratch};

    #[test]
    fn what_is_tracked_and_changed_is_listed_below_the_root() {
        let files = ["same", "below/staged", "below/gone", "below/changed"];
        let scratch = Scratch::with(&files.map(|path| (path, "one")));
        scratch.write("below/staged", "two");
        scratch.write("below/untracked", "two");
        scratch.git(&["add", "below/staged"]);
        scratch.write("below/changed", "two");
        std::fs::remove_file(scratch.path().join("below/gone")).unwrap();
        let git = scratch::git(scratch.path());
        let changed = |root: &Path| WorkTree::at(root).unwrap().changed(&git).unwrap();
        let all = ["below/changed", "below/gone", "below/staged"];
        assert_eq!(changed(scratch.path()), all.map(PathBuf::from));
        let below = ["changed", "gone", "staged"].map(PathBuf::from);
        assert_eq!(changed(&scratch.path().join("below")), below);
    }

    #[test]
    fn submodules_and_untracked_repositories_are_found_at_any_depth() {
        let (outer, inner) = (Scratch::new(), Scratch::with(&[("file", "x")]));
        outer.add_submodule(&inner, "sm");
        outer.add_submodule(&inner, "libs/other");
        outer.commit();
        outer.git(&["submodule", "--quiet", "deinit", "libs/other"]);
        outer.git(&["init", "-q", "vendor/lib"]);
        outer.git(&["init", "-q", "sm/deep"]);
        outer.write("vendor/lib/file", "x");
        outer.write("sm/deep/file", "x");
        let below = |folder: PathBuf| {
            let git = scratch::git(&folder);
            let tree = WorkTree::at(&folder).unwrap();
            tree.repositories_below(tree.status(&git).unwrap(), &git)
        };
        let mut all = below(outer.path().to_owned());
        all.sort();
        assert_eq!(
            all,
            ["libs/other", "sm", "sm/deep", "vendor/lib"].map(PathBuf::from)
        );
        assert_eq!(below(outer.path().join("libs")), [PathBuf::from("other")]);
    }
}
