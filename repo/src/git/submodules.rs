//! Submodules, which a rollback of the outer repository does not touch.

use std::path::{Path, PathBuf};

use super::{Aside, Git, GitError, Head};
use crate::WorkTree;
use crate::index::Submodule;

impl Git {
    /// The paths of the submodules in the index.
    pub fn submodules(&self) -> Result<Vec<PathBuf>, GitError> {
        let all = self.tree()?.submodules()?;
        Ok(all.into_iter().map(|submodule| submodule.path).collect())
    }

    /// Updates the index entries of these submodules: their current commit, or their removal. To
    /// add a submodule, git would start another git in it.
    pub(super) fn note_submodules(&self, paths: &[impl AsRef<Path>]) -> Result<(), GitError> {
        if paths.is_empty() {
            return Ok(());
        }
        self.run_on(&["update-index", "--remove", "-z", "--stdin"], paths)
            .map(drop)
    }

    /// Resets each checked-out submodule to the commit in the index.
    pub(super) fn roll_back_submodules(&self, aside: Aside<'_>) -> Result<(), GitError> {
        let around = self.tree()?;
        for Submodule { path, commit, .. } in around.submodules()? {
            let inside = self.folder().join(path);
            if is_submodule_of(&around, &inside.join(".git")) {
                let submodule = self.at(inside);
                let stays = submodule.commit_of("HEAD")?.as_deref() == Some(commit.as_str());
                let head = if stays {
                    submodule.head()?
                } else {
                    Head::Detached
                };
                submodule.roll_back(&head, &commit, aside)?;
            }
        }
        Ok(())
    }
}

/// Whether this `.git` belongs to a submodule: a file that points to where git keeps the submodule.
/// A command could have written something that leads git to foreign files, through symlinks
/// in place of an index or a log, or could have created such a folder. In a folder without a
/// `.git`, git would find the outer repository.
fn is_submodule_of(around: &WorkTree, dot_git: &Path) -> bool {
    if !dot_git
        .symlink_metadata()
        .is_ok_and(|found| found.is_file())
    {
        return false;
    }
    let leads_to = gix_discover::path::from_gitdir_file(dot_git)
        .ok()
        .and_then(|path| path.canonicalize().ok());
    // A linked work tree has its own.
    let kept = [around.common_dir(), around.git_dir()];
    let mut kept = kept
        .iter()
        .filter_map(|folder| folder.join("modules").canonicalize().ok());
    leads_to.is_some_and(|path| kept.any(|kept| path.starts_with(kept)))
}
