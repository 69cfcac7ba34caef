//! The upper layer of an overlay: what a command changed in its view of the tree, and how that comes into the tree.
//!
//! Names in it were chosen by the command, so every lookup goes down one name at a time and follows no symlink.
//! The format is that of the kernel's documentation of overlayfs, with `userxattr`.
//!
//! Each entry of the tree is replaced in one step, and nothing of the tree is deleted: what came out of it rests
//! beside the layer until the layer is removed. An entry that only got new times is not moved at all.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::{Folder, reach};
use code_commit_guard::Guard;
use rustix::fs::{Mode, Stat};

use crate::backup::{Backup, place};
use crate::change::{Change, ChangeSet, Seen, Tops};
use crate::copies::Copies;
use crate::overlay::{is_opaque, is_whiteout, through};

/// What comes into the tree: everything in the layer, except the harness's own files and what is refused.
pub(crate) struct Incoming<'i, 'r> {
    pub(crate) guard: &'i Guard,
    pub(crate) upper: &'i Folder,
    pub(crate) tree: &'i Folder,
    /// What the harness itself writes, relative to the root.
    pub(crate) own: &'i [PathBuf],
    pub(crate) copies: &'i Copies,
    /// What was judged.
    pub(crate) changes: &'i ChangeSet,
    /// What was looked at and had the same content.
    pub(crate) unchanged: &'i BTreeSet<PathBuf>,
    /// Stays in the tree as it is. The layer does not show it any more if it is new.
    pub(crate) refused: &'i Tops,
    /// When the layer was made. What changed in the tree later was changed by somebody else.
    pub(crate) since: (i64, i64),
    /// For what comes out of the tree; made when first needed.
    pub(crate) out: PathBuf,
    pub(crate) backup: &'i mut Backup<'r>,
}

#[derive(Debug, Default)]
pub(crate) struct BroughtIn {
    /// The size of the files that are not accounted for.
    pub(crate) unaccounted_bytes: u64,
    /// Files that somebody else had changed in the tree meanwhile: they stay, if they can.
    pub(crate) others: Vec<PathBuf>,
    /// Ignored files, no products, that were replaced or removed; they are in the backup now.
    pub(crate) set_aside: Vec<PathBuf>,
}

/// A folder of the layer, with the one that it covers.
struct Level {
    upper: Folder,
    tree: Folder,
    path: PathBuf,
    /// Whether nothing of the tree's folder shows through, since this one or one above it was made anew. The kernel
    /// marks the uppermost alone.
    is_opaque: bool,
}

impl Level {
    fn enter(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self {
            upper: self.upper.open_in(name)?,
            tree: self.tree.open_in(name)?,
            path: self.path.join(name),
            is_opaque: self.is_opaque || is_opaque(&self.upper, name),
        })
    }
}

struct Move<'m, 'i, 'r> {
    incoming: &'m mut Incoming<'i, 'r>,
    /// What came out of the tree, by number.
    out: Option<Folder>,
    taken_out: usize,
    /// Modes to set at the end, when nothing more has to be done in those folders.
    modes: Vec<(Folder, OsString, u32)>,
    brought: BroughtIn,
}

impl Incoming<'_, '_> {
    /// Moves everything into the tree and syncs it. What somebody else has changed in the tree meanwhile stays, and what
    /// the command made of it goes to the backup.
    pub(crate) fn bring_in(&mut self) -> io::Result<BroughtIn> {
        let top = Level {
            upper: self.upper.try_clone()?,
            tree: self.tree.try_clone()?,
            path: PathBuf::new(),
            is_opaque: false,
        };
        let mut moved = Move {
            incoming: self,
            out: None,
            taken_out: 0,
            modes: Vec::new(),
            brought: BroughtIn::default(),
        };
        // Not recursive: a command chooses the depth.
        let mut todo = moved.entries(&Arc::new(top))?;
        while let Some((above, name)) = todo.pop() {
            if let Some(level) = unless_closed(above.enter(&name))? {
                todo.extend(moved.entries(&Arc::new(level))?);
            }
        }
        for (folder, name, mode) in moved.modes.iter().rev() {
            reach::set_mode(folder.as_fd(), name, Mode::from_raw_mode(*mode))?;
        }
        // New files alone can be made again.
        if moved.out.is_some() || !moved.incoming.changes.is_empty() {
            moved.incoming.tree.sync_file_system()?;
        }
        Ok(moved.brought)
    }

    /// The contents of a repository are not judged, so none of them come in: git runs what its configuration names.
    fn is_ours(&self, path: &Path) -> bool {
        let above = path.parent().unwrap_or(path);
        self.own.iter().any(|own| path == own)
            || self.guard.is_git(path)
            || (path.ends_with(".git") && !self.guard.has_ignored_folder(above))
    }
}

impl Move<'_, '_, '_> {
    /// Moves the entries of a folder; returns those whose content has to be moved one by one.
    fn entries(&mut self, level: &Arc<Level>) -> io::Result<Vec<(Arc<Level>, OsString)>> {
        let mut inner = Vec::new();
        for (name, _) in unless_closed(level.upper.entries())?.into_iter().flatten() {
            let name = OsString::from_vec(name);
            if self.entry(level, &name)? {
                inner.push((Arc::clone(level), name));
            }
        }
        Ok(inner)
    }

    /// Moves one entry; whether it has content that is moved later.
    fn entry(&mut self, level: &Level, name: &OsStr) -> io::Result<bool> {
        let path = level.path.join(name);
        let upper = unless_closed(level.upper.stat(name))?.flatten();
        let is_refused = self.incoming.refused.over(&path).is_some();
        let Some(upper) = upper.filter(|_| !is_refused && !self.incoming.is_ours(&path)) else {
            return Ok(false);
        };
        let was = level.tree.stat(name)?;
        if is_whiteout(&upper) {
            was.map_or(Ok(()), |was| self.remove(&level.tree, &path, was))?;
            return Ok(false);
        }
        let Some(was) = was else {
            self.place(level, name, &path, (None, upper))?;
            return Ok(false);
        };
        if is_folder(&was) && is_folder(&upper) {
            if level.is_opaque || is_opaque(&level.upper, name) {
                self.remove_hidden(level, name, &path)?;
            }
            if was.st_mode != upper.st_mode && self.incoming.changes.get(&path).is_none() {
                self.set_mode_later(&level.tree, name, upper.st_mode)?;
            }
            return Ok(true);
        }
        let is_judged = self.incoming.changes.get(&path).is_some();
        let (before, after) = (Some(Seen::of(&was)), Some(Seen::of(&upper)));
        let one = Change {
            path,
            before,
            after,
        };
        let is_same = || self.incoming.copies.is_same(self.incoming.upper, &one);
        if self.incoming.unchanged.contains(&one.path) || (!is_judged && is_same()) {
            date_like(&level.tree, name, (&was, &upper))?;
        } else {
            self.place(level, name, &one.path, (Some(was), upper))?;
        }
        Ok(false)
    }

    fn set_mode_later(&mut self, folder: &Folder, name: &OsStr, mode: u32) -> io::Result<()> {
        let folder = folder.try_clone()?;
        self.modes.push((folder, name.to_owned(), mode & 0o7777));
        Ok(())
    }

    /// Puts an entry in its place, and takes out what was there in the same step.
    fn place(
        &mut self,
        level: &Level,
        name: &OsStr,
        path: &Path,
        (was, upper): (Option<Stat>, Stat),
    ) -> io::Result<()> {
        if is_folder(&upper) && upper.st_mode & 0o700 != 0o700 {
            // A folder without permissions can be listed by its owner no more, nor get another parent.
            let open = Mode::from_raw_mode(upper.st_mode & 0o7777) | reach::CHANGE;
            reach::set_mode(level.upper.as_fd(), name, open)?;
            self.set_mode_later(&level.tree, name, upper.st_mode)?;
        }
        let bytes = untag(&level.upper, name, &upper)?;
        if self.incoming.changes.get(path).is_none() {
            self.brought.unaccounted_bytes += bytes;
        }
        match level.upper.rename_new(name, &level.tree, name) {
            Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => {}
            moved => return moved,
        }
        self.out()?;
        level.upper.exchange(name, &level.tree, name)?;
        let out = level.upper.stat(name)?.filter(|out| !is_folder(out));
        let is_theirs = |out| !self.is_as_judged(path, was.as_ref(), &out);
        if self.incoming.changes.get(path).is_some() && out.is_some_and(is_theirs) {
            // What a person wrote stays, unless it is a product.
            level.upper.exchange(name, &level.tree, name)?;
            self.incoming.backup.take_in(&level.upper, name, path)?;
            self.brought.others.push(path.to_owned());
            return Ok(());
        }
        self.keep_others(&level.upper, name, path, was)
    }

    /// Takes an entry out of the tree; of a folder in which something is refused, the files that are gone.
    fn remove(&mut self, folder: &Folder, path: &Path, was: Stat) -> io::Result<()> {
        if self.incoming.refused.over(path).is_some() {
            return Ok(());
        }
        if !is_folder(&was) || !self.incoming.refused.has_below(path) {
            return self.take_out(folder, path, was);
        }
        let changes = self.incoming.changes;
        let gone = changes.below(path).filter(|one| one.after.is_none());
        let gone = gone.filter(|one| !one.was_folder());
        for one in gone.filter(|one| self.incoming.refused.over(&one.path).is_none()) {
            let folder = self.incoming.tree.folder_of(&one.path)?;
            if let Some(was) = folder.stat(one.path.file_name().unwrap_or_default())? {
                self.take_out(&folder, &one.path, was)?;
            }
        }
        Ok(())
    }

    /// Removes what an opaque folder hides.
    fn remove_hidden(&mut self, level: &Level, name: &OsStr, path: &Path) -> io::Result<()> {
        let (hidden, shown) = (level.tree.open_in(name)?, level.upper.open_in(name)?);
        for (name, _) in hidden.entries()? {
            let name = OsString::from_vec(name);
            let (path, was) = (path.join(&name), hidden.stat(&name)?);
            if let Some(was) = was.filter(|_| !matches!(shown.stat(&name), Ok(Some(_)))) {
                self.remove(&hidden, &path, was)?;
            }
        }
        Ok(())
    }

    /// Moves an entry of the tree beside the layer.
    fn take_out(&mut self, folder: &Folder, path: &Path, was: Stat) -> io::Result<()> {
        self.taken_out += 1;
        let number = self.taken_out.to_string();
        match folder.rename_new(path.file_name().unwrap_or_default(), self.out()?, &number) {
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
        let above = Arc::new(folder.try_clone()?);
        let mut todo = vec![(above, name.to_owned(), path.to_owned(), was)];
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
                let back = place(self.incoming.tree, &path)
                    .and_then(|(to, new_name)| folder.rename_new(&name, &to, new_name));
                if back.is_err() {
                    self.incoming.backup.take_in(&folder, &name, &path)?;
                }
                self.brought.others.push(path);
            } else if self
                .incoming
                .changes
                .get(&path)
                .is_some_and(Change::is_ignored)
            {
                self.incoming.backup.take_in(&folder, &name, &path)?;
                self.brought.set_aside.push(path);
            }
        }
        Ok(())
    }

    /// The `ctime` alone says nothing: a link or a rename of another name of the file changes it, ours too. A time of
    /// the content may lie in the future.
    fn is_as_judged(&self, path: &Path, was: Option<&Stat>, found: &Stat) -> bool {
        let before = self.incoming.changes.get(path).and_then(|one| one.before);
        let before = before.unwrap_or_else(|| Seen::of(was.unwrap_or(found)));
        let since = self.incoming.since;
        before.identity() == Seen::of(found).identity()
            && (before.ctime <= since || before.mtime <= since)
    }
}

/// Gives what is in the tree the owner and the times of an entry with the same content.
fn date_like(tree: &Folder, name: &OsStr, (was, is): (&Stat, &Stat)) -> io::Result<()> {
    let time = |stat: &Stat| (Seen::of(stat).mtime, Seen::of(stat).owner);
    if time(was) == time(is) {
        return Ok(());
    }
    tree.date_like(name, is)
}

/// `None` if the command, or the user, removed their own permissions for the folder, or moved it meanwhile.
fn unless_closed<T>(looked: io::Result<T>) -> io::Result<Option<T>> {
    match looked {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        looked => looked.map(Some),
    }
}

/// The entry at a path below a folder; `None` where a parent is missing or not a folder.
pub(crate) fn stat_below(folder: &Folder, path: &Path) -> io::Result<Option<Stat>> {
    match folder.folder_of(path) {
        Err(error) if reach::is_gone(&error) => Ok(None),
        folder => folder?.stat(path.file_name().unwrap_or_default()),
    }
}

/// What a path shows where a layer is over the tree, symlinks not followed.
pub(crate) fn stat_through(upper: &Folder, tree: &Folder, path: &Path) -> io::Result<Option<Stat>> {
    let (mut folder, mut is_hidden) = (upper.try_clone()?, false);
    let mut names = path.iter().peekable();
    while let Some(name) = names.next() {
        match folder.stat(name)? {
            None if is_hidden => return Ok(None),
            None => return stat_below(tree, path),
            found if names.peek().is_none() => return Ok(found.filter(|it| !is_whiteout(it))),
            Some(found) if !is_folder(&found) => return Ok(None),
            Some(_) => {}
        }
        is_hidden |= is_opaque(&folder, name);
        folder = folder.open_in(name)?;
    }
    Ok(None)
}

fn is_folder(stat: &Stat) -> bool {
    Seen::is_folder(stat.st_mode)
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
