//! Submodules, which no reset and no clean of the repository around them touches.

use super::{Git, GitError, Head};

/// The mode of a submodule in the index.
const GITLINK: &str = "160000 ";

impl Git {
    /// The paths of the submodules that the index names.
    pub fn submodules(&self) -> Result<Vec<String>, GitError> {
        Ok(self.gitlinks()?.into_iter().map(|(_, path)| path).collect())
    }

    /// Enters into the index at which commit these submodules are, or that they are gone. To add one, git would start another git in it.
    pub(super) fn note_submodules<'p>(
        &self,
        paths: impl Iterator<Item = &'p String>,
    ) -> Result<(), GitError> {
        let mut note = vec!["update-index", "--remove", "--"];
        let words = note.len();
        note.extend(paths.map(String::as_str));
        if note.len() == words { Ok(()) } else { self.run(&note).map(drop) }
    }

    /// Puts each submodule that is checked out back to the commit that the index names.
    pub(super) fn roll_back_submodules(&self) -> Result<(), GitError> {
        for (commit, path) in self.gitlinks()? {
            let inside = self.top().join(path);
            // In an empty folder git would find the repository around it.
            if inside.join(".git").symlink_metadata().is_ok() {
                let submodule = self.at(inside);
                let stays = submodule.commit_of("HEAD")?.as_deref() == Some(commit.as_str());
                let head = if stays { submodule.head()? } else { Head::Detached };
                submodule.roll_back(&head, &commit)?;
            }
        }
        Ok(())
    }

    /// The commit and the path of each submodule in the index.
    fn gitlinks(&self) -> Result<Vec<(String, String)>, GitError> {
        let staged = self.run(&["ls-files", "--stage", "-z"])?;
        let links = staged.split('\0').filter_map(|entry| entry.strip_prefix(GITLINK)?.split_once('\t'));
        let commit = |id: &str| id.split(' ').next().unwrap_or_default().to_owned();
        Ok(links.map(|(id, path)| (commit(id), path.to_owned())).collect())
    }
}
