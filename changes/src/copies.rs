//! Where the old content of a file comes from: git's object if it has the same bytes, otherwise a copy.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::{Attributes, Folder, Found, Inode, reach};
use code_commit_logging::name_as_text;
use code_commit_repo::{Committed, Git, RepoError, WorkTree};

use crate::backup::{Backup, last, place};
use crate::change::{Change, Seen};
use crate::restore::Was;
use crate::snapshot::Snapshot;

/// Uncommitted bytes to copy at most, small files first.
const MOST_BYTES: u64 = 256 << 20;
const MOST_FILES: usize = 20_000;
const FILES: &str = "files";
/// Ends the name of each copy: under Landlock a command can list them, and a test runner would take those of tests for
/// tests.
const COPY: &str = ".before";

/// The old content of every file.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    pub(crate) tree: Option<WorkTree>,
    /// Who is asked for what git has; without one, all of it is copied.
    pub(crate) git: Option<Git>,
    committed: Option<Arc<Committed>>,
    kept: BTreeMap<PathBuf, Seen>,
    folder: PathBuf,
    root: PathBuf,
    /// The tree, if that is unchanged: then it has all of it.
    pub(crate) unchanged: Option<Folder>,
    /// Whether the user was told which files have no copies.
    pub(crate) is_told: bool,
}

impl Copies {
    /// Copies into `folder` what git could not restore; gives what there is too much of, or cannot be read. Of what is
    /// ignored the user hears if it is lost. Fails on a full disk where the copies `is_needed`.
    pub(crate) fn fill(
        &mut self,
        root: &Path,
        before: &Snapshot,
        folder: &Path,
        is_needed: bool,
    ) -> io::Result<Vec<String>> {
        if self.root != root || self.folder != folder.join(FILES) {
            self.kept.clear();
            root.clone_into(&mut self.root);
        }
        self.folder = folder.join(FILES);
        fs::create_dir_all(folder)?;
        if self.kept.is_empty() {
            // A killed run may have left some.
            reach::remove(Folder::open(folder)?.as_fd(), FILES.as_ref())?;
        }
        fs::create_dir_all(&self.folder)?;
        let (from, to) = (Folder::open(root)?, Folder::open(&self.folder)?);
        let is_wanted = |(path, seen): &&(PathBuf, Seen)| {
            let counts = seen.kind().is_symlink() || seen.kind().is_file();
            counts && !seen.is_product && self.kept.get(path) != Some(seen)
        };
        let mut wanted: Vec<_> = before.uncommitted().filter(is_wanted).collect();
        wanted.sort_unstable_by_key(|(path, seen)| (seen.is_ignored, seen.len, path));
        let (mut without, mut room) = (Vec::new(), MOST_BYTES);
        for (count, (path, seen)) in wanted.into_iter().enumerate() {
            let fits = seen.len <= room && count < MOST_FILES;
            let copied = if fits {
                copy(&from, &to, path)
            } else {
                Err(io::ErrorKind::FileTooLarge.into())
            };
            match copied {
                // Nothing has been changed yet.
                Err(full) if full.kind() == io::ErrorKind::StorageFull && is_needed => {
                    return Err(full);
                }
                Err(_) => {
                    without.extend((!seen.is_ignored).then(|| name_as_text(path).into_owned()));
                    continue;
                }
                Ok(()) => {}
            }
            room -= seen.len;
            self.kept.insert(path.clone(), *seen);
        }
        Ok(without)
    }

    /// Uses the copies left by a killed run.
    pub(crate) fn reopen(&mut self, root: &Path, before: &Snapshot, folder: &Path) {
        root.clone_into(&mut self.root);
        self.folder = folder.join(FILES);
        let whole = |(path, seen): &(PathBuf, Seen)| {
            let (folder, name) = self.at(path).ok()?;
            let found = folder.stat(&name).ok()??;
            let found = Seen::of(&found);
            (found.kind() == seen.kind() && found.len == seen.len).then(|| (path.clone(), *seen))
        };
        self.kept = before.iter().filter_map(whole).collect();
    }

    /// What git has, now. The repository is as it was opened when the run began; recovery, which has no run, opens it here.
    pub(crate) fn committed(&mut self, root: &Path) -> Result<Option<Arc<Committed>>, RepoError> {
        self.tree = self.tree.take().or_else(|| WorkTree::at(root).ok());
        self.committed = match &self.tree {
            Some(tree) => Some(Arc::new(tree.committed(self.git.as_ref())?)),
            None => None,
        };
        Ok(self.committed.clone())
    }

    /// The folder with the copy of a path, and its name there.
    fn at(&self, path: &Path) -> io::Result<(Folder, OsString)> {
        place_of(&Folder::open(&self.folder)?, path)
    }

    /// The old content of a file; `None` if nobody has it.
    pub(crate) fn read(&self, path: &Path, seen: &Seen) -> io::Result<Option<Box<dyn BufRead>>> {
        if self.unchanged.is_some() || self.kept.contains_key(path) {
            let copy = self.copy(path)?;
            return Ok(copy.map(|copy| Box::new(BufReader::new(copy)) as _));
        }
        let committed = self.committed.as_ref();
        let content = committed.and_then(|committed| committed.read(path, &seen.on_disk()));
        Ok(content.map(|content| Box::new(Cursor::new(content)) as _))
    }

    /// The copy of a file, which has its attributes, too. Git has those that have none.
    pub(crate) fn copy(&self, path: &Path) -> io::Result<Option<File>> {
        if let Some(tree) = &self.unchanged {
            return Ok(there(tree.open_file_below(path))?.flatten());
        }
        let Some(was) = self.kept.get(path) else {
            return Ok(None);
        };
        let open = || {
            let (folder, name) = self.at(path)?;
            folder.open_file(name)
        };
        let Some(file) = there(open())? else {
            return Ok(None);
        };
        let is_whole = file.metadata()?.len() == was.len;
        Ok(is_whole.then_some(file))
    }

    /// The old target of a symlink.
    fn target(&self, path: &Path) -> io::Result<Option<CString>> {
        let read = || {
            let (folder, name) = match &self.unchanged {
                Some(tree) => (tree.folder_of(path)?, last(path)?.to_owned()),
                None => self.at(path)?,
            };
            folder.read_link(&name)
        };
        if self.unchanged.is_none() && !self.kept.contains_key(path) {
            return Ok(None);
        }
        there(read())
    }

    /// What was at the path of a change; `None` if nothing has it.
    pub(crate) fn was(&self, change: &Change) -> io::Result<Option<Was>> {
        let Some(was) = change.before else {
            return Ok(Some(Was::Nothing));
        };
        let (path, mode) = (&change.path, was.mode & 0o7777);
        Ok(match was.kind() {
            kind if kind.is_dir() => Some(Was::Folder(mode)),
            kind if kind.is_fifo() => Some(Was::Fifo(mode)),
            kind if kind.is_symlink() => self.target(path)?.map(Was::Link),
            kind if kind.is_file() => {
                let copy = self.copy(path)?;
                let model = copy.map(|copy| Attributes::of(&copy)).transpose()?;
                let inode = Inode {
                    mode,
                    owner: was.owner,
                    len: was.len,
                    modified: was.mtime,
                    attributes: model.unwrap_or_default(),
                };
                self.read(path, &was)?
                    .map(|content| Was::File(content, inode))
            }
            _ => None,
        })
    }

    /// Moves the copy of what was there to the backup; whether there was one.
    pub(crate) fn set_aside(&self, one: &Change, backup: &mut Backup<'_>) -> bool {
        let has_copy = self.kept.get(&one.path) == one.before.as_ref();
        has_copy
            && self
                .at(&one.path)
                .and_then(|(folder, name)| backup.take_in(&folder, &name, &one.path))
                .is_ok()
    }

    /// Whether only the times differ.
    pub(crate) fn is_same(&self, root: &Folder, one: &Change) -> bool {
        let (Some(was), Some(is)) = (&one.before, &one.after) else {
            return false;
        };
        if was.mode != is.mode {
            return false;
        }
        let path = &one.path;
        if was.kind().is_symlink() {
            let now = || root.folder_of(path).ok()?.read_link(last(path).ok()?).ok();
            let was = self.target(path).ok().flatten();
            return was.is_some_and(|target| now() == Some(target));
        }
        if !was.kind().is_file() || was.len != is.len {
            return !was.kind().is_file();
        }
        let now = root
            .folder_of(path)
            .and_then(|folder| folder.open_file(last(path)?));
        match (self.read(path, was), now) {
            (Ok(Some(before)), Ok(now)) => are_equal(before, BufReader::new(now)).unwrap_or(false),
            _ => false,
        }
    }
}

/// `None` for what is not there any more, or may not be read. A disk that fails now may work when it is tried again.
fn there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    let is_closed = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    match found {
        Err(error) if reach::is_gone(&error) || is_closed(&error) => Ok(None),
        found => found.map(Some),
    }
}

fn place_of(top: &Folder, path: &Path) -> io::Result<(Folder, OsString)> {
    let (folder, name) = place(top, path)?;
    let mut name = name.to_owned();
    name.push(COPY);
    Ok((folder, name))
}

/// Copies a file or a symlink, not synced: a power cut may take both.
fn copy(from: &Folder, to: &Folder, path: &Path) -> io::Result<()> {
    let (folder, name) = place_of(to, path)?;
    reach::remove(folder.as_fd(), &name)?;
    match from.look(path)? {
        Found::File { content, inode } => {
            let mode = inode.mode & 0o777 | 0o600;
            folder.make_file(
                &name,
                &mut BufReader::new(content),
                &Inode { mode, ..inode },
            )
        }
        Found::Link(target) => folder.make_link(&name, &target),
        Found::Absent | Found::Other(_) => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Whether two files have the same content, without reading either into memory.
fn are_equal(mut one: impl BufRead, mut other: impl BufRead) -> io::Result<bool> {
    loop {
        let (a, b) = (one.fill_buf()?, other.fill_buf()?);
        let count = a.len().min(b.len());
        if count == 0 {
            return Ok(a.is_empty() && b.is_empty());
        }
        if a.get(..count) != b.get(..count) {
            return Ok(false);
        }
        one.consume(count);
        other.consume(count);
    }
}
