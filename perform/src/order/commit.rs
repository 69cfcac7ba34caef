//! The commit of an order that has passed.

use std::path::Path;

use repo::Git;

use crate::executor::Fault;
use crate::executor::ask::with_sources;
use crate::kept::undo_folders;
use crate::order::OrderFact;

/// Commits what the run in this folder has changed, and nothing else. Where git refuses, the changes stay in place: they have passed, and
/// a person may commit them.
pub(super) fn commit(git: &Git, root: &Path, run: &Path, message: &str) -> Result<OrderFact, Fault> {
    let paths = changed(root, run)?;
    if paths.is_empty() {
        return Ok(OrderFact::Committed { commit: None });
    }
    Ok(match git.commit_paths(&paths, message, None) {
        Ok(commit) => OrderFact::Committed { commit: Some(commit) },
        Err(error) => OrderFact::NotCommitted { message: with_sources(&error) },
    })
}

/// The files that are not as they were before the run, by path.
fn changed(root: &Path, run: &Path) -> Result<Vec<String>, Fault> {
    let images = apply::pre_images(&undo_folders(run)?).map_err(Fault::Undo)?;
    let differs = |path: &str, before: &Option<Vec<u8>>| {
        let now = dir::read(&root.join(path), u64::MAX, dir::Links::Refused).ok().flatten();
        now != *before
    };
    let mut paths: Vec<String> = images
        .into_iter()
        .filter(|image| differs(&image.path, &image.content))
        .map(|image| image.path)
        .collect();
    paths.sort();
    Ok(paths)
}
