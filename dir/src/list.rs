//! The entries of a folder at a path that the harness chose.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags};

use crate::open;

/// The entries of the folder at a path, without `.` and `..`, in no order. They are read as they are asked for, and
/// end after an error.
///
/// Unlike `std::fs::read_dir`, it does not panic if the folder cannot be closed, as on a network file system that fails:
/// the entries were read before.
pub fn list(path: impl AsRef<Path>) -> io::Result<List> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = open::openat(CWD, path.as_ref(), flags, Mode::empty())?;
    Ok(List {
        entries: Dir::new(folder)?,
        path: path.as_ref().to_owned(),
    })
}

/// See [`list`].
#[derive(Debug)]
pub struct List {
    entries: Dir,
    path: PathBuf,
}

/// Something in a folder.
#[derive(Debug)]
pub struct Entry {
    path: PathBuf,
    file_type: FileType,
}

impl Iterator for List {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.entries.next()? {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error.into())),
            };
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                let path = self.path.join(OsStr::from_bytes(name));
                return Some(Ok(Entry {
                    path,
                    file_type: entry.file_type(),
                }));
            }
        }
    }
}

impl Entry {
    /// The path of the folder and the name.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The name in the folder.
    pub fn file_name(&self) -> OsString {
        self.path.file_name().unwrap_or_default().to_owned()
    }

    /// The type, without following a symlink. Asks only file systems that do not list it.
    pub fn file_type(&self) -> io::Result<FileType> {
        if self.file_type == FileType::Unknown {
            return Ok(FileType::from_raw_mode(self.metadata()?.mode()));
        }
        Ok(self.file_type)
    }

    /// The metadata, without following a symlink.
    pub fn metadata(&self) -> io::Result<Metadata> {
        fs::symlink_metadata(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_folder_is_listed_as_the_standard_library_lists_it() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        (0..1000).for_each(|number| drop(fs::File::create(at(&format!("..{number}"))).unwrap()));
        fs::create_dir_all(at("folder/below")).unwrap();
        std::os::unix::fs::symlink("folder", at("link")).unwrap();
        fs::File::create(scratch.path().join(OsStr::from_bytes(b"odd\xff"))).unwrap();
        let ours: Vec<Entry> = list(scratch.path()).unwrap().map(Result::unwrap).collect();
        for entry in &ours {
            let (kind, found) = (
                entry.file_type().unwrap(),
                fs::symlink_metadata(entry.path()).unwrap(),
            );
            assert_eq!(kind, FileType::from_raw_mode(found.mode()), "{entry:?}");
            assert_eq!(entry.metadata().unwrap().ino(), found.ino(), "{entry:?}");
        }
        let ours: BTreeSet<OsString> = ours.iter().map(Entry::file_name).collect();
        let theirs = fs::read_dir(scratch.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!((ours.len(), ours), (1003, theirs));
        assert_eq!(list(at("link")).unwrap().count(), 1);
        for path in ["none", "..1"] {
            assert_eq!(
                list(at(path)).unwrap_err().kind(),
                fs::read_dir(at(path)).unwrap_err().kind(),
                "{path}"
            );
        }
    }
}
