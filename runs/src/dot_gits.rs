//! What leads git into a repository.

use std::path::{Path, PathBuf};

use code_commit_repo::WorkTree;

pub(crate) const DOT_GIT: &str = ".git";

/// Each protected file is a mount, which takes time. The seal covers the rest.
pub(crate) const MOST_HELD: usize = 500;

/// The `.git` of every repository in the project, relative to the root, and the folder to which it leads. Its
/// configuration names programs that the user's next `git status` runs, so no command may change one, or create one
/// where a submodule is not checked out.
pub(crate) fn of(tree: &WorkTree, repositories: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = tree.git_below(tree.root());
    for folder in repositories {
        let inner = WorkTree::at(&tree.root().join(folder));
        all.extend(inner.iter().flat_map(|inner| inner.git_below(tree.root())));
        all.push(folder.join(DOT_GIT));
    }
    // Every sandbox protects the project's own.
    all.retain(|path| !path.starts_with(DOT_GIT));
    all
}

/// What a sandbox around agents protects of them: those that exist, and, for submodules that are not checked
/// out, the folder, in which git tracks nothing.
pub(crate) fn held(root: &Path, dot_gits: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let there = |path: &Path| path.symlink_metadata().is_ok();
    let held = dot_gits
        .iter()
        .map(|path| root.join(path))
        .filter_map(move |path| {
            if there(&path) {
                Some(path)
            } else {
                path.parent()
                    .filter(|folder| there(folder))
                    .map(Path::to_owned)
            }
        });
    held.take(MOST_HELD)
}
