//! The folders that deleted files may leave empty. Git knows no empty folder, so that one would stay for good and say nothing to anybody.

use std::collections::BTreeSet;
use std::sync::Arc;

use dir::Folder;

use crate::change::Change;
use crate::place::{Place, folders_above};

/// Innermost first. Each is removed after the commit if nothing is left in it: neither files that git ignores nor another folder. The
/// root is none of them.
pub(crate) fn folders(root: &Arc<Folder>, changes: &[Change<'_>]) -> Vec<String> {
    let deleted = changes.iter().filter(|change| change.content.is_none() && change.before.is_some());
    let above: BTreeSet<&str> = deleted.flat_map(|change| folders_above(&change.place.path)).collect();
    let Some(umask) = umask().filter(|_| !above.is_empty()) else { return Vec::new() };
    above.into_iter().rev().filter(|folder| is_ordinary(root, folder, umask)).map(str::to_owned).collect()
}

/// Whether it is as `undo` would make it anew: one that only its owner may enter must not come back open to others.
fn is_ordinary(root: &Arc<Folder>, folder: &str, umask: u32) -> bool {
    let found = Place::find(root, folder).ok();
    let stat = found.and_then(|place| place.parent()?.stat(place.name()).ok()?);
    stat.is_some_and(|stat| {
        stat.st_mode & 0o7777 == 0o777 & !umask && stat.st_uid == rustix::process::geteuid().as_raw()
    })
}

/// The mask of this process, which can be asked for without setting another one only here.
fn umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok()
}
