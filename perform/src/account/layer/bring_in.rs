//! Moves what stays from the layer into the tree.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dir::Folder;
use rustix::fs::{Mode, Stat};

use super::{Belongs, Entry, Layer, Level, is_folder, is_whiteout, through, unless_closed};

/// What is moved from the layer into the tree.
struct Move<'m> {
    layer: &'m Layer<'m>,
    /// Not moved, nor anything below.
    refused: &'m BTreeSet<PathBuf>,
    /// Modes to set at the end, when nothing more has to be done in those folders.
    modes: Vec<(Folder, OsString, u32)>,
    unaccounted_bytes: u64,
}

impl Layer<'_> {
    /// Moves everything into the tree, except the harness's own files and what is at or below a `refused`
    /// path. Returns how many bytes of unaccounted files it moved.
    pub(in crate::account) fn bring_in(&self, refused: &BTreeSet<PathBuf>) -> io::Result<u64> {
        let mut moved = Move { layer: self, refused, modes: Vec::new(), unaccounted_bytes: 0 };
        self.walk(|level, entry| moved.entry(level, entry))?;
        for (folder, name, mode) in moved.modes.iter().rev() {
            dir::reach::set_mode(folder.as_fd(), name, Mode::from_raw_mode(*mode))?;
        }
        Ok(moved.unaccounted_bytes)
    }
}

impl Move<'_> {
    /// Moves one entry; whether its content has to be moved one by one.
    fn entry(&mut self, level: &Level, entry: &Entry) -> io::Result<bool> {
        let Some(tree) = level.tree.as_ref().filter(|_| entry.belongs != Belongs::Ours) else {
            return Ok(false);
        };
        // The contents of a repository are not judged, so none of them come in: git runs what its configuration names.
        if entry.name == ".git" && entry.belongs == Belongs::Accounted {
            return Ok(false);
        }
        if self.refused.contains(&entry.path) {
            return Ok(false);
        }
        if entry.tree.as_ref().is_some_and(is_folder) && is_folder(&entry.upper) {
            if entry.covers_folder(level) {
                self.remove_hidden(tree, level, entry)?;
            }
            if entry.belongs == Belongs::Unaccounted
                && entry.tree.is_some_and(|tree| tree.st_mode != entry.upper.st_mode)
            {
                self.modes.push((tree.try_clone()?, entry.name.clone(), entry.upper.st_mode & 0o7777));
            }
            return Ok(true);
        }
        if entry.tree.is_some() && !self.remove(tree, &entry.name, &entry.path)? {
            return Ok(false);
        }
        if is_whiteout(&entry.upper) {
            return Ok(false);
        }
        if is_folder(&entry.upper) && self.refuses_below(&entry.path) {
            tree.make_folder(&entry.name, 0o700)?;
            self.modes.push((tree.try_clone()?, entry.name.clone(), entry.upper.st_mode & 0o7777));
            return Ok(true);
        }
        self.rename(level, tree, entry)?;
        Ok(false)
    }

    fn rename(&mut self, level: &Level, tree: &Folder, entry: &Entry) -> io::Result<()> {
        let mode = entry.upper.st_mode & 0o7777;
        if is_folder(&entry.upper) && mode & 0o700 != 0o700 {
            // A folder without permissions can be listed by its owner no more, nor get another parent.
            let open = Mode::from_raw_mode(mode) | dir::reach::CHANGE;
            dir::reach::set_mode(level.upper.as_fd(), &entry.name, open)?;
            self.modes.push((tree.try_clone()?, entry.name.clone(), mode));
        }
        let bytes = untag(&level.upper, &entry.name, &entry.upper)?;
        if entry.belongs == Belongs::Unaccounted {
            self.unaccounted_bytes += bytes;
        }
        level.upper.rename(&entry.name, tree, &entry.name)
    }

    fn refuses_below(&self, path: &Path) -> bool {
        self.refused.range(path.to_owned()..).next().is_some_and(|refused| refused.starts_with(path))
    }

    /// Removes an entry of the tree; of a folder in which something is refused, what is not. Whether it is gone.
    fn remove(&self, tree: &Folder, name: &OsStr, path: &Path) -> io::Result<bool> {
        let is_whole = !tree.stat(name)?.as_ref().is_some_and(is_folder) || !self.refuses_below(path);
        if is_whole {
            return dir::reach::remove(&tree.as_fd().try_clone_to_owned()?, name).map(|()| true);
        }
        let survey = self.layer.guard.survey_below(path, &|_| false).map_err(io::Error::other)?;
        for (path, seen) in survey.iter() {
            if !seen.kind().is_dir() && !self.refused.contains(path) {
                self.layer.tree.folder_of(path)?.remove_file(path.file_name().unwrap_or_default())?;
            }
        }
        Ok(false)
    }

    /// Removes what an opaque folder hides.
    fn remove_hidden(&self, tree: &Folder, level: &Level, entry: &Entry) -> io::Result<()> {
        let (hidden, shown) = (tree.open_in(&entry.name)?, level.upper.open_in(&entry.name)?);
        for (name, _) in hidden.entries()? {
            let name = OsString::from_vec(name);
            let path = entry.path.join(&name);
            if shown.stat(&name)?.is_none() && !self.refused.contains(&path) {
                self.remove(&hidden, &name, &path)?;
            }
        }
        Ok(())
    }
}

/// Removes the kernel's own attributes from an entry of the layer and everything below it, since they mean
/// nothing in the tree. Returns the size of the files.
fn untag(folder: &Folder, name: &OsStr, stat: &Stat) -> io::Result<u64> {
    strip(folder, name);
    if !is_folder(stat) {
        return Ok(u64::try_from(stat.st_size).unwrap_or(0));
    }
    let mut bytes = 0;
    let mut todo = vec![(Arc::new(folder.try_clone()?), name.to_owned())];
    while let Some((above, name)) = todo.pop() {
        // One that the command closed to itself only keeps the attributes.
        let Ok(folder) = above.open_in(&name).map(Arc::new) else { continue };
        for (name, _) in unless_closed(folder.entries())?.into_iter().flatten() {
            let name = OsString::from_vec(name);
            strip(&folder, &name);
            let Some(stat) = unless_closed(folder.stat(&name))?.flatten() else { continue };
            if is_folder(&stat) {
                todo.push((Arc::clone(&folder), name));
            } else {
                bytes += u64::try_from(stat.st_size).unwrap_or(0);
            }
        }
    }
    Ok(bytes)
}

fn strip(folder: &Folder, name: &OsStr) {
    let path = through(folder, name);
    let mut names = vec![0_u8; 1 << 10];
    let Ok(len) = rustix::fs::llistxattr(&path, &mut names[..]) else { return };
    for name in names.get(..len).unwrap_or_default().split(|byte| *byte == 0) {
        if name.starts_with(b"user.overlay.") {
            // It is only untidy if it stays.
            let _ = rustix::fs::lremovexattr(&path, name);
        }
    }
}
