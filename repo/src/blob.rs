//! Files as a commit has them.

use gix::bstr::ByteSlice as _;

use crate::{RepoError, WorkTree};

impl WorkTree {
    /// The bytes of a file in a commit, by its path from the top; `None` if the commit has no such file, or it is
    /// not in this repository.
    ///
    /// # Errors
    ///
    /// Fails if git's objects cannot be read.
    pub fn blob(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>, RepoError> {
        let Some(commit) = self.commit(commit) else { return Ok(None) };
        let entry = commit.tree().and_then(|tree| tree.lookup_entry_by_path(path));
        let entry = entry.map_err(|e| self.git_error("read a commit", &e))?;
        let object = entry.filter(|entry| entry.mode().is_blob()).map(|entry| entry.object());
        let object = object.transpose().map_err(|e| self.git_error("read a file of a commit", &e))?;
        Ok(object.map(|object| object.detach().data))
    }

    /// When a commit was written, in seconds since 1970, and the first line of its message: what a rebase keeps.
    /// `None` if it is not in this repository.
    pub fn written(&self, commit: &str) -> Option<(i64, String)> {
        let commit = self.commit(commit)?;
        let (time, message) = (commit.author().ok()?.time().ok()?, commit.message_raw().ok()?);
        let summary = message.lines().next().unwrap_or_default().to_str_lossy().into_owned();
        Some((time.seconds, summary))
    }

    fn commit(&self, id: &str) -> Option<gix::Commit<'_>> {
        let id = gix::ObjectId::from_hex(id.as_bytes()).ok()?;
        self.repository().find_object(id).ok()?.try_into_commit().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::scratch::Scratch;

    #[test]
    fn a_file_of_a_commit_is_read_as_it_was() {
        let scratch = Scratch::new();
        scratch.write("a/b.txt", "one\n");
        scratch.commit();
        scratch.write("a/b.txt", "two\n");
        let tree = WorkTree::at(scratch.path()).unwrap();
        let head = tree.head().unwrap().unwrap();
        assert_eq!(tree.blob(&head, "a/b.txt").unwrap().as_deref(), Some(&b"one\n"[..]));
        assert_eq!(tree.blob(&head, "a").unwrap(), None);
        assert_eq!(tree.blob(&head, "c").unwrap(), None);
        assert_eq!(tree.blob(&"7".repeat(40), "a/b.txt").unwrap(), None);
        assert_eq!(tree.written(&head).unwrap().1, "c");
        assert_eq!(tree.written("no commit"), None);
    }
}
