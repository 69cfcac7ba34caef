//! The files of a folder, and enough of each to tell that it was touched.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Any write changes the time of its inode, which nobody can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    bytes: u64,
    mode: u32,
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn is_link(&self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }

    /// Whether the last change was before that second, of those since 1970.
    pub(super) fn is_older_than(&self, second: i64) -> bool {
        self.changed.0 < second
    }
}

/// A file: what it is, and its real name below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) stamp: Stamp,
    pub(super) place: PathBuf,
}

impl Found {
    /// Whether git and our patterns, which speak UTF-8, cannot name it.
    pub(super) fn is_odd(&self) -> bool {
        self.place.to_str().is_none()
    }
}

/// The files of a folder, by their paths relative to it, in which bytes that are no UTF-8 are written `\xff`. Links count as files and
/// are not followed.
#[derive(Debug, Default)]
pub(in crate::agents) struct Tree {
    pub(super) files: BTreeMap<String, Found>,
}

impl Tree {
    pub(in crate::agents) fn of(root: &Path, skip: &[String]) -> io::Result<Self> {
        let mut tree = Self::default();
        if root.is_dir() {
            tree.walk(root, Path::new(""), skip)?;
        }
        Ok(tree)
    }

    pub(in crate::agents) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    fn walk(&mut self, root: &Path, folder: &Path, skip: &[String]) -> io::Result<()> {
        for entry in fs::read_dir(root.join(folder))? {
            let entry = entry?;
            let place = folder.join(entry.file_name());
            let data = match entry.path().symlink_metadata() {
                Ok(data) => data,
                // Gone since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let path = written(place.as_os_str());
            if skip.iter().any(|skipped| *skipped == path || entry.file_name() == **skipped) {
                continue;
            }
            if data.is_dir() {
                self.walk(root, &place, skip)?;
            } else {
                let changed = (data.ctime(), data.ctime_nsec());
                let stamp = Stamp { inode: data.ino(), bytes: data.len(), mode: data.mode(), changed };
                self.files.insert(path, Found { stamp, place });
            }
        }
        Ok(())
    }
}

fn written(path: &OsStr) -> String {
    let mut text = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}
