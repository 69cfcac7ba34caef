//! Moves what stays from the layer into the tree.
//!
//! Each entry of the tree is replaced in one step, and nothing of the tree is deleted: what came out of it rests
//! beside the layer until the layer is removed. An entry that only got new times is not moved at all.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::Folder;
use rustix::fs::{Mode, Stat};

use super::{Belongs, Entry, Layer, Level, is_folder, is_whiteout, through, unless_closed};
use crate::backup::{Backup, place};
use crate::change::{Change, ChangeSet, Seen, Tops};

/// What comes into the tree.
pub(crate) struct Incoming<'i> {
    /// Not moved, nor anything below.
    pub(crate) refused: &'i Tops,
    /// What was judged, sorted by path. Accounted entries that are not among these are unchanged.
    pub(crate) changes: &'i ChangeSet,
    /// When the layer was made. What changed in the tree later was changed by somebody else.
    pub(crate) since: (i64, i64),
    /// For what comes out of the tree; made when first needed.
    pub(crate) out: PathBuf,
}

#[derive(Default)]
pub(crate) struct BroughtIn {
    /// The size of the unaccounted files.
    pub(crate) unaccounted_bytes: u64,
    /// Files that somebody else had changed in the tree meanwhile: they stay, if they can.
    pub(crate) others: Vec<PathBuf>,
    /// Ignored files, no products, that were replaced or removed; they are in the backup now.
    pub(crate) set_aside: Vec<String>,
}

struct Move<'m, 'r> {
    layer: &'m Layer<'m>,
    incoming: &'m Incoming<'m>,
    backup: &'m mut Backup<'r>,
    /// What came out of the tree, by number.
    out: Option<Folder>,
    taken_out: usize,
    /// Modes to set at the end, when nothing more has to be done in those folders.
    modes: Vec<(Folder, OsString, u32)>,
    brought: BroughtIn,
}

impl Layer<'_> {
    /// Moves everything into the tree, except the harness's own files and what is at or below a refused path, and
    /// syncs it. What somebody else has changed in the tree meanwhile goes to the backup.
    pub(crate) fn bring_in(
        &self,
        incoming: &Incoming<'_>,
        backup: &mut Backup<'_>,
    ) -> io::Result<BroughtIn> {
        let (modes, brought) = (Vec::new(), BroughtIn::default());
        let mut moved = Move {
            layer: self,
            incoming,
            backup,
            out: None,
            taken_out: 0,
            modes,
            brought,
        };
        self.walk(|level, entry| moved.entry(level, entry))?;
        for (folder, name, mode) in moved.modes.iter().rev() {
            code_commit_dir::reach::set_mode(folder.as_fd(), name, Mode::from_raw_mode(*mode))?;
        }
        // New files alone can be made again.
        if moved.out.is_some() || !incoming.changes.is_empty() {
            self.tree.sync_file_system()?;
        }
        Ok(moved.brought)
    }
}

impl Move<'_, '_> {
    /// Moves one entry; whether its content has to be moved one by one.
    fn entry(&mut self, level: &Level, entry: &Entry) -> io::Result<bool> {
        let Some(tree) = level
            .tree
            .as_ref()
            .filter(|_| entry.belongs != Belongs::Ours)
        else {
            return Ok(false);
        };
        // The contents of a repository are not judged, so none of them come in: git runs what its configuration names.
        if entry.name == ".git" && entry.belongs == Belongs::Accounted {
            return Ok(false);
        }
        if self.incoming.refused.over(&entry.path).is_some() {
            return Ok(false);
        }
        if entry.tree.as_ref().is_some_and(is_folder) && is_folder(&entry.upper) {
            if entry.covers_folder(level) {
                self.remove_hidden(tree, level, entry)?;
            }
            if entry.belongs == Belongs::Unaccounted
                && entry
                    .tree
                    .is_some_and(|tree| tree.st_mode != entry.upper.st_mode)
            {
                self.modes.push((
                    tree.try_clone()?,
                    entry.name.clone(),
                    entry.upper.st_mode & 0o7777,
                ));
            }
            return Ok(true);
        }
        if is_whiteout(&entry.upper) {
            entry.tree.map_or(Ok(()), |was| {
                self.remove(tree, &entry.name, &entry.path, was)
            })?;
            return Ok(false);
        }
        if self.is_unchanged(level, entry) {
            date_like(tree, entry)?;
            return Ok(false);
        }
        let was_folder = entry.tree.as_ref().is_some_and(is_folder);
        if (was_folder || is_folder(&entry.upper)) && self.refuses_below(&entry.path) {
            entry.tree.map_or(Ok(()), |was| {
                self.remove(tree, &entry.name, &entry.path, was)
            })?;
            if is_folder(&entry.upper) {
                tree.make_folder(&entry.name, 0o700)?;
                self.modes.push((
                    tree.try_clone()?,
                    entry.name.clone(),
                    entry.upper.st_mode & 0o7777,
                ));
            }
            return Ok(is_folder(&entry.upper));
        }
        self.place(level, tree, entry)?;
        Ok(false)
    }

    fn is_unchanged(&self, level: &Level, entry: &Entry) -> bool {
        match (entry.belongs, entry.tree) {
            (_, None) => false,
            (Belongs::Accounted, Some(_)) => self.change(&entry.path).is_none(),
            (Belongs::Unaccounted | Belongs::Ours, Some(_)) => {
                entry.is_unchanged(level, code_commit_dir::NEVER)
            }
        }
    }

    fn change(&self, path: &Path) -> Option<&Change> {
        self.incoming.changes.get(path)
    }

    /// Puts an entry in its place, and takes out what was there in the same step.
    fn place(&mut self, level: &Level, tree: &Folder, entry: &Entry) -> io::Result<()> {
        let (name, mode) = (&*entry.name, entry.upper.st_mode & 0o7777);
        if is_folder(&entry.upper) && mode & 0o700 != 0o700 {
            // A folder without permissions can be listed by its owner no more, nor get another parent.
            let open = Mode::from_raw_mode(mode) | code_commit_dir::reach::CHANGE;
            code_commit_dir::reach::set_mode(level.upper.as_fd(), name, open)?;
            self.modes
                .push((tree.try_clone()?, entry.name.clone(), mode));
        }
        let bytes = untag(&level.upper, name, &entry.upper)?;
        if entry.belongs == Belongs::Unaccounted {
            self.brought.unaccounted_bytes += bytes;
        }
        match level.upper.rename_new(name, tree, name) {
            Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => {}
            moved => return moved,
        }
        self.out()?;
        level.upper.exchange(name, tree, name)?;
        let out = level.upper.stat(name)?.filter(|out| !is_folder(out));
        let is_theirs = |out| !self.is_as_judged(&entry.path, entry.tree.as_ref(), &out);
        if self.change(&entry.path).is_some() && out.is_some_and(is_theirs) {
            // What a person wrote stays, unless it is a product.
            level.upper.exchange(name, tree, name)?;
            self.backup.take_in(&level.upper, name, &entry.path)?;
            self.brought.others.push(entry.path.clone());
            return Ok(());
        }
        self.keep_others(&level.upper, name, &entry.path, entry.tree)
    }

    fn refuses_below(&self, path: &Path) -> bool {
        self.incoming.refused.has_below(path)
    }

    /// Takes an entry out of the tree; of a folder in which something is refused, what is not.
    fn remove(&mut self, tree: &Folder, name: &OsStr, path: &Path, was: Stat) -> io::Result<()> {
        if !is_folder(&was) || !self.refuses_below(path) {
            return self.take_out(tree, name, path, was);
        }
        for (path, seen) in self.layer.look_below(path, &|_| false)? {
            let (folder, name) = (
                self.layer.tree.folder_of(&path)?,
                path.file_name().unwrap_or_default(),
            );
            let is_going = !seen.kind().is_dir() && self.incoming.refused.over(&path).is_none();
            if let Some(was) = folder.stat(name)?.filter(|_| is_going) {
                self.take_out(&folder, name, &path, was)?;
            }
        }
        Ok(())
    }

    /// Removes what an opaque folder hides.
    fn remove_hidden(&mut self, tree: &Folder, level: &Level, entry: &Entry) -> io::Result<()> {
        let (hidden, shown) = (
            tree.open_in(&entry.name)?,
            level.upper.open_in(&entry.name)?,
        );
        for (name, _) in hidden.entries()? {
            let name = OsString::from_vec(name);
            let path = entry.path.join(&name);
            if shown.stat(&name)?.is_some() || self.incoming.refused.over(&path).is_some() {
                continue;
            }
            hidden
                .stat(&name)?
                .map_or(Ok(()), |was| self.remove(&hidden, &name, &path, was))?;
        }
        Ok(())
    }

    /// Moves an entry of the tree beside the layer.
    fn take_out(&mut self, tree: &Folder, name: &OsStr, path: &Path, was: Stat) -> io::Result<()> {
        self.taken_out += 1;
        let number = self.taken_out.to_string();
        match tree.rename_new(name, self.out()?, &number) {
            Err(gone) if gone.kind() == io::ErrorKind::NotFound => return Ok(()),
            moved => moved?,
        }
        let out = self.out()?.try_clone()?;
        self.keep_others(&out, number.as_ref(), path, Some(was))
    }

    fn out(&mut self) -> io::Result<&Folder> {
        let folder = match self.out.take() {
            Some(folder) => folder,
            None => {
                fs::create_dir_all(&self.incoming.out)?;
                Folder::open(&self.incoming.out)?
            }
        };
        Ok(self.out.insert(folder))
    }

    /// Gives back what is not as it was judged, out of an entry that came from `path` of the tree and is
    /// `name` of `folder` now; where it cannot stay, it goes to the backup. `was` is what was seen there just before.
    fn keep_others(
        &mut self,
        folder: &Folder,
        name: &OsStr,
        path: &Path,
        was: Option<Stat>,
    ) -> io::Result<()> {
        let mut todo = vec![(
            Arc::new(folder.try_clone()?),
            name.to_owned(),
            path.to_owned(),
            was,
        )];
        while let Some((folder, name, path, was)) = todo.pop() {
            let Some(found) = unless_closed(folder.stat(&name))?.flatten() else {
                continue;
            };
            if is_folder(&found) {
                let Some(inner) = unless_closed(folder.open_in(&name))?.map(Arc::new) else {
                    continue;
                };
                for (name, _) in unless_closed(inner.entries())?.into_iter().flatten() {
                    let name = OsString::from_vec(name);
                    todo.push((Arc::clone(&inner), name.clone(), path.join(name), None));
                }
            } else if !self.is_as_judged(&path, was.as_ref(), &found) {
                let back = place(&self.layer.tree, &path)
                    .and_then(|(to, new_name)| folder.rename_new(&name, &to, new_name));
                if back.is_err() {
                    self.backup.take_in(&folder, &name, &path)?;
                }
                self.brought.others.push(path);
            } else if self.change(&path).is_some_and(Change::is_ignored) {
                self.backup.take_in(&folder, &name, &path)?;
                self.brought.set_aside.push(path.display().to_string());
            }
        }
        Ok(())
    }

    /// The `ctime` alone says nothing: a link or a rename of another name of the file changes it, ours too. A time of
    /// the content may lie in the future.
    fn is_as_judged(&self, path: &Path, was: Option<&Stat>, found: &Stat) -> bool {
        let before = self.change(path).and_then(|one| one.before);
        let before = before.unwrap_or_else(|| Seen::of(was.unwrap_or(found)));
        let now = Seen::of(found);
        before.identity() == now.identity()
            && (before.ctime <= self.incoming.since || before.mtime <= self.incoming.since)
    }
}

/// Gives what is in the tree the owner and the times of an entry with the same content.
fn date_like(tree: &Folder, entry: &Entry) -> io::Result<()> {
    let time = |stat: &Stat| (Seen::of(stat).mtime, Seen::of(stat).owner);
    match entry.tree {
        Some(was) if time(&was) != time(&entry.upper) => tree.date_like(&entry.name, &entry.upper),
        Some(_) | None => Ok(()),
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
        let Ok(folder) = above.open_in(&name).map(Arc::new) else {
            continue;
        };
        for (name, _) in unless_closed(folder.entries())?.into_iter().flatten() {
            let name = OsString::from_vec(name);
            strip(&folder, &name);
            let Some(stat) = unless_closed(folder.stat(&name))?.flatten() else {
                continue;
            };
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
    let Ok(len) = rustix::fs::llistxattr(&path, &mut names[..]) else {
        return;
    };
    for name in names
        .get(..len)
        .unwrap_or_default()
        .split(|byte| *byte == 0)
    {
        if name.starts_with(b"user.overlay.") {
            // It is only untidy if it stays.
            let _ = rustix::fs::lremovexattr(&path, name);
        }
    }
}
