//! Files of the harness that are replaced or removed whole, where an agent may have put something else in their place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Gives a file new content, whole or not at all, and synced: a state file that is half written would lose a run. A symlink in its place
/// is replaced, not followed; missing folders are made. Where it fails, what was written may stay beside the file as `.NAME.new`, until
/// the next time.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |file| {
        file.write_all(bytes)?;
        file.sync_all()
    })
}

/// The same with what `fill` writes, which syncs it if it has to be.
pub fn replace_with(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let staged = folder.join(format!(".{name}.new"));
    // What an earlier, killed write left; a symlink there must not be followed.
    remove(&staged)?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(&staged)?;
    fill(&mut file)?;
    fs::rename(&staged, path)
}

/// Removes a file that need not be there, or the folder that an agent has put in its place.
pub fn remove(path: &Path) -> io::Result<()> {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|data| data.is_dir());
    match if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) } {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_never_through_a_symlink() {
        let folder = tempfile::tempdir().unwrap();
        let (file, target) = (folder.path().join("state.json"), folder.path().join("target"));
        replace(&target, b"mine").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join(".state.json.new")).unwrap();
        replace(&file, b"{}").unwrap();
        assert_eq!(
            (fs::read(&file).unwrap(), fs::read(&target).unwrap()),
            (b"{}".to_vec(), b"mine".to_vec())
        );
    }
}
