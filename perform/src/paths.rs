//! Paths below a root, and in messages.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// The file name of a path below the root.
pub(crate) fn last(path: &Path) -> io::Result<&OsStr> {
    Ok(path.file_name().ok_or(io::ErrorKind::InvalidInput)?)
}

/// Paths named in a message.
const NAMED: usize = 10;

/// The first paths, and the number of the others.
pub(crate) fn named(paths: &[String]) -> String {
    let mut text = paths
        .iter()
        .take(NAMED)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(more) = paths.len().checked_sub(NAMED).filter(|more| *more > 0) {
        text += &format!(" and {more} more");
    }
    text
}
