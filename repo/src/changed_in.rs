//! What a commit changed, with the content before and after.

use std::path::PathBuf;

use gix::diff::tree::recorder::Change;
use gix::diff::tree::{Recorder, State};
use gix::objs::TreeRefIter;
use gix::objs::tree::{EntryKind, EntryMode};
use gix::{ObjectId, bstr::BString};

use crate::{RepoError, WorkTree};

/// A regular file that a commit changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedIn {
    /// Relative to the root.
    pub path: PathBuf,
    /// Its content in the parent; `None` if it was not there.
    pub before: Option<Vec<u8>>,
    /// Its content in the commit; `None` if it was removed.
    pub after: Option<Vec<u8>>,
    /// Its mode in the parent.
    pub before_mode: Option<u32>,
    /// Its mode in the commit.
    pub after_mode: Option<u32>,
}

/// Larger contents are not read: callers compare lines.
const LARGEST: u64 = 4 << 20;

impl WorkTree {
    /// The regular files below the root that `commit` (in hex) changed against its first parent, by path. Files of more
    /// than 4 MiB are left out.
    pub fn changed_in(&self, commit: &str) -> Result<Vec<ChangedIn>, RepoError> {
        self.changes(commit)
            .map_err(|error| self.git_error("read a commit", &error))
    }

    fn changes(&self, commit: &str) -> Result<Vec<ChangedIn>, gix::Error> {
        let repository = &self.repository;
        let id = ObjectId::from_hex(commit.as_bytes()).map_err(gix::Error::from_error)?;
        let commit = repository.find_commit(id)?;
        let parent = commit
            .parent_ids()
            .next()
            .map(|parent| repository.find_commit(parent.detach())?.tree());
        let (old, new) = (parent.transpose()?, commit.tree()?);
        let empty = repository.empty_tree();
        let mut changes = Recorder::default();
        gix::diff::tree(
            TreeRefIter::from_bytes(&old.as_ref().unwrap_or(&empty).data, new.id.kind()),
            TreeRefIter::from_bytes(&new.data, new.id.kind()),
            State::default(),
            repository,
            &mut changes,
        )
        .map_err(gix::Error::from_error)?;
        let mut found = Vec::new();
        for change in changes.records {
            let (location, before, after) = sides(change);
            let mode = |side: Side| side.map(|(mode, _)| u32::from(mode.value()));
            let (before_mode, after_mode) = (mode(before), mode(after));
            let Some(path) = self.relative(&location) else {
                continue;
            };
            if let (Some(before), Some(after)) = (self.content(before)?, self.content(after)?) {
                found.push(ChangedIn {
                    path: path.to_owned(),
                    before,
                    after,
                    before_mode,
                    after_mode,
                });
            }
        }
        found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        found.retain(|file| file.before != file.after || file.before_mode != file.after_mode);
        Ok(found)
    }

    /// The content of one side; `Some(None)` for none, `None` if it is not read.
    #[expect(
        clippy::option_option,
        reason = "missing, and not to be read, are two things"
    )]
    fn content(&self, side: Side) -> Result<Option<Option<Vec<u8>>>, gix::Error> {
        let Some((mode, id)) = side else {
            return Ok(Some(None));
        };
        if !matches!(mode.kind(), EntryKind::Blob | EntryKind::BlobExecutable)
            || self.repository.find_header(id)?.size() > LARGEST
        {
            return Ok(None);
        }
        Ok(Some(Some(self.repository.find_object(id)?.data.clone())))
    }
}

type Side = Option<(EntryMode, ObjectId)>;

fn sides(change: Change) -> (BString, Side, Side) {
    match change {
        Change::Addition {
            path,
            entry_mode,
            oid,
            ..
        } => (path, None, Some((entry_mode, oid))),
        Change::Deletion {
            path,
            entry_mode,
            oid,
            ..
        } => (path, Some((entry_mode, oid)), None),
        Change::Modification {
            path,
            previous_entry_mode,
            previous_oid,
            entry_mode,
            oid,
        } => (
            path,
            Some((previous_entry_mode, previous_oid)),
            Some((entry_mode, oid)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::tests::scratch::Scratch;

    /// `PATH OLD NEW` of each file.
    fn changed(tree: &WorkTree, commit: &str) -> Vec<String> {
        let text = |side: Option<Vec<u8>>| {
            side.map_or("-".to_owned(), |bytes| String::from_utf8(bytes).unwrap())
        };
        let files = tree.changed_in(commit).unwrap().into_iter();
        files
            .map(|file| {
                format!(
                    "{} {} {}",
                    file.path.display(),
                    text(file.before),
                    text(file.after)
                )
            })
            .collect()
    }

    #[test]
    fn a_commit_is_read_with_the_content_before_and_after() {
        let scratch = Scratch::new();
        for (path, text) in [("kept", "k"), ("sub/changed", "old"), ("gone", "g")] {
            scratch.write(path, text);
        }
        scratch.commit();
        let tree = WorkTree::at(scratch.path()).unwrap();
        let first = tree.head().unwrap().unwrap();
        assert_eq!(
            changed(&tree, &first),
            ["gone - g", "kept - k", "sub/changed - old"]
        );
        scratch.write("sub/changed", "new");
        scratch.write("sub/added", "a");
        std::fs::remove_file(scratch.path().join("gone")).unwrap();
        std::os::unix::fs::symlink("kept", scratch.path().join("link")).unwrap();
        scratch.commit();
        let second = tree.head().unwrap().unwrap();
        assert_eq!(
            changed(&tree, &second),
            ["gone g -", "sub/added - a", "sub/changed old new"]
        );
        let program = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(scratch.path().join("kept"), program).unwrap();
        scratch.commit();
        let third = tree.changed_in(&tree.head().unwrap().unwrap()).unwrap();
        let modes = third.iter().map(|file| (file.before_mode, file.after_mode));
        assert_eq!(
            modes.collect::<Vec<_>>(),
            [(Some(0o100_644), Some(0o100_755))]
        );
        let below = WorkTree::at(&scratch.path().join("sub")).unwrap();
        assert_eq!(changed(&below, &second), ["added - a", "changed old new"]);
        assert!(tree.changed_in("no commit").is_err());
    }
}
