//! Tracked files as they are on disk.

use std::io::{self, Read as _};
use std::path::Path;

use code_commit_dir::Folder;
use code_commit_prompt::rollup::{LARGEST_FILE, LeftOut, left_out};
use rustix::fs::FileType;

/// The root of the project. Follows no symlink below it: to git a file behind one is deleted, and it may be
/// outside.
pub(super) struct OnDisk {
    root: Folder,
}

/// What is at the path of a tracked file.
pub(super) enum Found {
    /// A regular file, which has been read.
    Content,
    /// A file that no model should see.
    LeftOut(LeftOut),
    Link,
    /// Nothing that could be shown: it is deleted, or now a folder.
    Other,
}

impl OnDisk {
    pub(super) fn at(root: &Path) -> io::Result<Self> {
        Ok(Self {
            root: Folder::open(root)?,
        })
    }

    /// Reads the file at a relative path into `content`, replacing it.
    pub(super) fn read(&self, path: &str, content: &mut Vec<u8>) -> io::Result<Found> {
        content.clear();
        let file = match self.root.open_file_below(Path::new(path)) {
            Ok(Some(file)) => file,
            Ok(None) => {
                return Ok(if self.is_link(path) {
                    Found::Link
                } else {
                    Found::Other
                });
            }
            // A file that is left out by name need not be readable.
            Err(error) => return left_out(path, 0).map(Found::LeftOut).ok_or(error),
        };
        if let Some(why) = left_out(path, file.metadata()?.len()) {
            return Ok(Found::LeftOut(why));
        }
        // It may have grown meanwhile.
        file.take(LARGEST_FILE + 1).read_to_end(content)?;
        Ok(left_out(path, content.len() as u64).map_or(Found::Content, Found::LeftOut))
    }

    fn is_link(&self, path: &str) -> bool {
        let path = Path::new(path);
        let found = self
            .root
            .folder_of(path)
            .and_then(|folder| folder.stat(path.file_name().unwrap_or_default()));
        found.is_ok_and(|stat| {
            stat.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink())
        })
    }
}
