//! Files whose content is a git object, so that it can be read after they are changed.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice as _;
use gix::index::entry::{Mode, Stage};

use crate::{RepoError, WorkTree};

/// What `stat` says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnDisk {
    /// In bytes.
    pub len: u64,
    /// When the content was last modified, in seconds and nanoseconds.
    pub mtime: (i64, i64),
    /// When the content or the metadata last changed. A file that was moved over another one can have the
    /// length and the `mtime` of that, but not its `ctime` and inode.
    pub ctime: (i64, i64),
    /// The inode number.
    pub inode: u64,
}

/// A snapshot of the index.
pub struct Committed {
    repository: gix::Repository,
    index: gix::worktree::Index,
    /// The root's path from the top.
    prefix: PathBuf,
    /// Whether files on disk may differ from their objects although git calls them unchanged.
    is_converted: bool,
}

/// Attributes with which git writes different bytes to disk.
const CONVERTING: [&str; 4] = ["filter", "ident", "eol=crlf", "working-tree-encoding"];

impl WorkTree {
    /// Reads the index.
    pub fn committed(&self) -> Result<Committed, RepoError> {
        let index = self.index()?;
        let is_converted = self.converts(&index);
        let prefix = self
            .root
            .strip_prefix(&self.top)
            .map(Path::to_owned)
            .unwrap_or_default();
        Ok(Committed {
            repository: self.repository.clone(),
            index,
            prefix,
            is_converted,
        })
    }

    fn converts(&self, index: &gix::index::State) -> bool {
        let config = self.repository.config_snapshot();
        let is_crlf = config
            .string("core.autocrlf")
            .is_some_and(|value| value.eq_ignore_ascii_case(b"true"))
            || config
                .string("core.eol")
                .is_some_and(|value| value.eq_ignore_ascii_case(b"crlf"));
        let says = |path: &Path| {
            let text = std::fs::read(path).unwrap_or_default();
            CONVERTING.iter().any(|word| text.contains_str(word))
        };
        let tracked = index.entries().iter().map(|entry| entry.path(index));
        let mut attributes = tracked.filter(|path| path.ends_with(b".gitattributes"));
        let users = config.trusted_path("core.attributesFile").ok().flatten();
        let xdg =
            || gix::path::env::xdg_config("attributes", &mut |name| gix::path::env::var(name));
        let elsewhere = users.or_else(xdg);
        is_crlf
            || says(&self.repository.common_dir().join("info/attributes"))
            || elsewhere.is_some_and(|path| says(&path))
            || attributes.any(|path| {
                self.relative(path)
                    .is_some_and(|path| says(&self.root.join(path)))
            })
    }
}

impl std::fmt::Debug for Committed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Committed")
            .field("entries", &self.index.entries().len())
            .finish_non_exhaustive()
    }
}

impl Committed {
    /// Whether each of these files on disk, sorted by the bytes of their paths, certainly has the bytes of git's object.
    pub fn has_all<'p>(&self, files: impl Iterator<Item = (&'p Path, OnDisk)>) -> Vec<bool> {
        let mut entries = self.index.entries().iter().peekable();
        let mut has = |(path, file): (&Path, OnDisk)| {
            let name = self.below_top(path);
            let name = name.as_os_str().as_bytes().as_bstr();
            while entries
                .next_if(|entry| entry.path(&self.index) < name)
                .is_some()
            {}
            let entry = entries
                .peek()
                .filter(|entry| entry.path(&self.index) == name);
            entry.is_some_and(|entry| self.has(entry, file))
        };
        files.map(&mut has).collect()
    }

    fn below_top<'p>(&self, path: &'p Path) -> Cow<'p, Path> {
        if self.prefix.as_os_str().is_empty() {
            path.into()
        } else {
            self.prefix.join(path).into()
        }
    }

    /// The bytes of such a file.
    pub fn read(&self, path: &Path, file: OnDisk) -> Option<Vec<u8>> {
        let name = self.below_top(path);
        let name = name.as_os_str().as_bytes().as_bstr();
        let entry = self
            .index
            .entry_by_path_and_stage(name, Stage::Unconflicted)
            .filter(|entry| self.has(entry, file))?;
        let object = self.repository.find_object(entry.id).ok()?;
        let content = object.detach().data;
        (content.len() as u64 == file.len).then_some(content)
    }

    fn has(&self, entry: &gix::index::Entry, file: OnDisk) -> bool {
        let stat = &entry.stat;
        let is_file = matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE)
            && entry.stage() == Stage::Unconflicted;
        let time =
            |time: gix::index::entry::stat::Time| (i64::from(time.secs), i64::from(time.nsecs));
        // The index keeps the lower half of the number.
        let is_same = u64::from(stat.size) == file.len
            && (time(stat.mtime), time(stat.ctime)) == (file.mtime, file.ctime)
            && u64::from(stat.ino) == file.inode & u64::from(u32::MAX);
        // A file as new as the index may have been changed again since.
        let written = self.index.timestamp();
        let is_racy = file.mtime >= (written.unix_seconds(), i64::from(written.nanoseconds()));
        if !is_file || !is_same || is_racy {
            return false;
        }
        let has_its_length = || {
            self.repository
                .find_header(entry.id)
                .is_ok_and(|header| header.size() == file.len)
        };
        !self.is_converted || has_its_length()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::MetadataExt as _;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::tests::scratch::Scratch;

    fn read(tree: &WorkTree, name: &str) -> Option<Vec<u8>> {
        let found = fs::metadata(tree.root().join(name)).unwrap();
        let file = OnDisk {
            len: found.len(),
            mtime: (found.mtime(), found.mtime_nsec()),
            ctime: (found.ctime(), found.ctime_nsec()),
            inode: found.ino(),
        };
        tree.committed().unwrap().read(Path::new(name), file)
    }

    #[test]
    fn a_file_that_git_has_unchanged_and_unconverted_is_read_from_its_object() {
        let scratch = Scratch::new();
        let write = |name: &str, text: &str| {
            scratch.write(name, text);
            let file = File::open(scratch.path().join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_hours(400_000))
                .unwrap();
        };
        write("plain", "plain\n");
        write("windows.txt", "two\r\nlines\r\n");
        write(".gitattributes", "windows.txt text eol=crlf\n");
        scratch.commit();
        write("untracked", "untracked\n");
        let tree = WorkTree::at(scratch.path()).unwrap();
        assert_eq!(read(&tree, "plain").as_deref(), Some(&b"plain\n"[..]));
        assert_eq!(
            read(&tree, "windows.txt"),
            None,
            "its object has other bytes"
        );
        assert_eq!(read(&tree, "untracked"), None);
        write("plain", "other\n");
        let later = SystemTime::UNIX_EPOCH + Duration::from_hours(400_001);
        File::open(scratch.path().join("plain"))
            .unwrap()
            .set_modified(later)
            .unwrap();
        assert_eq!(read(&tree, "plain"), None, "it was changed since");
        write("one", "one\n");
        write("two", "two\n");
        scratch.commit();
        fs::rename(scratch.path().join("one"), scratch.path().join("two")).unwrap();
        assert_eq!(
            read(&tree, "two"),
            None,
            "another file with the same length and time was moved there"
        );
    }
}
