//! The files of a folder, with enough of each to detect changes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use code_commit_logging::name_as_text;
use code_commit_repo::WorkTree;
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};

use crate::account::layout::RUN_BY_GIT;
use code_commit_dir::reach::{self, Descent, LOOK};

/// Git opens paths of at most 4,096 bytes, including the work tree's folder.
const LONGEST: usize = 2048;
const DOT_GIT: &str = ".git";

/// Any write changes the inode's change time, which cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    inode: u64,
    bytes: i64,
    mode: u32,
    changed: (i64, u64),
}

impl Stamp {
    fn of(data: &Stat) -> Self {
        let changed = (data.st_ctime, data.st_ctime_nsec);
        Self {
            inode: data.st_ino,
            bytes: data.st_size,
            mode: data.st_mode,
            changed,
        }
    }

    pub(super) fn bytes(&self) -> i64 {
        self.bytes
    }

    pub(super) fn is_link(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Symlink
    }

    /// Whether its kind can be copied.
    pub(super) fn is_copied(&self) -> bool {
        self.is_link() || FileType::from_raw_mode(self.mode) == FileType::RegularFile
    }

    /// Whether the last change was before that Unix second.
    pub(super) fn is_older_than(&self, second: i64) -> bool {
        self.changed.0 < second
    }
}

/// A file: its stamp, and its name below the root as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) stamp: Stamp,
    pub(super) place: Place,
}

impl Found {
    /// Whether git and our patterns, which use UTF-8, cannot name it.
    pub(super) fn is_odd(&self) -> bool {
        self.place.0.to_str().is_none() || self.place.0.as_os_str().len() > LONGEST
    }
}

/// A file name below the root, as bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub(super) struct Place(pub(super) PathBuf);

impl Place {
    pub(super) fn name(&self) -> &OsStr {
        self.0.file_name().unwrap_or_default()
    }
}

/// A name as JSON can hold it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Written> for Place {
    fn from(written: Written) -> Self {
        Self(match written {
            Written::Text(text) => text.into(),
            Written::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

impl From<Place> for Written {
    fn from(Place(path): Place) -> Self {
        path.into_os_string()
            .into_string()
            .map_or_else(|odd| Self::Bytes(odd.into_vec()), Self::Text)
    }
}

/// The files of a folder, by relative path as given by [`name_as_text`]. Symlinks count as files and are not
/// followed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::agents) struct Tree {
    pub(super) files: BTreeMap<String, Found>,
    pub(super) folders: BTreeSet<Place>,
    /// When each folder was last changed; without those in which the harness itself keeps something.
    #[serde(skip)]
    ages: BTreeMap<PathBuf, (i64, u64)>,
    /// Folders that could not be read, and why.
    #[serde(skip)]
    pub(super) unread: Vec<(String, io::Error)>,
}

impl Tree {
    /// Everything, or an error.
    pub(in crate::agents) fn whole(root: &Path, skip: &[String]) -> io::Result<Self> {
        let mut tree = Self::of(root, skip);
        match tree.unread.pop() {
            None => Ok(tree),
            Some((path, error)) => Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
        }
    }

    /// As much as can be read. Our own unreadable files and folders are made readable.
    pub(super) fn of(root: &Path, skip: &[String]) -> Self {
        let mut tree = Self::default();
        match reach::root(root, LOOK) {
            Ok(top) => {
                let age = rustix::fs::fstat(&top).map(|data| Stamp::of(&data).changed);
                tree.ages.extend(age.map(|age| (PathBuf::new(), age)));
                tree.walk(Descent::from(top, LOOK), skip);
            }
            Err(error) if reach::is_gone(&error) => {}
            Err(error) => tree.unread.push((".".to_owned(), error)),
        }
        tree
    }

    /// When anything was last changed, in seconds and nanoseconds since 1970.
    fn last_changed(&self) -> (i64, u64) {
        let files = self.files.values().map(|found| found.stamp.changed);
        files
            .chain(self.ages.values().copied())
            .max()
            .unwrap_or_default()
    }

    pub(in crate::agents) fn paths(&self) -> impl Iterator<Item = &str> {
        let paths = self.files.keys().map(String::as_str);
        paths.filter(|path| !is_in_git(path))
    }

    fn walk(&mut self, mut way: Descent, skip: &[String]) {
        let mut place = PathBuf::new();
        let mut left = vec![self.look(&way, &place, skip)];
        while let Some(folders) = left.last_mut() {
            let Some(name) = folders.pop() else {
                left.pop();
                if let Err(error) = way.leave() {
                    return self.unread.push((name_as_text(&place).into_owned(), error));
                }
                place.pop();
                continue;
            };
            place.push(&name);
            match way.enter(&name) {
                Ok(()) => {
                    self.folders.insert(Place(place.clone()));
                    left.push(self.look(&way, &place, skip));
                    continue;
                }
                // Gone since it was listed.
                Err(error) if reach::is_gone(&error) => {}
                Err(error) => self.unread.push((name_as_text(&place).into_owned(), error)),
            }
            place.pop();
        }
    }

    /// Adds the files of the current folder; gives its subfolders.
    fn look(&mut self, way: &Descent, folder: &Path, skip: &[String]) -> Vec<OsString> {
        let mut folders = Vec::new();
        let names = reach::names(&way.here).unwrap_or_else(|error| {
            self.unread.push((name_as_text(folder).into_owned(), error));
            Vec::new()
        });
        let is_git = is_in_git(&name_as_text(&folder.join("x")));
        for name in names {
            if is_git && folder.ends_with(DOT_GIT) && !RUN_BY_GIT.iter().any(|run| name == **run) {
                continue;
            }
            let place = folder.join(&name);
            let path = name_as_text(&place).into_owned();
            let is_at = |skipped: &String| skipped.strip_prefix('/').unwrap_or(skipped) == path;
            if let Some(skipped) = skip
                .iter()
                .find(|skipped| is_at(skipped) || name == ***skipped)
            {
                if skipped.get(1..).is_some_and(|path| path.contains('/')) {
                    self.ages.remove(folder);
                }
                if name == DOT_GIT && !folder.as_os_str().is_empty() && is_folder(way, &name) {
                    folders.push(name);
                }
                continue;
            }
            match reach::look(&way.here, &name) {
                Ok(Some(data)) if reach::kind(&data) == FileType::Directory => {
                    self.ages.insert(place, Stamp::of(&data).changed);
                    folders.push(name);
                }
                Ok(Some(data)) => {
                    self.files.insert(
                        path,
                        Found {
                            stamp: Stamp::of(&data),
                            place: Place(place),
                        },
                    );
                }
                // Gone since it was listed.
                Ok(None) => {}
                Err(error) => self.unread.push((path, error)),
            }
        }
        folders
    }
}

/// Whether a path is in the `.git` of a repository in the tree. Of these only that is listed which makes git run
/// programs; the root's own is skipped.
pub(super) fn is_in_git(path: &str) -> bool {
    path.split('/').rev().skip(1).any(|name| name == DOT_GIT)
}

fn is_folder(way: &Descent, name: &OsStr) -> bool {
    let found = reach::look(&way.here, name).ok().flatten();
    found.is_some_and(|data| reach::kind(&data) == FileType::Directory)
}

/// Whether nothing below a folder was changed after this file was written last.
pub(in crate::agents) fn is_untouched_since(root: &Path, skip: &[String], file: &Path) -> bool {
    let tree = Tree::whole(root, skip);
    let written = file.metadata().map(|data| {
        (
            data.mtime(),
            u64::try_from(data.mtime_nsec()).unwrap_or_default(),
        )
    });
    tree.is_ok_and(|tree| written.is_ok_and(|written| tree.last_changed() <= written))
}

/// Files that git tracks or would track: not ignored. `None` without a repository.
pub(super) fn git_knows(tree: Option<WorkTree>, root: &Path) -> Option<BTreeSet<String>> {
    let tree = tree.or_else(|| WorkTree::at(root).ok())?;
    let files = tree.tracked_paths().ok()?.into_iter();
    let names = files.chain(tree.untracked().ok()?);
    Some(
        names
            .filter_map(|path| path.into_os_string().into_string().ok())
            .collect(),
    )
}
