//! Folders that deletions may leave empty. Git does not track empty folders, so they would stay unnoticed.

use std::collections::BTreeSet;
use std::sync::Arc;

use code_commit_dir::Folder;

use crate::change::Change;
use crate::place::{Place, folders_above};

/// Innermost first; never includes the root. Each is removed after the commit if it is empty, that
/// is, contains neither ignored files nor another folder.
pub(crate) fn folders(root: &Arc<Folder>, changes: &[Change<'_>]) -> Vec<String> {
    let deleted = changes.iter().filter(|change| change.content.is_none() && change.before.is_some());
    let above: BTreeSet<&str> = deleted.flat_map(|change| folders_above(&change.place.path)).collect();
    let Some(umask) = umask().filter(|_| !above.is_empty()) else { return Vec::new() };
    above.into_iter().rev().filter(|folder| is_ordinary(root, folder, umask)).map(str::to_owned).collect()
}

/// Whether `undo` would create it with the same mode: a folder that only its owner may enter must
/// not come back open to others.
fn is_ordinary(root: &Arc<Folder>, folder: &str, umask: u32) -> bool {
    let found = Place::find(root, folder).ok();
    let stat = found.and_then(|place| place.parent()?.stat(place.name()).ok()?);
    stat.is_some_and(|stat| {
        stat.st_mode & 0o7777 == 0o777 & !umask && stat.st_uid == rustix::process::geteuid().as_raw()
    })
}

/// The umask of this process, which can be read without changing it only here.
fn umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok()
}
