//! What a folder holds before and after a turn, and putting back what may not have changed.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use repo::WorkTree;

use crate::agents::role::Watched;
use crate::agents::tree::Tree;

/// A folder as it was, with copies of what may have to be put back.
#[derive(Debug)]
pub(super) struct Before<'w> {
    watched: &'w Watched,
    tree: Tree,
    known: Option<BTreeSet<String>>,
    kept: PathBuf,
    taken: PathBuf,
}

/// What a turn changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) allowed: Vec<String>,
    /// Those of `allowed` that are not there any more.
    pub(super) gone: Vec<String>,
    pub(super) put_back: Vec<String>,
}

impl<'w> Before<'w> {
    /// Copies go to `kept`, which is removed by [`compare`](Self::compare); what is put back is first moved to `taken`.
    pub(super) fn take(watched: &'w Watched, kept: &Path, taken: &Path) -> io::Result<Self> {
        let tree = Tree::of(&watched.root, &watched.skip)?;
        let known = watched.may_touch.as_ref().and_then(|_| known_to_git(&watched.root));
        let before = Self { watched, tree, known, kept: kept.to_owned(), taken: taken.to_owned() };
        for (path, stamp) in before.tree.files.iter().filter(|(path, _)| !before.may_touch(path)) {
            if before.is_known(path) || stamp.is_link() {
                copy(&watched.root.join(path), &before.kept.join(path))?;
            }
        }
        Ok(before)
    }

    fn is_known(&self, path: &str) -> bool {
        self.known.as_ref().is_none_or(|known| known.contains(path))
    }

    /// The last entry that fits decides.
    fn may_touch(&self, path: &str) -> bool {
        let Some(allowed) = &self.watched.may_touch else { return true };
        let fits =
            |entry: &str| entry == "/" || entry == path || (entry.ends_with('/') && path.starts_with(entry));
        let last = allowed.iter().rev().find(|entry| fits(entry.strip_prefix('!').unwrap_or(entry)));
        last.is_some_and(|entry| !entry.starts_with('!'))
    }

    /// Looks what is different now, and puts back what the role may not touch.
    pub(super) fn compare(self) -> io::Result<Changes> {
        let after = Tree::of(&self.watched.root, &self.watched.skip)?;
        let known_now = self.known.as_ref().and_then(|_| known_to_git(&self.watched.root));
        let counts =
            |path: &str| self.is_known(path) || known_now.as_ref().is_some_and(|now| now.contains(path));
        let gone = self.tree.files.keys().filter(|path| !after.files.contains_key(*path));
        let different = after.files.iter().filter(|(path, stamp)| self.tree.files.get(*path) != Some(stamp));
        let mut paths: Vec<&String> = gone.chain(different.map(|(path, _)| path)).collect();
        paths.retain(|path| counts(path));
        paths.sort_unstable();
        let mut changes = Changes::default();
        for path in paths {
            if self.may_touch(path) {
                changes.allowed.push(path.clone());
                changes.gone.extend((!after.files.contains_key(path)).then(|| path.clone()));
            } else {
                self.put_back(path)?;
                changes.put_back.push(path.clone());
            }
        }
        match fs::remove_dir_all(&self.kept) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(changes),
        }
    }

    fn put_back(&self, path: &str) -> io::Result<()> {
        let place = self.watched.root.join(path);
        match fs::symlink_metadata(&place) {
            Ok(data) if data.is_dir() => fs::remove_dir_all(&place)?,
            Ok(_) => {
                // It may be the work of a person who was at it at the same time.
                copy(&place, &self.taken.join(path))?;
                fs::remove_file(&place)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A folder on the way is a file now; that file is put right by itself.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            Err(error) => return Err(error),
        }
        if self.tree.files.contains_key(path) { copy(&self.kept.join(path), &place) } else { Ok(()) }
    }
}

/// Does `work` and puts back what it may not touch; gives the paths that were put back. What they were put back from is then
/// in `taken` below `scratch`.
pub fn watch_over<T>(
    watched: &Watched,
    scratch: &Path,
    work: impl FnOnce() -> T,
) -> io::Result<(T, Vec<String>)> {
    let before = Before::take(watched, &scratch.join("before"), &scratch.join("taken"))?;
    let result = work();
    Ok((result, before.compare()?.put_back))
}

/// What git tracks, and what it would track: neither committed nor ignored. `None` where there is no repository.
fn known_to_git(root: &Path) -> Option<BTreeSet<String>> {
    let tree = WorkTree::at(root).ok()?;
    let tracked = tree.tracked().ok()?.into_iter().map(|file| file.path);
    Some(tracked.chain(tree.dirty().ok()?).collect())
}

/// A file with its mode, or a link. Other kinds are not kept.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let data = fs::symlink_metadata(from)?;
    if let Some(folder) = to.parent() {
        make_folder(folder)?;
    }
    if data.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if !data.is_file() {
        return Ok(());
    }
    fs::copy(from, to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(data.mode()))
}

/// What stands in the way of a folder that was there is removed: a file or a link that the role put in its place.
fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(data) if data.is_dir() => return Ok(()),
        Ok(_) => fs::remove_file(folder)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
        Err(error) => return Err(error),
    }
    if let Some(above) = folder.parent() {
        make_folder(above)?;
    }
    fs::create_dir(folder)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its files")]
mod tests;
