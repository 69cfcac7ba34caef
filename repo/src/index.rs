//! What git tracks, as its index says.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use bstr::ByteSlice as _;
use code_commit_dir::Links;
use gix_config::File;
use gix_fs::{FileSnapshot, SharedFileSnapshot};
use gix_index::entry::{Flags, Mode, Stage};
use gix_index::{Entry, State, decode};

use crate::{RepoError, WorkTree};

/// The index at one moment.
pub struct Index {
    pub(crate) index: SharedFileSnapshot<gix_index::File>,
    /// What the paths below the root begin with: nothing, or a folder and a slash.
    pub(crate) prefix: Vec<u8>,
}

/// An entry of the index below the root of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracked<'i> {
    /// Relative to the root. A name need not be valid UTF-8.
    pub path: &'i Path,
    /// What it is.
    pub kind: Kind,
    /// Its length when git last checked; only an estimate.
    pub bytes: u64,
    /// When it was last modified, as git last saw it.
    pub modified: SystemTime,
    /// Whether a merge left it in conflict.
    pub is_conflicted: bool,
    /// The id of its content as it is staged. `None` for a file that git does not compare with it.
    pub blob: Option<&'i [u8]>,
}

/// What git tracks at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    File,
    Link,
    Submodule,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index")
            .field("entries", &self.index.entries().len())
            .finish_non_exhaustive()
    }
}

impl Index {
    /// The entries below the root, in git's order. A path in conflict, of which the index has up to three versions, occurs
    /// once.
    pub fn iter(&self) -> impl Iterator<Item = Tracked<'_>> {
        self.entries().filter_map(|(_, entry)| self.tracked(entry))
    }

    /// With their places in the whole index.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let all = self.index.entries();
        let is_below = |entry: &Entry| entry.path(&self.index).starts_with(&self.prefix);
        all.iter().enumerate().filter(move |(at, entry)| {
            let before = at.checked_sub(1).and_then(|before| all.get(before));
            let is_again =
                before.is_some_and(|one| one.path(&self.index) == entry.path(&self.index));
            // A sparse index has whole folders.
            !is_again && entry.mode != Mode::DIR && is_below(entry)
        })
    }

    fn tracked<'i>(&'i self, entry: &'i Entry) -> Option<Tracked<'i>> {
        let kind = match entry.mode {
            Mode::SYMLINK => Kind::Link,
            Mode::COMMIT => Kind::Submodule,
            _ => Kind::File,
        };
        let unchecked = Flags::ASSUME_VALID | Flags::SKIP_WORKTREE | Flags::INTENT_TO_ADD;
        let is_checked = !entry.flags.intersects(unchecked);
        let time = entry.stat.mtime;
        let since_1970 = Duration::new(time.secs.into(), time.nsecs);
        Some(Tracked {
            path: within(self.name(entry))?,
            kind,
            bytes: entry.stat.size.into(),
            modified: SystemTime::UNIX_EPOCH + since_1970,
            is_conflicted: entry.stage() != Stage::Unconflicted,
            blob: is_checked.then(|| entry.id.as_bytes()),
        })
    }

    /// From the root. An index may contain any text as a path, even one that leads outside.
    pub(crate) fn name<'i>(&'i self, entry: &Entry) -> &'i [u8] {
        let path = entry.path(&self.index).as_bytes();
        path.get(self.prefix.len()..).unwrap_or_default()
    }
}

impl<'i> Tracked<'i> {
    /// The path of a regular file, if it is UTF-8.
    pub fn file(&self) -> Option<&'i str> {
        self.path.to_str().filter(|_| self.kind == Kind::File)
    }
}

/// A submodule in the index.
pub(crate) struct Submodule {
    /// Relative to the root.
    pub(crate) path: PathBuf,
    /// The commit that the index has of it, in hex.
    pub(crate) commit: String,
    /// Which of its changes git ignores, by its configuration (`submodule.NAME.ignore`): `all`, `dirty`, `untracked`
    /// or none.
    pub(crate) ignore: String,
}

/// Paths, relative to the top, that the index has and that are no files of the work tree.
#[derive(Debug, Default)]
pub struct NeverWritten {
    /// The submodules, checked out or not.
    pub submodules: BTreeSet<String>,
    /// What is marked as not checked out; a folder has a trailing slash.
    pub absent: BTreeSet<String>,
}

impl WorkTree {
    /// Reads the index. In a repository without commits there may be none, and nothing is tracked.
    pub fn index(&self) -> Result<Index, RepoError> {
        let path = self.git_dir.join(INDEX);
        let modified = || fs::metadata(&path).and_then(|found| found.modified()).ok();
        let decode = || self.decoded(self.is_set("index.skipHash")).map(Some);
        let index = self.index.recent_snapshot(modified, decode)?;
        let none = || gix_index::File::from_state(State::new(self.hash), &path);
        Ok(Index {
            index: index.unwrap_or_else(|| FileSnapshot::new(none()).into()),
            prefix: self.prefix(),
        })
    }

    fn decoded(&self, skip_hash: bool) -> Result<gix_index::File, RepoError> {
        let (path, options) = (self.git_dir.join(INDEX), decode::Options::default());
        gix_index::File::at_or_default(path, self.hash, skip_hash, options)
            .map_err(|error| self.git_error("read the index", &error))
    }

    /// What the index has and no reply may write.
    pub fn never_written(&self) -> Result<NeverWritten, RepoError> {
        if fs::read(self.git_dir.join(INDEX)).is_ok_and(|index| has_only_files(&index)) {
            return Ok(NeverWritten::default());
        }
        // Skips the checksum, which git does not check either.
        let index = self.decoded(true)?;
        let paths = |wanted: fn(&Entry) -> bool| {
            let entries = index.entries().iter().filter(|entry| wanted(entry));
            let paths = entries.map(|entry| entry.path(&index).to_str_lossy().into_owned());
            paths.collect()
        };
        Ok(NeverWritten {
            submodules: paths(|entry| entry.mode == Mode::COMMIT),
            absent: paths(|entry| entry.flags.contains(Flags::SKIP_WORKTREE)),
        })
    }

    fn prefix(&self) -> Vec<u8> {
        let below = self.root.strip_prefix(&self.top).unwrap_or(Path::new(""));
        let mut prefix = below.as_os_str().as_bytes().to_vec();
        prefix.extend((!prefix.is_empty()).then_some(b'/'));
        prefix
    }

    /// A path from the top, as git writes it, relative to the root; `None` if it is not below the root.
    pub(crate) fn relative<'p>(&self, path: &'p [u8]) -> Option<&'p Path> {
        within(path.strip_prefix(&*self.prefix())?)
    }

    pub(crate) fn submodules(&self) -> Result<Vec<Submodule>, RepoError> {
        let index = self.index()?;
        let mut entries = index
            .entries()
            .filter(|(_, entry)| entry.mode.is_submodule())
            .peekable();
        if entries.peek().is_none() {
            return Ok(Vec::new());
        }
        let modules = code_commit_dir::read(&self.top.join(GITMODULES), MOST_READ, Links::Refused);
        let modules = modules.ok().flatten().unwrap_or_default();
        let modules = File::try_from(modules.as_bstr()).unwrap_or_default();
        let set = |key: String| self.config.string(&*key);
        let submodule = |(_, entry): (usize, &Entry)| {
            let path = entry.path(&index.index);
            let mut sections = modules.sections_by_name("submodule").into_iter().flatten();
            let named = sections.find(|one| one.value("path").is_some_and(|of| of == path));
            let name = named
                .as_ref()
                .and_then(|one| one.header().subsection_name());
            // As they are: the settings of the repository itself may say what is ignored.
            let ignore = name
                .and_then(|name| set(format!("submodule.{name}.ignore")))
                .or_else(|| named.as_ref()?.value("ignore"))
                .or_else(|| set("diff.ignoreSubmodules".to_owned()));
            Some(Submodule {
                path: within(index.name(entry))?.to_owned(),
                commit: entry.id.to_string(),
                ignore: ignore.unwrap_or_default().to_string(),
            })
        };
        Ok(entries.filter_map(submodule).collect())
    }
}

/// Whether the index certainly names neither submodules nor files that are not checked out: version 2 cannot mark the
/// latter, and neither the mode of a submodule nor the reference to a shared index occurs in its bytes. Most indexes
/// are like that, and this search takes a fraction of the time of reading the entries.
fn has_only_files(index: &[u8]) -> bool {
    let mode = Mode::COMMIT.bits().to_be_bytes();
    index.starts_with(b"DIRC\0\0\0\x02") && !index.contains_str(mode) && !index.contains_str("link")
}

/// In the git directory.
pub(crate) const INDEX: &str = "index";
const GITMODULES: &str = ".gitmodules";
/// A larger `.gitmodules` is not read.
const MOST_READ: u64 = 1 << 20;

/// An index may contain any text as a path, even one that leads outside.
fn within(path: &[u8]) -> Option<&Path> {
    let path = Path::new(OsStr::from_bytes(path));
    let is_name = |part| matches!(part, Component::Normal(_));
    path.components().all(is_name).then_some(path)
}
