//! Parts of the repository that are outside the run's folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::WorkTree;

/// What git reads of a repository (gitrepository-layout(5)).
const LAYOUT: [&str; 13] = [
    "HEAD",
    "config",
    "config.worktree",
    "hooks",
    "info",
    "logs",
    "modules",
    "objects",
    "packed-refs",
    "refs",
    "reftable",
    "shallow",
    "worktrees",
];

impl WorkTree {
    /// What git reads of this repository outside the root: for a folder below the top, the repository; for a
    /// linked work tree, what it shares with the others; for a submodule, its part of the enclosing
    /// repository.
    ///
    /// Empty unless the git directory points back to this tree: an archive may contain a `.git` file that
    /// points to any repository on this machine.
    pub fn git_elsewhere(&self) -> Vec<PathBuf> {
        let dot_git = self.top().join(".git");
        let (git_dir, common) = (self.git_dir().to_owned(), self.common_dir().to_owned());
        let names_us = if git_dir == common {
            git_dir == dot_git || self.is_set_up_for_us()
        } else {
            git_dir.parent() == Some(&common.join("worktrees"))
                && points_to(&git_dir.join("gitdir"), &dot_git)
        };
        let mut outside = if names_us {
            vec![dot_git, git_dir, common]
        } else {
            Vec::new()
        };
        outside.retain(|path| !path.starts_with(self.root()));
        outside.dedup();
        // The tree may be inside its bare repository, among other trees.
        let parts = |path: PathBuf| {
            if !self.root().starts_with(&path) {
                return vec![path];
            }
            LAYOUT
                .iter()
                .map(|name| path.join(name))
                .filter(|part| part.exists())
                .collect()
        };
        outside.into_iter().flat_map(parts).collect()
    }

    /// Where git keeps this repository below a root, relative to it. A `.git` may be a file or a symlink that leads to
    /// any folder of the tree.
    pub fn git_below(&self, root: &Path) -> Vec<PathBuf> {
        let folders = [self.git_dir(), self.common_dir()].into_iter();
        let below = folders.filter_map(|folder| folder.strip_prefix(root).ok());
        below.map(Path::to_owned).collect()
    }

    /// Whether `core.worktree` of a submodule's git directory points to us.
    fn is_set_up_for_us(&self) -> bool {
        let set = self.configured_top();
        set.and_then(|set| fs::canonicalize(set).ok()).as_deref() == Some(self.top())
    }
}

/// Whether a file contains exactly this path, with at most a line ending after it.
fn points_to(file: &Path, path: &Path) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    fs::canonicalize(text.trim_end_matches('\n')).is_ok_and(|there| there == path)
}
