//! The files of a folder as they stand at one moment.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Enough to tell that a file was touched: any write changes the time of its inode.
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

/// The files of a folder, by their paths relative to it. Links count as files and are not followed.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) files: BTreeMap<String, Stamp>,
}

impl Tree {
    pub(super) fn of(root: &Path, skip: &[String]) -> io::Result<Self> {
        let mut tree = Self::default();
        if root.is_dir() {
            tree.walk(root, "", skip)?;
        }
        Ok(tree)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    fn walk(&mut self, folder: &Path, prefix: &str, skip: &[String]) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let data = match entry.path().symlink_metadata() {
                Ok(data) => data,
                // Gone since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if skip.iter().any(|skipped| *skipped == name || *skipped == path) {
                continue;
            }
            if data.is_dir() {
                self.walk(&entry.path(), &format!("{path}/"), skip)?;
            } else {
                let changed = (data.ctime(), data.ctime_nsec());
                let stamp = Stamp { inode: data.ino(), bytes: data.len(), mode: data.mode(), changed };
                self.files.insert(path, stamp);
            }
        }
        Ok(())
    }
}
