//! Submodules, which no reset and no clean of the repository around them touches.

use super::{Git, GitError, Head};

/// The mode of a submodule in the index.
const GITLINK: &str = "160000 ";

impl Git {
    /// Puts each submodule that is checked out back to the commit that the index names.
    pub(super) fn roll_back_submodules(&self) -> Result<(), GitError> {
        let staged = self.run(&["ls-files", "--stage", "-z"])?;
        for entry in staged.split('\0').filter_map(|entry| entry.strip_prefix(GITLINK)) {
            let Some((id, path)) = entry.split_once('\t') else { continue };
            let (commit, inside) = (id.split(' ').next().unwrap_or_default(), self.top().join(path));
            // In an empty folder git would find the repository around it.
            if inside.join(".git").symlink_metadata().is_ok() {
                let submodule = self.at(inside);
                let stays = submodule.commit_of("HEAD")?.as_deref() == Some(commit);
                let head = if stays { submodule.head()? } else { Head::Detached };
                submodule.roll_back(&head, commit)?;
            }
        }
        Ok(())
    }
}
