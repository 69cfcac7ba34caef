//! Something that a command put where a regular file belongs: a folder, a symlink, a FIFO. The file
//! cannot be restored before it is removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::Folder;

/// Removes the obstacle, at the path or on the way to it. A regular file at the path stays.
pub fn remove(root: &Path, path: &str) -> io::Result<()> {
    // Every folder on the way was one a moment ago, and no process of the run is left to change that.
    match find(root, path)? {
        Some((place, kind)) if kind.is_dir() => fs::remove_dir_all(root.join(place)),
        Some((place, _)) => fs::remove_file(root.join(place)),
        None => Ok(()),
    }
}

/// Moves the obstacle to the same path below `into`. A regular file at the path stays.
pub fn move_away(root: &Path, path: &str, into: &Path) -> io::Result<()> {
    let Some((place, _)) = find(root, path)? else { return Ok(()) };
    let aside = into.join(&place);
    fs::create_dir_all(aside.parent().unwrap_or(into))?;
    fs::rename(root.join(place), aside)
}

/// The obstacle's path relative to the root, and its type.
fn find(root: &Path, path: &str) -> io::Result<Option<(PathBuf, FileType)>> {
    let (mut folder, mut place) = (Folder::open(root)?, PathBuf::new());
    let mut names = Path::new(path).iter().peekable();
    while let Some(name) = names.next() {
        place.push(name);
        let Some(stat) = folder.stat(name)? else { return Ok(None) };
        let (kind, is_last) = (FileType::from_raw_mode(stat.st_mode), names.peek().is_none());
        if is_last || !kind.is_dir() {
            let is_file_in_its_place = is_last && kind.is_file();
            return Ok((!is_file_in_its_place).then_some((place, kind)));
        }
        folder = folder.open_in(name)?;
    }
    Ok(None)
}
