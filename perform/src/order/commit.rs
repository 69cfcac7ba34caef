//! Commits an order that has passed.

use std::path::Path;

use repo::Git;

use engine::{CommitAnswer, Committed, NotCommitted};

use crate::fault::Fault;
use crate::kept::undo_folders;
use crate::record::Record;

/// Commits only what the run of this record changed. If git refuses, the changes stay in place: they have
/// passed, and the user may commit them.
pub(super) fn commit(
    git: &Git,
    root: &Path,
    record: &Record<'_>,
    message: &str,
) -> Result<CommitAnswer, Fault> {
    let committed = |commit| CommitAnswer::Committed(Committed { repository: None, message: None, commit });
    let not_committed = |error: &dyn std::error::Error| {
        CommitAnswer::NotCommitted(NotCommitted { message: record.words(error) })
    };
    let paths = match changed(root, record.folder().path()) {
        Err(error @ (Fault::File { .. } | Fault::Undo(_))) => return Ok(not_committed(&error)),
        paths => paths?,
    };
    if paths.is_empty() {
        return Ok(committed(None));
    }
    Ok(match git.commit_paths(&paths, message, None) {
        Ok(commit) => committed(Some(commit)),
        Err(error) => not_committed(&error),
    })
}

/// The files that differ from before the run, by path.
fn changed(root: &Path, run: &Path) -> Result<Vec<String>, Fault> {
    let images = apply::pre_images(&undo_folders(run)?).map_err(Fault::Undo)?;
    let now = |path: &str| {
        let file = dir::open_regular(&root.join(path)).ok().flatten();
        file.and_then(|mut file| logging::sha256_of(&mut file).ok())
    };
    let differing = images.into_iter().filter(|image| now(&image.path) != image.sha256);
    let mut paths: Vec<String> = differing.map(|image| image.path).collect();
    paths.sort();
    Ok(paths)
}
