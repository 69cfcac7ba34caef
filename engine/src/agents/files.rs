//! Files of the harness, which an agent may have put a link in the place of.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use logging::Durability;

use crate::own;

/// Gives a file a new content, whole or not at all: a state file that is half written would lose a run. A link in its place is
/// replaced, not followed. Where it fails, what was written may stay beside the file as `.NAME.new`, until the next time.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, Durability::Synced)
}

/// Removes a file that need not be there.
pub fn remove_file(path: &Path) -> io::Result<()> {
    unless_gone(fs::remove_file(path))
}

/// The same as [`replace_file`], which lets the file outlive a power cut.
pub fn replace(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    replace_with(path, |file| {
        file.write_all(bytes)?;
        match durability {
            Durability::Synced => file.sync_all(),
            Durability::Written => Ok(()),
        }
    })
}

/// The same with the content of another file, which can be made again: it is not synced.
pub(super) fn replace_by_copy(path: &Path, from: &Path) -> io::Result<()> {
    replace_with(path, |file| io::copy(&mut File::open(from)?, file).map(drop))
}

fn replace_with(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let staged = folder.join(format!(".{name}.new"));
    // What an earlier, killed write has left; a link there must not be followed.
    remove(&staged)?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(&staged)?;
    fill(&mut file)?;
    fs::rename(&staged, path)
}

/// A run that was killed between this and its fact does it again: the lines must not be there twice. Nothing is read or written through a
/// link.
pub(super) fn append(path: &Path, head: &str, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = own::open(path)?;
    if !text.is_empty() && own::ends_with(&file, text)? {
        return Ok(());
    }
    let is_empty = file.metadata()?.len() == 0;
    let start = if is_empty { head } else { "" };
    let end_of_line = if is_empty || own::ends_with(&file, "\n")? { "" } else { "\n" };
    file.write_all(format!("{end_of_line}{start}{text}").as_bytes())
}

pub(super) fn remove(path: &Path) -> io::Result<()> {
    // A role may have put a folder in the file's place.
    let is_folder = fs::symlink_metadata(path).is_ok_and(|data| data.is_dir());
    unless_gone(if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) })
}

fn unless_gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_there_already_are_not_added_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("logs/tokens.csv");
        for rows in ["1,a\n", "1,a\n", "2,b\n", "2,b\n", ""] {
            append(&file, "n,name\n", rows).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "n,name\n1,a\n2,b\n");
    }

    #[test]
    fn lines_are_not_added_through_a_link_nor_to_a_fifo() {
        let folder = tempfile::tempdir().unwrap();
        let (file, target) = (folder.path().join("tokens.csv"), folder.path().join("theirs"));
        replace_file(&target, b"theirs\n").unwrap();
        std::os::unix::fs::symlink(&target, &file).unwrap();
        append(&file, "n,name\n", "1,a\n").unwrap_err();
        assert_eq!(fs::read(&target).unwrap(), b"theirs\n");
        fs::remove_file(&file).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        append(&file, "n,name\n", "1,a\n").unwrap_err();
    }

    #[test]
    fn a_state_file_is_replaced_whole_and_never_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, target) = (folder.path().join("state.json"), folder.path().join("target"));
        replace_file(&target, b"mine").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join(".state.json.new")).unwrap();
        replace_file(&file, b"{}").unwrap();
        assert_eq!(
            (fs::read(&file).unwrap(), fs::read(&target).unwrap()),
            (b"{}".to_vec(), b"mine".to_vec())
        );
    }
}
