//! Files whose content is a git object, so that it can be read after they are changed.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use bstr::ByteSlice as _;
use gix_index::entry::{Mode, Stage, stat};
use gix_index::{Entry, State};

use crate::objects::{Objects, Store};
use crate::{Git, Index, RepoError, WorkTree};

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

/// A snapshot of the index: what git has below the root, sorted by the bytes of the paths.
pub struct Committed {
    /// Who is asked for objects.
    git: Option<Git>,
    store: Store,
    objects: Mutex<Option<Objects>>,
    index: Index,
    /// The entries below the root, but submodules.
    files: Vec<usize>,
    /// If files on disk may differ from their objects although git calls them unchanged: the lengths of the objects, once
    /// git was asked.
    lengths: Option<OnceLock<Vec<Option<u64>>>>,
}

/// Attributes with which git writes different bytes to disk.
const CONVERTING: [&str; 4] = ["filter", "ident", "eol=crlf", "working-tree-encoding"];

impl WorkTree {
    /// Reads the index. Objects are read by this git; without one, there are none.
    pub fn committed(&self, git: Option<&Git>) -> Result<Committed, RepoError> {
        let index = self.index()?;
        let lengths = self.converts(&index.index).then(OnceLock::new);
        let files = index
            .entries()
            .filter(|(_, entry)| entry.mode != Mode::COMMIT);
        Ok(Committed {
            git: git.cloned(),
            store: self.store(),
            objects: Mutex::default(),
            files: files.map(|(at, _)| at).collect(),
            index,
            lengths,
        })
    }

    fn converts(&self, index: &State) -> bool {
        let is_text = |key, value: &str| {
            let set = self.config.string(key);
            set.is_some_and(|set| set.eq_ignore_ascii_case(value.as_bytes()))
        };
        let is_crlf = is_text("core.autocrlf", "true") || is_text("core.eol", "crlf");
        let says = |path: &Path| {
            let text = std::fs::read(path).unwrap_or_default();
            CONVERTING.iter().any(|word| text.contains_str(word))
        };
        let tracked = index.entries().iter().map(|entry| entry.path(index));
        let mut attributes = tracked.filter(|path| path.ends_with(b".gitattributes"));
        let users = self.users_file("core.attributesFile", "attributes");
        let elsewhere = users.ok().flatten();
        is_crlf
            || says(&self.common_dir.join("info/attributes"))
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
            .field("entries", &self.index.index.entries().len())
            .finish_non_exhaustive()
    }
}

impl Committed {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    fn entry(&self, at: usize) -> Option<&Entry> {
        self.index.index.entries().get(*self.files.get(at)?)
    }

    /// The path of the entry with this number, from the root. An index may contain any text as a path, even one that leads
    /// outside.
    pub fn path(&self, at: usize) -> &[u8] {
        self.entry(at).map_or(&[], |entry| self.index.name(entry))
    }

    /// Whether a file on disk certainly has the bytes of the object of the entry with this number.
    pub fn has(&self, at: usize, file: &OnDisk) -> bool {
        let is_its = self.entry(at).is_some_and(|one| self.is_its(one, file));
        is_its
            && self.lengths.as_ref().is_none_or(|lengths| {
                let lengths = lengths.get_or_init(|| self.asked_lengths().unwrap_or_default());
                lengths.get(at) == Some(&Some(file.len))
            })
    }

    fn asked_lengths(&self) -> Option<Vec<Option<u64>>> {
        let entries = (0..self.len()).filter_map(|at| self.entry(at));
        let ids: String = entries.map(|entry| format!("{}\n", entry.id)).collect();
        self.git.as_ref()?.lengths(&ids).ok()
    }

    /// The bytes of such a file.
    pub fn read(&self, path: &Path, file: &OnDisk) -> Option<Vec<u8>> {
        let path = path.as_os_str().as_bytes();
        let is_before = |entry: &Entry| self.index.name(entry) < path;
        let is_before = |at: &usize| self.index.index.entries().get(*at).is_some_and(is_before);
        let entry = self.entry(self.files.partition_point(is_before))?;
        if self.index.name(entry) != path || !self.is_its(entry, file) {
            return None;
        }
        let mut objects = self.objects.lock().ok()?;
        let mut asked = match objects.take() {
            Some(asked) => asked,
            None => Objects::of(self.git.as_ref()?, &self.store).ok()?,
        };
        let content = asked.content(&entry.id.to_string(), file.len).ok()?;
        *objects = Some(asked);
        let content = content?;
        (content.len() as u64 == file.len).then_some(content)
    }

    fn is_its(&self, entry: &Entry, file: &OnDisk) -> bool {
        let stat = &entry.stat;
        let is_file = matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE)
            && entry.stage() == Stage::Unconflicted;
        let time = |time: stat::Time| (i64::from(time.secs), i64::from(time.nsecs));
        // The index keeps the lower half of the number.
        let is_same = u64::from(stat.size) == file.len
            && (time(stat.mtime), time(stat.ctime)) == (file.mtime, file.ctime)
            && u64::from(stat.ino) == file.inode & u64::from(u32::MAX);
        // A file as new as the index may have been changed again since.
        let written = self.index.index.timestamp();
        let is_racy = file.mtime >= (written.unix_seconds(), i64::from(written.nanoseconds()));
        self.git.is_some() && is_file && is_same && !is_racy
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::MetadataExt as _;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::tests::scratch::{self, Scratch};

    fn on_disk(tree: &WorkTree, name: &str) -> OnDisk {
        let found = fs::metadata(tree.root().join(name)).unwrap();
        OnDisk {
            len: found.len(),
            mtime: (found.mtime(), found.mtime_nsec()),
            ctime: (found.ctime(), found.ctime_nsec()),
            inode: found.ino(),
        }
    }

    fn read(tree: &WorkTree, name: &str) -> Option<Vec<u8>> {
        let committed = tree.committed(Some(&scratch::git(tree.root()))).unwrap();
        committed.read(Path::new(name), &on_disk(tree, name))
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
        let tree = scratch.tree();
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

    #[test]
    fn where_files_are_converted_git_says_which_have_the_length_of_their_objects() {
        let scratch = Scratch::new();
        for (name, text) in [
            (".gitattributes", "*.txt text eol=crlf\n"),
            ("a.txt", "a\r\n"),
            ("b.txt", "b\n"),
            ("c", "c\r\n"),
        ] {
            scratch.write(name, text);
            let file = File::open(scratch.path().join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        scratch.commit();
        let tree = scratch.tree();
        let git = scratch::git(scratch.path());
        let has = |git: Option<&Git>| {
            let committed = tree.committed(git).unwrap();
            let known = (0..committed.len()).filter(|at| {
                let name = std::str::from_utf8(committed.path(*at)).unwrap();
                committed.has(*at, &on_disk(&tree, name))
            });
            let names = known.map(|at| String::from_utf8(committed.path(at).to_vec()).unwrap());
            names.collect::<Vec<_>>()
        };
        assert_eq!(has(Some(&git)), [".gitattributes", "b.txt", "c"]);
        assert_eq!(has(None), [""; 0], "nobody could read them");
    }
}
