//! Commits a run that has passed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use code_commit_apply::PreImage;
use code_commit_repo::Git;

use code_commit_changes::ChangeEngine;
use code_commit_engine::{CommitAnswer, Committed, NotCommitted};

use crate::fault::Fault;
use crate::record::Record;
use crate::sets::{folders_of_replies, sha256_on_disk, undo_folders};

/// How the runs of a commit loop are committed.
#[derive(Debug, Clone)]
pub struct Commits {
    /// For the root of the run, which may be a folder of its work tree.
    pub git: Git,
    /// The commit that was checked out when the run began, if there was one.
    pub since: Option<String>,
}

impl Commits {
    /// Commits what the run of this record changed, unless it did so before it was killed. The message's last line names
    /// the run.
    pub fn commit(
        &self,
        root: &Path,
        record: &mut Record,
        account: &ChangeEngine,
        message: &str,
    ) -> Result<CommitAnswer, Fault> {
        let name = record
            .folder()
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let message = format!("{message}\n\nRun: {name}\n");
        match self.made(&message)? {
            Some(made) => Ok(made),
            None => commit(&self.git, root, record, account, &message),
        }
    }

    /// The commit that the run made before it was killed, by the last line of its message.
    pub(crate) fn made(&self, message: &str) -> Result<Option<CommitAnswer>, Fault> {
        let last = message.lines().next_back().unwrap_or_default();
        let made = self.git.commit_since(self.since.as_deref(), last);
        Ok(made
            .map_err(Fault::Git)?
            .map(|commit| committed(Some(commit))))
    }
}

/// Commits only what the run of this record changed, and only what was built: not what somebody has saved over it
/// since. If nothing is committed, the changes stay in place: they have passed, and the user may commit them.
pub(crate) fn commit(
    git: &Git,
    root: &Path,
    record: &mut Record,
    account: &ChangeEngine,
    message: &str,
) -> Result<CommitAnswer, Fault> {
    // After a power cut the commit is found again by what led to it.
    record.sync()?;
    let not_committed = |error: &dyn std::error::Error| {
        CommitAnswer::NotCommitted(NotCommitted {
            message: record.words(error),
            changed: None,
        })
    };
    let files = match changed(record.folder().path()) {
        Err(error @ (Fault::File { .. } | Fault::Undo(_))) => return Ok(not_committed(&error)),
        files => files?,
    };
    if files.is_empty() {
        return Ok(committed(None));
    }
    let on_disk = |file: &PreImage| OnDisk::of(&root.join(&file.path));
    let built: Vec<OnDisk> = files.iter().map(on_disk).collect();
    let mut pairs = files.iter().zip(&built);
    if let Some((file, _)) = pairs.find(|(file, now)| !now.is_as_left(file)) {
        return Ok(not_built(&file.path));
    }
    if let Some(path) = changed_by_whomever(record.folder().path(), account)? {
        return Ok(not_built(&path));
    }
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let commit = match git.commit_paths(&paths, message, None) {
        Err(error) => return Ok(not_committed(&error)),
        Ok(commit) => commit,
    };
    // Git has read the files once more: somebody may have saved one of them just before.
    let mut pairs = files.iter().zip(&built);
    if let Some((file, _)) = pairs.find(|(file, then)| on_disk(file) != **then) {
        git.take_back(&commit).map_err(Fault::Git)?;
        return Ok(not_built(&file.path));
    }
    Ok(committed(Some(commit)))
}

fn committed(commit: Option<String>) -> CommitAnswer {
    CommitAnswer::Committed(Committed {
        repository: None,
        message: None,
        commit,
    })
}

fn not_built(path: &str) -> CommitAnswer {
    CommitAnswer::NotCommitted(NotCommitted {
        message: format!("`{path}` changed while the build ran or after it"),
        changed: Some(path.to_owned()),
    })
}

/// A file that a commit reads.
#[derive(PartialEq)]
struct OnDisk {
    sha256: Option<String>,
    is_program: bool,
    /// Tells a file that was saved and saved back.
    ctime: Option<(i64, i64)>,
}

impl OnDisk {
    fn of(path: &Path) -> Self {
        let found = fs::symlink_metadata(path).ok();
        Self {
            sha256: sha256_on_disk(path),
            is_program: is_program(found.as_ref().map(fs::Metadata::mode)),
            ctime: found.map(|found| (found.ctime(), found.ctime_nsec())),
        }
    }

    fn is_as_left(&self, file: &PreImage) -> bool {
        self.sha256 == file.left_as && self.is_program == is_program(file.left_mode)
    }
}

/// Git knows no other bit of a mode.
fn is_program(mode: Option<u32>) -> bool {
    mode.is_some_and(|mode| mode & 0o100 != 0)
}

/// The files that the run left differently from before, by path.
fn changed(run: &Path) -> Result<Vec<PreImage>, Fault> {
    let mut files = code_commit_apply::pre_images(&undo_folders(run)?).map_err(Fault::Undo)?;
    files.retain(|file| {
        file.left_as != file.sha256 || is_program(file.left_mode) != is_program(file.mode)
    });
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// A file of a reply that changed during the last build. Without a view of the tree nothing tells the build from a
/// person who saves.
fn changed_by_whomever(run: &Path, account: &ChangeEngine) -> Result<Option<String>, Fault> {
    let (replies, mut all) = (folders_of_replies(run)?, undo_folders(run)?);
    let last = all.pop().filter(|last| !replies.contains(last));
    let Some(last) = last.filter(|_| !account.has_overlay()) else {
        return Ok(None);
    };
    let written = code_commit_apply::hashes_after(&replies).map_err(Fault::Undo)?;
    let during = code_commit_apply::hashes_after(&[last]).map_err(Fault::Undo)?;
    Ok(during.into_keys().find(|path| written.contains_key(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_its_owner_may_execute_is_a_program() {
        let modes = [None, Some(0o644), Some(0o655), Some(0o100), Some(0o755)];
        assert_eq!(modes.map(is_program), [false, false, false, true, true]);
    }
}
