//! What a command has put where the run had written a file: a folder, a link, a pipe. Nothing can be written back over one.

use std::fs;
use std::io;
use std::path::Path;

use guard::Folder;
use rustix::fs::{AtFlags, FileType};

/// Removes it, at the path or on the way to it; a regular file stays.
pub(super) fn remove(root: &Path, path: &str) -> io::Result<()> {
    let mut folder = Folder::open(root)?;
    let mut names = Path::new(path).iter().peekable();
    while let Some(name) = names.next() {
        let Some(stat) = folder.stat(name)? else { return Ok(()) };
        let (kind, is_last) = (FileType::from_raw_mode(stat.st_mode), names.peek().is_none());
        if kind.is_dir() && is_last {
            // Every folder on the way was one a moment ago, and no process of the run is left to change that.
            return fs::remove_dir_all(root.join(path));
        }
        if !kind.is_dir() {
            let is_file_in_its_place = kind.is_file() && is_last;
            return if is_file_in_its_place {
                Ok(())
            } else {
                Ok(rustix::fs::unlinkat(&folder, name, AtFlags::empty())?)
            };
        }
        folder = folder.open_in(name)?;
    }
    Ok(())
}
