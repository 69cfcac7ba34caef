//! How often files of the backlog have failed: kept beside the lock of the watch, since a watch is ended and started again meanwhile.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use code_commit_loop_spec::watch::{Item, is_parked};
use serde::{Deserialize, Serialize};

use crate::place::work_tree_if_any;
use crate::spec::project;

/// The state of the watch.
pub(super) const WATCH: &str = "spec-watch";
const FILE: &str = "failures.json";

/// A file of the backlog that has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The file as it was.
    pub item: Item,
    /// How often.
    pub times: u32,
    /// What was wrong the last time.
    pub why: String,
}

/// Those that are passed over until they are edited.
pub fn parked(root: &Path) -> Vec<Failed> {
    let mut all = read(root);
    all.retain(|failed| is_parked(failed.times) && is_as_it_was(root, failed));
    all
}

/// Notes that a file has failed once more; how often that was.
pub(super) fn count(root: &Path, item: &Item, why: &str) -> io::Result<u32> {
    let all = read(root);
    let before = all
        .iter()
        .find(|failed| failed.item == *item)
        .map_or(0, |failed| failed.times);
    let failed = Failed {
        item: item.clone(),
        times: before.saturating_add(1),
        why: why.to_owned(),
    };
    let times = failed.times;
    write(
        root,
        all.into_iter()
            .filter(|failed| failed.item != *item)
            .chain([failed])
            .collect(),
    )?;
    Ok(times)
}

/// The file has come to an end: what comes under its name later begins anew.
pub(super) fn forget(root: &Path, item: &Item) -> io::Result<()> {
    let all = read(root);
    if all.iter().all(|failed| failed.item != *item) {
        return Ok(());
    }
    write(
        root,
        all.into_iter()
            .filter(|failed| failed.item != *item)
            .collect(),
    )
}

fn is_as_it_was(root: &Path, failed: &Failed) -> bool {
    project::hash(root, &failed.item.name).as_ref() == Some(&failed.item.sha256)
}

fn file(root: &Path) -> Option<PathBuf> {
    let tree = work_tree_if_any(root).ok()?;
    Some(
        project::state(root, tree.as_ref())
            .ok()?
            .0
            .join(WATCH)
            .join(FILE),
    )
}

/// One that cannot be read counts nothing: files are tried again.
fn read(root: &Path) -> Vec<Failed> {
    let text = file(root)
        .and_then(|file| fs::read(file).ok())
        .unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn write(root: &Path, mut all: Vec<Failed>) -> io::Result<()> {
    all.retain(|failed| is_as_it_was(root, failed));
    let file = file(root).ok_or(io::ErrorKind::NotFound)?;
    project::write(&file, &serde_json::to_string(&all)?)
}
