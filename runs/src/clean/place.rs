//! The project whose runs are cleaned. Phases and specs need no repository.

use std::path::{Path, PathBuf};

use code_commit_apply::Lock;
use code_commit_names::ours::STATE;
use code_commit_repo::{OpenError, WorkTree};

use crate::exit::Failure;
use crate::host::Host;
use crate::lock;
use crate::place;
use crate::registry;

pub(super) struct Place {
    root: PathBuf,
    /// None where there is no repository.
    tree: Option<WorkTree>,
    state: PathBuf,
}

impl Place {
    /// The current folder; an error if there is neither a repository nor state of the harness.
    pub(super) fn here(host: Host<'_>) -> Result<Self, Failure> {
        let root = place::root(host)?;
        let is_no_repository = matches!(WorkTree::at(&root), Err(OpenError::NotARepository { .. }));
        if is_no_repository && root.join(STATE).is_dir() {
            let state = code_commit_repo::state_dir_in_tree(&root)?;
            return Ok(Self { root, tree: None, state });
        }
        let tree = place::work_tree(&root)?;
        let state = place::state(&tree)?;
        Ok(Self { root: tree.root().to_owned(), tree: Some(tree), state })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn tree(&self) -> Option<&WorkTree> {
        self.tree.as_ref()
    }

    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    pub(super) fn lock(&self, host: Host<'_>) -> Result<Lock, Failure> {
        match &self.tree {
            Some(tree) => lock::take(tree, host),
            None => lock::take_in(&self.state, host),
        }
    }

    /// Removes a run from the list of those that can be undone.
    pub(super) fn forget(&self, run: &Path) -> Result<(), Failure> {
        self.tree.as_ref().map_or(Ok(()), |tree| registry::forget(tree, run))
    }
}
