//! What git ignores, from all sources: captured at the start of a run, or as of now.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use gix_glob::pattern::Case;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::inodes::join;
use crate::lexical::is_too_long;
use crate::patterns::{Kind, Patterns, folders};
use code_commit_dir::Folder;
use code_commit_names::is_protected_anywhere;

/// The ignore rules of one work tree.
#[derive(Debug)]
pub(crate) struct Rules {
    /// From the weakest to the strongest: the user's excludes file, then `info/exclude`.
    pub(crate) global: Vec<Patterns>,
    /// The `.gitignore` rules of each folder that has any, by its path from the top; the path of
    /// the top is empty.
    pub(crate) by_folder: HashMap<String, Arc<Patterns>>,
    /// `core.ignoreCase`.
    pub(crate) case: Case,
    /// Paths, from the top, of files with names that are protected in every folder, in folders that
    /// are not ignored.
    pub(crate) protected: Vec<String>,
}

/// A folder whose rules cannot be read.
#[derive(Debug)]
pub(crate) struct Unread {
    /// From the top of the work tree.
    pub(crate) path: String,
    pub(crate) source: io::Error,
}

impl Unread {
    pub(crate) fn at(path: &str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Unread { path, source }
    }
}

/// The `.gitignore` files on the way to a path, outermost first, each with the offset at which the
/// path relative to its folder begins.
pub(crate) type Way = Vec<(usize, Arc<Patterns>)>;

/// A folder whose rules have been read.
struct Level {
    /// From the top of the work tree.
    path: String,
    folder: Arc<Folder>,
    /// The rules for its entries.
    way: Arc<Way>,
}

impl Rules {
    /// Whether git ignores the file at `path`, relative to the top of the work tree, tracked or
    /// not.
    ///
    /// Follows git's order: an ignored folder hides everything in it; otherwise the nearest
    /// `.gitignore` decides, its last pattern first, then `info/exclude`, then the user's file.
    pub(crate) fn ignore(&self, path: &str) -> bool {
        let mut way: Way = self.of("").into_iter().collect();
        for folder in folders(path) {
            if self.matches(&way, folder, Kind::Folder) {
                return true;
            }
            way.extend(self.of(folder));
        }
        self.matches(&way, path, Kind::File)
    }

    /// Whether the rules match this path itself, relative to the top; does not check whether a
    /// parent folder is ignored.
    pub(crate) fn name(&self, path: &str, kind: Kind) -> bool {
        let way = [""]
            .into_iter()
            .chain(folders(path))
            .filter_map(|above| self.of(above))
            .collect();
        self.matches(&way, path, kind)
    }

    /// Whether the rules match a path whose `.gitignore` files are known.
    pub(crate) fn matches(&self, way: &Way, path: &str, kind: Kind) -> bool {
        let local = way
            .iter()
            .rev()
            .filter_map(|(start, patterns)| patterns.verdict(path.get(*start..)?, kind, self.case));
        let global = self
            .global
            .iter()
            .rev()
            .filter_map(|patterns| patterns.verdict(path, kind, self.case));
        local.chain(global).next().unwrap_or(false)
    }

    /// The rules that the `.gitignore` of one folder adds.
    pub(crate) fn of(&self, folder: &str) -> Option<(usize, Arc<Patterns>)> {
        let start = if folder.is_empty() {
            0
        } else {
            folder.len() + 1
        };
        self.by_folder
            .get(folder)
            .map(|patterns| (start, Arc::clone(patterns)))
    }

    /// Reads the `.gitignore` of one folder.
    pub(crate) fn read(&mut self, path: &str, folder: &Folder) -> io::Result<()> {
        let patterns = read_gitignore(folder)?;
        if !patterns.is_empty() {
            self.by_folder.insert(path.to_owned(), Arc::new(patterns));
        }
        Ok(())
    }

    /// Reads the `.gitignore` of every folder at or below `path`, the root, that is not ignored
    /// itself and in which a file could be written; the guard never needs deeper ones.
    ///
    /// Not recursive, because the depth of a tree cannot be trusted. Each folder is opened only
    /// when it is its turn, so that a wide tree does not use up all descriptors.
    pub(crate) fn read_below(&mut self, path: &str, folder: &Arc<Folder>) -> Result<(), Unread> {
        let below_root = if path.is_empty() { 0 } else { path.len() + 1 };
        let above = [""]
            .into_iter()
            .chain(folders(path))
            .filter(|above| *above != path);
        let way = Arc::new(above.filter_map(|above| self.of(above)).collect());
        let mut todo = self.read_one(path.to_owned(), Arc::clone(folder), &way)?;
        while let Some((parent, name)) = todo.pop() {
            let path = join(&parent.path, &name);
            // A file in it would have one more component.
            if path
                .get(below_root..)
                .is_none_or(|path| is_too_long(&join(path, "x")))
            {
                continue;
            }
            match parent.folder.open_in(&name) {
                Ok(folder) => todo.extend(self.read_one(path, Arc::new(folder), &parent.way)?),
                // A folder that cannot be opened now is judged when a path in it is requested.
                Err(error) if is_closed(&error) => {}
                Err(source) => return Err(Unread { path, source }),
            }
        }
        Ok(())
    }

    /// Reads the rules of one folder and returns its subfolders that are not ignored.
    fn read_one(
        &mut self,
        path: String,
        folder: Arc<Folder>,
        above: &Arc<Way>,
    ) -> Result<Vec<(Arc<Level>, String)>, Unread> {
        let may_be_folder = |kind| matches!(kind, FileType::Directory | FileType::Unknown);
        let is_looked_at = |name: &[u8], kind| {
            is_protected_anywhere(name) || (may_be_folder(kind) && name != b".git")
        };
        let entries = folder.entries_if(is_looked_at).map_err(Unread::at(&path))?;
        // Some file systems do not report the type of an entry when listing a folder.
        let is_file = |name: &[u8], kind: FileType| match kind {
            FileType::Directory => false,
            FileType::Unknown => folder.stat(OsStr::from_bytes(name)).is_ok_and(|stat| {
                stat.is_some_and(|stat| !FileType::from_raw_mode(stat.st_mode).is_dir())
            }),
            FileType::RegularFile
            | FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice => true,
        };
        let named = entries
            .iter()
            .filter(|(name, _)| is_protected_anywhere(name));
        let files = named.filter(|(name, kind)| is_file(name, *kind));
        self.protected
            .extend(files.map(|(name, _)| join(&path, &String::from_utf8_lossy(name))));
        let mut way = Arc::clone(above);
        if entries.iter().any(|(name, _)| name == b".gitignore") {
            self.read(&path, &folder).map_err(Unread::at(&path))?;
            if let Some(own) = self.of(&path) {
                way = Arc::new(above.iter().cloned().chain([own]).collect());
            }
        }
        let level = Arc::new(Level { path, folder, way });
        let folders = entries
            .into_iter()
            .filter(|(_, kind)| may_be_folder(*kind))
            .filter_map(|(name, _)| {
                let name = String::from_utf8(name).ok()?;
                let ignored = self.matches(&level.way, &join(&level.path, &name), Kind::Folder);
                (!ignored).then(|| (Arc::clone(&level), name))
            });
        Ok(folders.collect())
    }
}

/// Whether the error means that there is no folder, that it is on another file system, or that it
/// may not be read.
pub(crate) fn is_closed(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::ACCESS | Errno::LOOP | Errno::NOENT | Errno::NOTDIR | Errno::PERM | Errno::XDEV
        )
    )
}

/// Does not follow a symlinked `.gitignore`, like git; a missing one has no rules.
fn read_gitignore(folder: &Folder) -> io::Result<Patterns> {
    let is_file = folder
        .stat(".gitignore")?
        .is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    let mut content = Vec::new();
    if is_file {
        folder.open_file(".gitignore")?.read_to_end(&mut content)?;
    }
    Ok(Patterns::parse(&content))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fs;
    use std::io::Write;
    use std::sync::Arc;

    use gix_glob::pattern::Case;

    use super::{Folder, Rules};

    /// The number of folders whose rules are kept, in a tree of 100 nested folders that all have
    /// this `.gitignore`.
    fn kept(rules: &[u8], prefix: &str) -> usize {
        let scratch = tempfile::tempdir().unwrap();
        let mut folder = scratch.path().to_owned();
        for _ in 0..100 {
            fs::File::create(folder.join(".gitignore"))
                .unwrap()
                .write_all(rules)
                .unwrap();
            folder.push("d");
            fs::create_dir(&folder).unwrap();
        }
        let mut read = Rules {
            global: Vec::new(),
            by_folder: HashMap::new(),
            case: Case::Sensitive,
            protected: Vec::new(),
        };
        read.read_below(prefix, &Arc::new(Folder::open(scratch.path()).unwrap()))
            .unwrap();
        read.by_folder.len()
    }

    #[test]
    fn rules_are_read_as_deep_as_paths_are_judged_and_kept_where_there_are_any() {
        assert_eq!(
            kept(b"*.o\n", ""),
            64,
            "the root and 63 folders: a file in the last has 64 names"
        );
        assert_eq!(kept(b"*.o\n", "below/the/top"), 64, "counted from the root");
        assert_eq!(kept(b"# none\n\n", ""), 0);
    }
}
