//! Stores pre-images of the changes that a command may keep, so that `undo` can revert them.

use std::path::{Path, PathBuf};

use code_commit_apply::Found;
use code_commit_dir::Interrupt;
use code_commit_engine::{Changed, Problem};

use crate::fault::Fault;

/// Folders that were created, and those that were removed, with their permission bits.
pub(crate) type Folders = (Vec<String>, Vec<(String, u32)>);

/// Of these folders, as a set names them.
pub(crate) fn texts<'f>(folders: impl Iterator<Item = &'f PathBuf>) -> Vec<String> {
    folders
        .filter_map(|folder| folder.to_str().map(str::to_owned))
        .collect()
}

/// `now` is the tree, or the layer with the changes; `set` receives the pre-images. Gives the changes and warnings.
pub(crate) fn adopt(
    (root, now, set): (&Path, &Path, &Path),
    found: Vec<Found<'_>>,
    folders: Folders,
    interrupt: Interrupt<'_>,
) -> Result<(Vec<Changed>, Vec<Problem>), Fault> {
    if found.is_empty() && folders.0.is_empty() && folders.1.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let applied = code_commit_apply::adopt(root, now, set, found, folders, interrupt);
    let applied = applied.map_err(Fault::Apply)?;
    let warnings = applied.warnings.iter().map(untidy).collect();
    Ok((applied.changes, warnings))
}

/// For the user.
pub fn untidy(warning: &code_commit_apply::Warning) -> Problem {
    Problem::new("apply", format!("{warning}."))
}
