//! Commits a run that has passed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use code_commit_apply::PreImage;
use code_commit_repo::Git;

use code_commit_engine::{CommitAnswer, Committed, NotCommitted};

use crate::fault::Fault;
use crate::kept::{sha256_on_disk, undo_folders};
use crate::record::Record;

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
        message: &str,
    ) -> Result<CommitAnswer, Fault> {
        let name = record
            .folder()
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let last = format!("Run: {name}");
        let made = self.git.commit_since(self.since.as_deref(), &last);
        match made.map_err(Fault::Git)? {
            Some(commit) => Ok(committed(Some(commit))),
            None => commit(&self.git, root, record, &format!("{message}\n\n{last}\n")),
        }
    }
}

/// Commits only what the run of this record changed. If git refuses, the changes stay in place: they have
/// passed, and the user may commit them.
pub(crate) fn commit(
    git: &Git,
    root: &Path,
    record: &mut Record,
    message: &str,
) -> Result<CommitAnswer, Fault> {
    // After a power cut the commit is found again by what led to it.
    record.sync()?;
    let not_committed = |error: &dyn std::error::Error| {
        CommitAnswer::NotCommitted(NotCommitted {
            message: record.words(error),
        })
    };
    let paths = match changed(root, record.folder().path()) {
        Err(error @ (Fault::File { .. } | Fault::Undo(_))) => return Ok(not_committed(&error)),
        paths => paths?,
    };
    if paths.is_empty() {
        return Ok(committed(None));
    }
    match git.commit_paths(&paths, message, None) {
        Ok(commit) => Ok(committed(Some(commit))),
        Err(error) => Ok(not_committed(&error)),
    }
}

fn committed(commit: Option<String>) -> CommitAnswer {
    CommitAnswer::Committed(Committed {
        repository: None,
        message: None,
        commit,
    })
}

/// The files that differ from before the run, by path.
fn changed(root: &Path, run: &Path) -> Result<Vec<String>, Fault> {
    let images = code_commit_apply::pre_images(&undo_folders(run)?).map_err(Fault::Undo)?;
    let differs = |image: &PreImage| {
        let path = root.join(&image.path);
        let mode = fs::symlink_metadata(&path)
            .ok()
            .map(|found| found.permissions().mode());
        // Git knows no other bit of it.
        let is_program = |mode: Option<u32>| mode.is_some_and(|mode| mode & 0o100 != 0);
        sha256_on_disk(&path) != image.sha256 || is_program(mode) != is_program(image.mode)
    };
    let mut paths: Vec<String> = images
        .into_iter()
        .filter(differs)
        .map(|image| image.path)
        .collect();
    paths.sort();
    Ok(paths)
}
