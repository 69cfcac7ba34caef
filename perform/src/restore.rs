//! Restores paths of a tree. What is there goes to the attic.
//!
//! Every lookup starts at the root's descriptor and follows no symlink: a command may have left one anywhere.

use std::ffi::{CString, OsString};
use std::io::{self, BufRead};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use code_commit_apply::{Action, Force, Lock, UndoError, Undone};
use code_commit_dir::{Folder, Inode};
use rustix::fs::{FileType, Mode, Stat};

use crate::attic::Attic;
use crate::fault::Fault;
use crate::paths::last;

/// What was at a path.
pub(crate) enum Was<'w> {
    /// Nothing, or what cannot be made again.
    Nothing,
    File(&'w mut dyn BufRead, &'w Inode),
    Link(&'w CString),
    /// With its permission bits, like a folder.
    Fifo(u32),
    /// Its content is restored separately.
    Folder(u32),
}

/// Restores one path after the other.
pub(crate) struct Restore<'t, 'r> {
    pub(crate) root: &'t Folder,
    /// The permission bits that a folder had, if they are known.
    pub(crate) mode_of: &'t dyn Fn(&Path) -> Option<u32>,
    pub(crate) attic: &'t mut Attic<'r>,
}

/// Folders that were opened to work in them, with the permission bits that they get afterwards.
type Closed = Vec<(Folder, OsString, u32)>;

impl Restore<'_, '_> {
    pub(crate) fn restore(&mut self, path: &Path, was: Was<'_>) -> io::Result<()> {
        let mut closed = Vec::new();
        let restored = self.make(path, was, &mut closed);
        for (above, name, mode) in closed.iter().rev() {
            code_commit_dir::reach::set_mode(above.as_fd(), name, Mode::from_raw_mode(*mode))?;
        }
        restored
    }

    fn make(&mut self, path: &Path, was: Was<'_>, closed: &mut Closed) -> io::Result<()> {
        let name = last(path)?;
        match was {
            Was::Nothing => match self.root.folder_of(path) {
                Ok(folder) => self.attic.clear(&folder, name, path),
                // It may have gone with its folder.
                Err(_) => Ok(()),
            },
            Was::Folder(mode) => {
                let above = self.folder_of(path, closed)?;
                self.make_folder(&above, path, Some(mode), closed)
            }
            Was::File(content, inode) => {
                self.cleared(path, closed)?.make_file(name, content, inode)
            }
            Was::Link(target) => self.cleared(path, closed)?.make_link(name, target),
            Was::Fifo(mode) => self.cleared(path, closed)?.make_fifo(name, mode),
        }
    }

    /// The folder that holds the path, which is free now.
    fn cleared(&mut self, path: &Path, closed: &mut Closed) -> io::Result<Folder> {
        let folder = self.folder_of(path, closed)?;
        self.attic.clear(&folder, last(path)?, path)?;
        Ok(folder)
    }

    /// The folder that holds the path.
    fn folder_of(&mut self, path: &Path, closed: &mut Closed) -> io::Result<Folder> {
        let (mut folder, mut so_far) = (self.root.try_clone()?, PathBuf::new());
        for name in path.parent().into_iter().flat_map(Path::iter) {
            so_far.push(name);
            self.make_folder(&folder, &so_far, (self.mode_of)(&so_far), closed)?;
            folder = folder.open_in(name)?;
        }
        Ok(folder)
    }

    /// Makes a folder, if something else or nothing is there, and opens it for its owner.
    fn make_folder(
        &mut self,
        above: &Folder,
        path: &Path,
        was: Option<u32>,
        closed: &mut Closed,
    ) -> io::Result<()> {
        let name = last(path)?;
        let is_folder = |stat: &Stat| FileType::from_raw_mode(stat.st_mode).is_dir();
        let is = above
            .stat(name)?
            .filter(is_folder)
            .map(|stat| stat.st_mode & 0o7777);
        if is.is_none() {
            self.attic.clear(above, name, path)?;
            above.make_folder(name, OPEN)?;
        }
        let wanted = was.unwrap_or(is.unwrap_or(0o755) | OPEN);
        if wanted & OPEN != OPEN {
            closed.push((above.try_clone()?, name.to_owned(), wanted));
        }
        if is != Some(wanted | OPEN) {
            code_commit_dir::reach::set_mode(
                above.as_fd(),
                name,
                Mode::from_raw_mode(wanted | OPEN),
            )?;
        }
        Ok(())
    }
}

/// What an owner needs to work in a folder.
const OPEN: u32 = 0o700;

/// Undoes sets of changes, oldest first, whatever somebody has written there since: that goes to the attic. Gives the
/// paths.
pub(crate) fn undo(
    lock: &Lock,
    root: &Path,
    sets: &[PathBuf],
    attic: &mut Attic<'_>,
) -> Result<Vec<String>, Fault> {
    let Some(newest) = sets.last() else {
        return Ok(Vec::new());
    };
    let left = code_commit_apply::hashes_after(sets).map_err(Fault::Restore)?;
    let undone = undo_past_obstacles(lock, root, sets, attic)?;
    // An earlier attempt may have been killed, too.
    for entry in code_commit_dir::list(newest).map_err(Fault::file("list", newest))? {
        let folder = entry.map_err(Fault::file("list", newest))?.path();
        let Ok(Some(replaced)) = code_commit_apply::read_applied(&folder) else {
            continue;
        };
        let kept = Folder::open(&folder).map_err(Fault::file("open", &folder))?;
        for (number, change) in replaced.changes.iter().enumerate() {
            let came_out = change.before_sha256.is_some() && change.action != Action::None;
            if came_out && left.get(&change.path) != Some(&change.before_sha256) {
                let name = code_commit_apply::kept_name(number);
                let taken = attic.take_in(&kept, name.as_ref(), change.path.as_ref());
                taken.map_err(Fault::file("keep", &folder.join(name)))?;
            }
        }
    }
    Ok(undone
        .applied
        .changes
        .into_iter()
        .map(|change| change.path)
        .collect())
}

/// Undoes sets of changes, oldest first. What somebody has written there since is kept beside the newest set; the attic
/// gets only what would block the undo.
pub(crate) fn undo_past_obstacles(
    lock: &Lock,
    root: &Path,
    sets: &[PathBuf],
    attic: &mut Attic<'_>,
) -> Result<Undone, Fault> {
    let undo = || code_commit_apply::undo(lock, root, sets, Force::Yes);
    let undone = match undo() {
        Err(UndoError::Blocked { .. }) => {
            make_way(root, sets, attic)?;
            undo()
        }
        done => done,
    };
    undone.map_err(Fault::Restore)
}

/// Moves to the attic what would block an undo of these sets: a folder, a symlink or a FIFO in the place of a file, or
/// something other than a folder above it.
fn make_way(root: &Path, sets: &[PathBuf], attic: &mut Attic<'_>) -> Result<(), Fault> {
    for (path, was) in code_commit_apply::hashes_before(sets).map_err(Fault::Restore)? {
        let path = Path::new(&path);
        // An undo replaces a file, and leaves a folder where there was no file.
        let may_stay = |kind: FileType| kind.is_file() || (kind.is_dir() && was.is_none());
        let found = code_commit_dir::obstacle::find(root, path).ok().flatten();
        if found.is_some_and(|(place, kind)| place != path || !may_stay(kind)) {
            // If it cannot be moved, the next attempt reports the obstacle.
            let _ = attic.take_from(root, path);
        }
    }
    Ok(())
}
