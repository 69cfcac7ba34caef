//! Where the old content of a file comes from: git's object if it has the same bytes, otherwise a copy.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor};
use std::path::{Path, PathBuf};

use code_commit_dir::{Attributes, Folder};
use code_commit_engine::Problem;
use code_commit_guard::{Difference, Seen, Survey};
use code_commit_repo::{Committed, OnDisk, WorkTree};

use crate::attic::Attic;
use crate::paths::named;
use crate::seal::are_equal;

/// Uncommitted bytes to copy at most, small files first.
const MOST_BYTES: u64 = 256 << 20;
const MOST_FILES: usize = 20_000;
const FILES: &str = "files";
/// Ends the name of each copy: under Landlock a command can list them, and a test runner would take those of tests for
/// tests.
const COPY: &str = ".before";

/// The old content of every file.
#[derive(Debug, Default)]
pub(super) struct Source {
    tree: Option<WorkTree>,
    committed: Option<Committed>,
    copies: BTreeMap<PathBuf, Seen>,
    links: BTreeMap<PathBuf, CString>,
    folder: PathBuf,
    /// Whether the user was told which files have no copies.
    is_told: bool,
}

impl super::Account {
    /// Takes what git has from this work tree, with its configuration as it was opened.
    #[must_use]
    pub fn of(mut self, tree: &WorkTree) -> Self {
        self.source.tree = Some(tree.clone());
        self
    }
}

impl Source {
    /// Copies into `folder` what git could not restore; warns the first time that there is too much.
    pub(super) fn fill(
        &mut self,
        root: &Path,
        before: &Survey,
        folder: &Path,
    ) -> io::Result<Option<Problem>> {
        self.find(root, folder);
        fs::create_dir_all(&self.folder)?;
        let top = Folder::open(root)?;
        self.links.clear();
        let mut wanted = Vec::new();
        for (path, seen) in before.iter() {
            let is_link = seen.kind().is_symlink();
            if is_link {
                self.links
                    .extend(link(&top, path).map(|target| (path.clone(), target)));
            }
            // Git has no attributes.
            let is_whole = || self.is_in_git(path, seen) && !Attributes::are_at(&root.join(path));
            let counts = is_link || (seen.kind().is_file() && !is_whole());
            if counts && self.copies.get(path) != Some(seen) {
                wanted.push((seen.is_ignored, seen.len, path));
            }
        }
        wanted.sort_unstable();
        let (mut without, mut room) = (Vec::new(), MOST_BYTES);
        for (count, (is_ignored, len, path)) in wanted.into_iter().enumerate() {
            let copy = self.place(path);
            let fits = len <= room && count < MOST_FILES;
            if !fits || copy_anew(&root.join(path), &copy).is_err() {
                // Of what is ignored the user hears if it is lost.
                without.extend((!is_ignored).then(|| path.display().to_string()));
                continue;
            }
            room -= len;
            self.copies
                .extend(before.get(path).map(|seen| (path.clone(), *seen)));
        }
        Ok(
            (!without.is_empty() && !std::mem::replace(&mut self.is_told, true))
                .then(|| too_much(&without)),
        )
    }

    /// Uses the copies left by a killed run.
    pub(super) fn reopen(&mut self, root: &Path, before: &Survey, folder: &Path) {
        self.find(root, folder);
        for (path, seen) in before.iter() {
            let copy = self.place(path);
            let is_whole = |found: fs::Metadata| found.is_file() && found.len() == seen.len;
            if seen.kind().is_symlink() {
                let target = fs::read_link(&copy).ok();
                let target = target.and_then(|target| {
                    CString::new(target.into_os_string().into_encoded_bytes()).ok()
                });
                self.links
                    .extend(target.map(|target| (path.clone(), target)));
            } else if fs::symlink_metadata(&copy).is_ok_and(is_whole) {
                self.copies.insert(path.clone(), *seen);
            }
        }
    }

    /// As it was opened when the run began: only its index is read anew. Recovery, which has no run, opens it here.
    pub(super) fn tree(&mut self, root: &Path) -> Option<&WorkTree> {
        self.tree = self.tree.take().or_else(|| WorkTree::at(root).ok());
        self.tree.as_ref()
    }

    fn find(&mut self, root: &Path, folder: &Path) {
        self.committed = self.tree(root).and_then(|tree| tree.committed().ok());
        self.folder = folder.join(FILES);
    }

    fn place(&self, path: &Path) -> PathBuf {
        let mut place = self.folder.join(path).into_os_string();
        place.push(COPY);
        place.into()
    }

    fn is_in_git(&self, path: &Path, seen: &Seen) -> bool {
        self.committed
            .as_ref()
            .is_some_and(|committed| committed.has(path, on_disk(seen)))
    }

    /// The old content of a file, if available.
    pub(super) fn read(&self, path: &Path, seen: &Seen) -> Option<Box<dyn BufRead + 'static>> {
        if self.copies.contains_key(path) {
            return Some(Box::new(BufReader::new(self.copy(path)?)));
        }
        let content = self.committed.as_ref()?.read(path, on_disk(seen))?;
        Some(Box::new(Cursor::new(content)))
    }

    /// The copy of a file, which has its attributes, too. Git has those that have none.
    pub(super) fn copy(&self, path: &Path) -> Option<File> {
        self.copies.get(path)?;
        code_commit_dir::open_regular(&self.place(path))
            .ok()
            .flatten()
    }

    /// Moves the copy of what was there to the attic; whether there was one.
    pub(super) fn set_aside(&self, one: &Difference, attic: &mut Attic<'_>) -> bool {
        let has_copy = self.copies.get(&one.path) == one.before.as_ref();
        let copy = self.place(&one.path);
        let (Some(folder), Some(name)) = (copy.parent(), copy.file_name()) else {
            return false;
        };
        has_copy
            && Folder::open(folder)
                .and_then(|folder| attic.take_in(&folder, name, &one.path))
                .is_ok()
    }

    /// The old target of a symlink.
    pub(super) fn target(&self, path: &Path) -> Option<&CString> {
        self.links.get(path)
    }

    /// Whether only the times differ.
    pub(super) fn is_same(&self, root: &Path, one: &Difference) -> bool {
        let (Some(was), Some(is)) = (&one.before, &one.after) else {
            return false;
        };
        if was.mode != is.mode {
            return false;
        }
        let path = &one.path;
        if was.kind().is_symlink() {
            let now = Folder::open(root).ok().and_then(|root| link(&root, path));
            return now.is_some() && now.as_ref() == self.links.get(path);
        }
        if !was.kind().is_file() || was.len != is.len {
            return was.kind().is_dir();
        }
        let now = Folder::open(root)
            .and_then(|root| root.open_file_below(path))
            .ok()
            .flatten();
        match (self.read(path, was), now) {
            (Some(before), Some(now)) => are_equal(before, BufReader::new(now)).unwrap_or(false),
            _ => false,
        }
    }
}

fn on_disk(seen: &Seen) -> OnDisk {
    OnDisk {
        len: seen.len,
        mtime: seen.mtime,
        ctime: seen.ctime,
        inode: seen.id.1,
    }
}

fn link(root: &Folder, path: &Path) -> Option<CString> {
    root.folder_of(path).ok()?.read_link(path.file_name()?).ok()
}

fn copy_anew(from: &Path, to: &Path) -> io::Result<()> {
    code_commit_dir::remove(to)?;
    code_commit_dir::copy(from, to)
}

fn too_much(without: &[String]) -> Problem {
    let message = format!(
        "not committed, and too much to copy or not readable: {}; undo cannot restore what a build changes of it",
        named(without)
    );
    Problem::new("no-copy", message)
}
