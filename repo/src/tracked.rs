//! The files that git tracks, from its index.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, ByteSlice as _};
use gix::index::Entry;
use gix::index::entry::{Mode, Stage};

use crate::{RepoError, WorkTree};

/// A file that git tracks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracked {
    /// Relative to the root of the run.
    pub path: String,
    /// Its length when git last checked; only an estimate.
    pub bytes: u64,
}

/// Tracked entries that are not regular files with a UTF-8 name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Besides {
    /// Symbolic links, relative to the root of the run.
    pub links: Vec<String>,
    /// Files and links whose names are not UTF-8.
    pub not_utf8: Vec<PathBuf>,
}

impl WorkTree {
    /// The regular files below the root that git tracks, relative to the root, in git's order, with
    /// the length that git last saw. Leaves out names that are not UTF-8; see
    /// [`besides`](Self::besides).
    pub fn tracked(&self) -> Result<Vec<Tracked>, RepoError> {
        let found =
            self.entries(|entry, _| matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE))?;
        let named = found.into_iter().filter_map(|(path, _, bytes)| {
            Some(Tracked {
                path: named(path).ok()?,
                bytes,
            })
        });
        Ok(named.collect())
    }

    /// Everything below the root that git tracks, except submodules, relative to the root, in git's order.
    pub fn tracked_paths(&self) -> Result<Vec<PathBuf>, RepoError> {
        let found =
            self.entries(|entry, _| entry.mode != Mode::COMMIT && entry.mode != Mode::DIR)?;
        Ok(found.into_iter().map(|(path, ..)| path).collect())
    }

    /// The files that a merge left in conflict, relative to the root.
    pub fn conflicted(&self) -> Result<Vec<PathBuf>, RepoError> {
        let found = self.entries(|entry, _| entry.stage() != Stage::Unconflicted)?;
        Ok(found.into_iter().map(|(path, ..)| path).collect())
    }

    /// What git tracks below the root in addition to [`tracked`](Self::tracked), except submodules.
    pub fn besides(&self) -> Result<Besides, RepoError> {
        let found = self.entries(|entry, path| {
            let mode = entry.mode;
            mode == Mode::SYMLINK
                || (mode != Mode::COMMIT && mode != Mode::DIR && std::str::from_utf8(path).is_err())
        })?;
        let mut besides = Besides::default();
        for (path, mode, _) in found {
            match named(path) {
                Ok(link) if mode == Mode::SYMLINK => besides.links.push(link),
                // A file in a folder above the root whose name has another encoding.
                Ok(_) => (),
                Err(odd) => besides.not_utf8.push(odd),
            }
        }
        Ok(besides)
    }

    /// The index entries whose paths relative to the root begin with one of these.
    pub(crate) fn beginning_with(
        &self,
        beginnings: &[String],
        index: &gix::index::State,
    ) -> Vec<PathBuf> {
        let below = self.root.strip_prefix(&self.top).unwrap_or(Path::new(""));
        let entries = beginnings.iter().flat_map(|beginning| {
            // Joined as text, so that a trailing slash is kept and there is no leading one.
            let from_top = below.join(beginning);
            index
                .prefixed_entries(from_top.as_os_str().as_bytes().as_bstr())
                .unwrap_or_default()
        });
        entries
            .filter_map(|entry| self.relative(entry.path(index)))
            .collect()
    }

    /// The index entries below the root that are selected, by their path from git's top, too, with the length
    /// that git last saw. A conflicted file, of which the index has up to three versions, occurs once.
    fn entries(
        &self,
        wanted: impl Fn(&Entry, &BStr) -> bool,
    ) -> Result<Vec<(PathBuf, Mode, u64)>, RepoError> {
        let index = self.index()?;
        let entries = index
            .entries()
            .iter()
            .filter(|entry| wanted(entry, entry.path(&index)));
        let below = |entry: &Entry| {
            Some((
                self.relative(entry.path(&index))?,
                entry.mode,
                u64::from(entry.stat.size),
            ))
        };
        let mut found: Vec<_> = entries.filter_map(below).collect();
        found.dedup_by(|one, other| one.0 == other.0);
        Ok(found)
    }
}

/// The path as text, or unchanged if it is not UTF-8.
fn named(path: PathBuf) -> Result<String, PathBuf> {
    path.into_os_string().into_string().map_err(PathBuf::from)
}
