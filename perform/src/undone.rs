//! Which sets of pre-images were undone, and what the undos replaced.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fault::Fault;

/// How `apply` begins the names of what an undo replaces.
const REPLACED: &str = "undone";
/// How they are named once the changes were reapplied.
const REDONE: &str = "redone";

/// Whether these sets were undone, by a restore or by a person.
pub fn were_undone(rounds: &[PathBuf]) -> bool {
    !undos(rounds).is_empty()
}

/// After the changes were reapplied: what undos had replaced no longer counts as undone, and is kept under another name.
pub fn put_away(undos: &[PathBuf]) -> Result<(), Fault> {
    for undo in undos {
        let names =
            std::iter::once(REDONE.to_owned()).chain((2..).map(|n| format!("{REDONE}-{n}")));
        let free = names
            .map(|name| undo.with_file_name(name))
            .find(|path| path.symlink_metadata().is_err());
        let free = free.unwrap_or_default();
        fs::rename(undo, &free).map_err(Fault::file("rename", undo))?;
    }
    Ok(())
}

/// What undos of these sets have replaced, the oldest first: undoing all of it reapplies the changes. It is beside the
/// newest pre-images.
pub fn undos(rounds: &[PathBuf]) -> Vec<PathBuf> {
    let entries = rounds
        .last()
        .and_then(|newest| code_commit_dir::list(newest).ok())
        .into_iter()
        .flatten()
        .flatten();
    let number = |path: &Path| {
        let name = path.file_name()?.to_str()?.strip_prefix(REPLACED)?;
        if name.is_empty() {
            Some(1)
        } else {
            name.strip_prefix('-')?.parse::<u32>().ok()
        }
    };
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((number(&entry.path())?, entry.path())))
        .filter(|(_, path)| {
            code_commit_apply::read_applied(path).is_ok_and(|applied| applied.is_some())
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}
