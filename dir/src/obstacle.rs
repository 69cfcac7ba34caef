//! Something that a command put where a regular file belongs: a folder, a symlink, a FIFO. The file
//! cannot be restored before it is removed.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::Folder;

/// What has to be moved so that a path is free: whatever is there, or something on the way that is not a folder.
/// Its path, relative to the root, and its type; `None` if the path is free.
pub fn find(root: &Path, path: &Path) -> io::Result<Option<(PathBuf, FileType)>> {
    let (mut folder, mut place) = (Folder::open(root)?, PathBuf::new());
    let mut names = path.iter().peekable();
    while let Some(name) = names.next() {
        place.push(name);
        let Some(stat) = folder.stat(name)? else {
            return Ok(None);
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if names.peek().is_none() || !kind.is_dir() {
            return Ok(Some((place, kind)));
        }
        folder = folder.open_in(name)?;
    }
    Ok(None)
}
