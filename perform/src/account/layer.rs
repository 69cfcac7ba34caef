//! The upper layer of an overlay: what a command changed in its view of the tree. The tree itself is unchanged.
//!
//! Names in it were chosen by the command, so every lookup goes down one name at a time and follows no symlink.
//! The format is that of the kernel's documentation of overlayfs, with `userxattr`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dir::Folder;
use guard::{Difference, Guard, Seen};
use rustix::fs::{AtFlags, FileType, Mode, Stat};

use crate::seal::{are_equal, last};

/// Reads the layer and brings changes from it into the tree.
pub(super) struct Layer<'l> {
    guard: &'l Guard,
    pub(super) upper: Folder,
    tree: Folder,
    /// Dropped: what the harness itself writes.
    own: &'l [PathBuf],
    /// Brought in like ignored files, without an account.
    products: &'l [PathBuf],
}

/// A folder of the layer, with the one that it covers.
struct Level {
    upper: Folder,
    /// `None` below a folder that the command created.
    tree: Option<Folder>,
    path: PathBuf,
    belongs: Belongs,
}

/// An entry of the layer.
struct Entry {
    name: OsString,
    /// From the root.
    path: PathBuf,
    upper: Stat,
    /// What it covers.
    tree: Option<Stat>,
    belongs: Belongs,
}

/// Who decides about an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Belongs {
    /// Nobody: git ignores it, or it is a product of the build.
    Unaccounted,
    /// The harness: nobody else may change it.
    Ours,
    /// The policy of the account.
    Accounted,
}

impl<'l> Layer<'l> {
    pub(super) fn open(
        guard: &'l Guard,
        upper: &Path,
        own: &'l [PathBuf],
        products: &'l [PathBuf],
    ) -> io::Result<Self> {
        Ok(Self { guard, upper: Folder::open(upper)?, tree: Folder::open(guard.root())?, own, products })
    }

    /// What changed, except for what is not accounted for; sorted: a folder comes before its content.
    pub(super) fn differences(&self) -> io::Result<Vec<Difference>> {
        let mut found = Vec::new();
        self.walk(|level, entry| {
            if entry.belongs != Belongs::Accounted {
                return Ok(false);
            }
            if !entry.is_unchanged(level) {
                let before = entry.tree.as_ref().map(Seen::of);
                let after = (!is_whiteout(&entry.upper)).then(|| Seen::of(&entry.upper));
                found.push(Difference { path: entry.path.clone(), before, after });
            }
            if entry.covers_folder(level) {
                found.extend(self.hidden_below(&entry.path)?);
            }
            Ok(is_folder(&entry.upper) && entry.name != ".git")
        })?;
        found.sort_unstable_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
        Ok(found)
    }

    /// Whether a path, below which nothing counts, is not what it is in the tree.
    pub(super) fn changes(&self, path: &Path) -> io::Result<bool> {
        let mut level = self.top()?;
        let mut is_hidden = false;
        let exists = || self.tree.folder_of(path).and_then(|folder| folder.stat(last(path)?));
        let exists = || exists().is_ok_and(|found| found.is_some());
        let mut names = path.iter().peekable();
        while let Some(name) = names.next() {
            let Some(entry) = self.entry(&level, name.to_owned())? else { return Ok(is_hidden && exists()) };
            if names.peek().is_none() {
                return Ok(!entry.is_unchanged(&level));
            }
            if !is_folder(&entry.upper) {
                return Ok(exists());
            }
            is_hidden |= entry.covers_folder(&level);
            level = level.enter(entry.name, Belongs::Accounted)?;
        }
        Ok(false)
    }

    fn top(&self) -> io::Result<Level> {
        Ok(Level {
            upper: self.upper.try_clone()?,
            tree: Some(self.tree.try_clone()?),
            path: PathBuf::new(),
            belongs: Belongs::Accounted,
        })
    }

    /// `None` if there is none.
    fn entry(&self, level: &Level, name: OsString) -> io::Result<Option<Entry>> {
        let Some(upper) = level.upper.stat(&name)? else { return Ok(None) };
        let tree = level.tree.as_ref().map(|tree| tree.stat(&name)).transpose()?.flatten();
        let path = level.path.join(&name);
        let was_folder = is_whiteout(&upper) && tree.as_ref().is_some_and(is_folder);
        let belongs = self.belongs(level, &path, is_folder(&upper) || was_folder);
        Ok(Some(Entry { name, path, upper, tree, belongs }))
    }

    /// Visits every entry; goes into a folder if `visit` says so. Not recursive: a command chooses the depth.
    fn walk(&self, mut visit: impl FnMut(&Level, &Entry) -> io::Result<bool>) -> io::Result<()> {
        let mut todo = self.visit_all(&Arc::new(self.top()?), &mut visit)?;
        while let Some((above, name, belongs)) = todo.pop() {
            match above.enter(name, belongs) {
                Ok(level) => todo.extend(self.visit_all(&Arc::new(level), &mut visit)?),
                // The command removed its own permissions.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn visit_all(
        &self,
        level: &Arc<Level>,
        visit: &mut impl FnMut(&Level, &Entry) -> io::Result<bool>,
    ) -> io::Result<Vec<(Arc<Level>, OsString, Belongs)>> {
        let mut inner = Vec::new();
        for (name, _) in level.upper.entries()? {
            // It may have been moved meanwhile.
            let Some(entry) = self.entry(level, OsString::from_vec(name))? else { continue };
            if visit(level, &entry)? {
                inner.push((Arc::clone(level), entry.name, entry.belongs));
            }
        }
        Ok(inner)
    }

    fn belongs(&self, level: &Level, path: &Path, is_folder: bool) -> Belongs {
        if level.belongs != Belongs::Accounted {
            level.belongs
        } else if self.own.iter().any(|own| path == own) || path == Path::new(".git") {
            Belongs::Ours
        } else if self.products.iter().any(|product| path == product)
            || self.guard.has_ignored(path, is_folder)
        {
            Belongs::Unaccounted
        } else {
            Belongs::Accounted
        }
    }

    /// The accounted content of a folder of the tree, except what the layer shows in its place.
    fn hidden_below(&self, folder: &Path) -> io::Result<Vec<Difference>> {
        let skipped = |path: &Path| self.own.iter().chain(self.products).any(|own| path == own);
        let survey = self.guard.survey_below(folder, &skipped).map_err(io::Error::other)?;
        let hidden = survey.iter().filter(|(path, _)| !self.shows(path));
        Ok(hidden
            .map(|(path, seen)| Difference { path: path.clone(), before: Some(*seen), after: None })
            .collect())
    }

    fn shows(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default();
        self.upper.folder_of(path).and_then(|folder| folder.stat(name)).is_ok_and(|found| found.is_some())
    }
}

impl Level {
    fn enter(&self, name: OsString, belongs: Belongs) -> io::Result<Level> {
        let tree = self.tree.as_ref().and_then(|tree| tree.open_in(&name).ok());
        Ok(Level { upper: self.upper.open_in(&name)?, tree, path: self.path.join(&name), belongs })
    }
}

impl Entry {
    /// Whether only times or owners differ, or, for a folder, only its content. Without proof it has changed.
    fn is_unchanged(&self, level: &Level) -> bool {
        match &self.tree {
            None => is_whiteout(&self.upper),
            Some(tree) if is_folder(tree) && is_folder(&self.upper) => tree.st_mode == self.upper.st_mode,
            Some(tree) => self.has_same_content(level, tree).unwrap_or(false),
        }
    }

    fn has_same_content(&self, level: &Level, was: &Stat) -> io::Result<bool> {
        let Some(tree) = &level.tree else { return Ok(false) };
        if was.st_mode != self.upper.st_mode || was.st_size != self.upper.st_size {
            return Ok(false);
        }
        match FileType::from_raw_mode(was.st_mode) {
            FileType::RegularFile => {
                let open = |folder: &Folder| folder.open_file(&self.name).map(BufReader::new);
                are_equal(open(tree)?, open(&level.upper)?)
            }
            FileType::Symlink => Ok(tree.read_link(&self.name)? == level.upper.read_link(&self.name)?),
            FileType::Directory
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Ok(false),
        }
    }

    /// Whether the layer hides the content of a folder of the tree.
    fn covers_folder(&self, level: &Level) -> bool {
        self.tree.as_ref().is_some_and(is_folder)
            && (!is_folder(&self.upper) || is_opaque(&level.upper, &self.name))
    }
}

/// A character device with number 0 stands for a removed entry.
fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_char_device() && stat.st_rdev == 0
}

fn is_folder(stat: &Stat) -> bool {
    Seen::is_folder(stat.st_mode)
}

/// Removed and made anew: nothing of the tree's folder shows through.
fn is_opaque(folder: &Folder, name: &OsStr) -> bool {
    let mut value = [0_u8; 4];
    let read = rustix::fs::lgetxattr(through(folder, name), "user.overlay.opaque", &mut value[..]);
    read.is_ok_and(|len| value.get(..len) == Some(b"y"))
}

/// A path that nobody can redirect: the folder by its descriptor, and a last name that is not followed.
fn through(folder: &Folder, name: &OsStr) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_fd().as_raw_fd().to_string()).join(name)
}

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
    pub(super) fn bring_in(&self, refused: &BTreeSet<PathBuf>) -> io::Result<u64> {
        let mut moved = Move { layer: self, refused, modes: Vec::new(), unaccounted_bytes: 0 };
        self.walk(|level, entry| moved.entry(level, entry))?;
        for (folder, name, mode) in moved.modes.iter().rev() {
            rustix::fs::chmodat(folder, name, Mode::from_raw_mode(*mode), AtFlags::empty())?;
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
        let stays_folder = entry.tree.as_ref().is_some_and(is_folder) && is_folder(&entry.upper);
        // Only the mode of a folder can be refused while its content is not.
        if self.refused.contains(&entry.path) && !stays_folder {
            return Ok(false);
        }
        if stays_folder {
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
            rustix::fs::chmodat(
                &level.upper,
                &entry.name,
                Mode::from_raw_mode(mode | 0o700),
                AtFlags::empty(),
            )?;
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
        for (name, _) in folder.entries()? {
            let name = OsString::from_vec(name);
            strip(&folder, &name);
            let Some(stat) = folder.stat(&name)? else { continue };
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
