//! Restores paths of a tree. What is there goes to the backup.
//!
//! Every lookup starts at the root's descriptor and follows no symlink: a command may have left one anywhere.

use std::ffi::{CString, OsString};
use std::io::{self, BufRead};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use code_commit_dir::{Folder, Inode};
use code_commit_logging::name_as_text;
use rustix::fs::{FileType, Mode, Stat};

use crate::backup::{Backup, last};
use crate::change::Change;
use crate::copies::Copies;
use crate::snapshot::Snapshot;

/// What was at a path.
pub(crate) enum Was {
    /// Nothing, or what cannot be made again.
    Nothing,
    File(Box<dyn BufRead>, Inode),
    Link(CString),
    /// With its permission bits, like a folder.
    Fifo(u32),
    /// Its content is restored separately.
    Folder(u32),
}

/// How often a path is restored: somebody may save it at that moment.
const TRIES: usize = 3;

/// What could not be restored.
#[derive(Debug, Default)]
pub(crate) struct Unrestored {
    /// The old content is not available: it is left as it is, since removing the new one gains nothing.
    pub(crate) gone: Vec<String>,
    pub(crate) lost: Vec<String>,
}

/// Restores these paths; what is there now goes to the backup, new folders with all their content.
pub(crate) fn put_back<'c>(
    root: &Folder,
    before: &Snapshot,
    copies: &Copies,
    changes: impl IntoIterator<Item = &'c Change>,
    backup: &mut Backup<'_>,
) -> Unrestored {
    let mut restore = Restore {
        root,
        before,
        backup,
    };
    let mut unrestored = Unrestored::default();
    for one in changes {
        let mut restored = || {
            let Some(was) = copies.was(one)? else {
                return Ok(false);
            };
            restore.restore(&one.path, was).map(|()| true)
        };
        let list = match (0..TRIES).find_map(|_| io::Result::ok(restored())) {
            Some(true) => continue,
            Some(false) => &mut unrestored.gone,
            None => &mut unrestored.lost,
        };
        list.push(name_as_text(&one.path).into_owned());
    }
    unrestored
}

/// Restores one path after the other.
struct Restore<'t, 'r> {
    root: &'t Folder,
    before: &'t Snapshot,
    backup: &'t mut Backup<'r>,
}

/// Folders that were opened to work in them, with the permission bits that they get afterwards.
type Closed = Vec<(Folder, OsString, u32)>;

impl Restore<'_, '_> {
    fn restore(&mut self, path: &Path, was: Was) -> io::Result<()> {
        let mut closed = Vec::new();
        let restored = self.make(path, was, &mut closed);
        for (above, name, mode) in closed.iter().rev() {
            code_commit_dir::reach::set_mode(above.as_fd(), name, Mode::from_raw_mode(*mode))?;
        }
        restored
    }

    fn make(&mut self, path: &Path, was: Was, closed: &mut Closed) -> io::Result<()> {
        let name = last(path)?;
        match was {
            Was::Nothing => match self.root.folder_of(path) {
                Ok(folder) => self.backup.clear(&folder, name, path),
                // It may have gone with its folder.
                Err(_) => Ok(()),
            },
            Was::Folder(mode) => {
                let above = self.folder_of(path, closed)?;
                self.make_folder(&above, path, Some(mode), closed)
            }
            Was::File(mut content, inode) => {
                self.cleared(path, closed)?
                    .make_file(name, &mut content, &inode)
            }
            Was::Link(target) => self.cleared(path, closed)?.make_link(name, &target),
            Was::Fifo(mode) => self.cleared(path, closed)?.make_fifo(name, mode),
        }
    }

    /// The folder that holds the path, which is free now.
    fn cleared(&mut self, path: &Path, closed: &mut Closed) -> io::Result<Folder> {
        let folder = self.folder_of(path, closed)?;
        self.backup.clear(&folder, last(path)?, path)?;
        Ok(folder)
    }

    /// The folder that holds the path.
    fn folder_of(&mut self, path: &Path, closed: &mut Closed) -> io::Result<Folder> {
        let (mut folder, mut so_far) = (self.root.try_clone()?, PathBuf::new());
        for name in path.parent().into_iter().flat_map(Path::iter) {
            so_far.push(name);
            let was = self.before.get(&so_far).map(|was| was.mode & 0o7777);
            self.make_folder(&folder, &so_far, was, closed)?;
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
            self.backup.clear(above, name, path)?;
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
