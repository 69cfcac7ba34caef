//! The work tree of a folder, and the harness's state for it.

use std::path::{Path, PathBuf};

use code_commit_repo::{OpenError, WorkTree};

use crate::exit::Failure;

const ASK_GIT: &str = "run git status there";

/// The work tree of `folder`, or an error.
pub fn work_tree(folder: &Path) -> Result<WorkTree, Failure> {
    WorkTree::at(folder).map_err(|error| {
        let help = if !folder.is_dir() {
            "name a folder that exists".to_owned()
        } else if matches!(error, OpenError::NotARepository { .. }) {
            "run code-commit init here, or change to the project's folder".to_owned()
        } else if matches!(error, OpenError::Bare { .. }) {
            "run it in a clone that has files".to_owned()
        } else if let OpenError::ForeignOwner { top, .. } = &error {
            format!(
                "if you trust it: git config --global --add safe.directory {}",
                top.display()
            )
        } else {
            ASK_GIT.to_owned()
        };
        Failure::refused(error, help)
    })
}

/// The harness's own folder of a work tree.
pub fn state(tree: &WorkTree) -> Result<PathBuf, Failure> {
    Ok(tree.state_dir()?)
}

/// Whether that folder is part of the tree, rather than of git's folder or another place.
pub(crate) fn is_in_tree(state: &Path, tree: &WorkTree) -> bool {
    state == tree.root().join(code_commit_names::ours::STATE)
}

/// The work tree of a folder that need not be in one. An error if that cannot be told: state and record would be looked
/// for in another place.
pub(crate) fn work_tree_if_any(folder: &Path) -> Result<Option<WorkTree>, Failure> {
    match WorkTree::at(folder) {
        Ok(tree) => Ok(Some(tree)),
        Err(error @ OpenError::Unreadable { .. }) => Err(Failure::refused(error, ASK_GIT)),
        Err(_) => Ok(None),
    }
}

/// The harness's own folder of a folder that need not be in a work tree.
pub(crate) fn state_of(root: &Path) -> Result<PathBuf, Failure> {
    Ok(match work_tree_if_any(root)? {
        Some(tree) => tree.state_dir(),
        None => code_commit_repo::state_dir_in_tree(root),
    }?)
}
