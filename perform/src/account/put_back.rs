//! Restores what a command may not change. Never follows a symlink: a command may have left one anywhere.

use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use code_commit_dir::{Attributes, Folder, Inode};
use code_commit_guard::{Difference, Seen, Survey};
use rustix::fs::Mode;

use super::source::Source;
use crate::fault::Fault;
use crate::seal::{Attic, last};

/// How often a path is restored.
const TRIES: usize = 3;

/// Restores one difference after another.
pub(super) struct PutBack<'p, 'r> {
    root: Folder,
    before: &'p Survey,
    source: &'p Source,
    attic: &'p mut Attic<'r>,
    lost: Vec<String>,
    /// Paths whose old content is not available.
    gone: Vec<String>,
}

impl<'p, 'r> PutBack<'p, 'r> {
    pub(super) fn new(
        root: &Path,
        before: &'p Survey,
        source: &'p Source,
        attic: &'p mut Attic<'r>,
    ) -> io::Result<Self> {
        Ok(Self { root: Folder::open(root)?, before, source, attic, lost: Vec::new(), gone: Vec::new() })
    }

    /// Restores a path. What is there now goes to the attic, new folders with all their content.
    pub(super) fn restore(&mut self, one: &Difference) {
        // Somebody may save it at that moment.
        let restored = (0..TRIES).find_map(|_| self.try_restore(one).ok());
        match restored {
            Some(true) => {}
            Some(false) => self.gone.push(one.path.display().to_string()),
            None => self.lost.push(one.path.display().to_string()),
        }
    }

    /// The paths that could not be restored for lack of their old content; they are left as they are. Fails
    /// if any other path was not restored.
    pub(super) fn finish(self) -> Result<Vec<String>, Fault> {
        if self.lost.is_empty() { Ok(self.gone) } else { Err(Fault::Seal { paths: self.lost.join(", ") }) }
    }

    /// Whether it could be restored.
    fn try_restore(&mut self, one: &Difference) -> io::Result<bool> {
        let Difference { path, before, .. } = one;
        let Some(was) = before else {
            // May have been restored with its folder.
            let Ok(folder) = self.root.folder_of(path) else { return Ok(true) };
            return self.clear(&folder, path).map(|()| true);
        };
        let name = last(path)?;
        if was.kind().is_dir() {
            let folder = self.folder_of(path)?;
            return self.make_folder(&folder, path, was).map(|()| true);
        }
        // Without the old content, removing the new one gains nothing.
        if let Some(mut content) = self.source.read(path, was).filter(|_| was.kind().is_file()) {
            let folder = self.folder_of(path)?;
            self.clear(&folder, path)?;
            let attributes = self.source.copy(path).map(|copy| Attributes::of(&copy)).transpose()?;
            let (mode, owner, len, modified) = (was.mode & 0o7777, was.owner, was.len, was.mtime);
            let inode = Inode { mode, owner, len, modified, attributes: attributes.unwrap_or_default() };
            return folder.make_file(name, &mut content, &inode).map(|()| true);
        }
        if was.kind().is_fifo() {
            let folder = self.folder_of(path)?;
            self.clear(&folder, path)?;
            return folder.make_fifo(name, was.mode & 0o7777).map(|()| true);
        }
        let Some(target) = self.source.target(path).filter(|_| was.kind().is_symlink()) else {
            return Ok(false);
        };
        let folder = self.folder_of(path)?;
        self.clear(&folder, path)?;
        folder.make_link(name, target).map(|()| true)
    }

    /// Opens the folder that contains the path; removes what is in its place on the way.
    fn folder_of(&mut self, path: &Path) -> io::Result<Folder> {
        let (mut folder, mut so_far) = (self.root.try_clone()?, PathBuf::new());
        for name in path.parent().into_iter().flat_map(Path::iter) {
            so_far.push(name);
            match self.before.get(&so_far).copied() {
                Some(was) => self.make_folder(&folder, &so_far, &was)?,
                // Of ignored folders, only the parts of repositories are surveyed.
                None if folder.stat(name)?.is_some() => {}
                None => folder.make_folder(name, 0o700)?,
            }
            folder = folder.open_in(name)?;
        }
        Ok(folder)
    }

    fn make_folder(&mut self, above: &Folder, path: &Path, was: &Seen) -> io::Result<()> {
        let name = last(path)?;
        let is_there = above.stat(name)?.is_some_and(|stat| Seen::is_folder(stat.st_mode));
        if !is_there {
            self.clear(above, path)?;
            above.make_folder(name, 0o700)?;
        }
        let is_right = |stat: rustix::fs::Stat| stat.st_mode & 0o7777 == was.mode & 0o7777;
        if above.stat(name)?.is_some_and(is_right) {
            return Ok(());
        }
        code_commit_dir::reach::set_mode(above.as_fd(), name, Mode::from_raw_mode(was.mode & 0o7777))
    }

    fn clear(&mut self, folder: &Folder, path: &Path) -> io::Result<()> {
        self.attic.clear(folder, last(path)?, path)
    }
}
