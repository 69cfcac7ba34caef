//! The upper layer of an overlay: what a command changed in its view of the tree. The tree itself is unchanged.
//!
//! Names in it were chosen by the command, so every lookup goes down one name at a time and follows no symlink.
//! The format is that of the kernel's documentation of overlayfs, with `userxattr`.

pub(crate) mod bring_in;
mod revert;

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::{Folder, Interrupt, Interruptible};
use code_commit_guard::Guard;
use rustix::fs::{FileType, Stat};

use crate::change::{Change, ChangeSet, Seen};
use crate::copies::are_equal;
use crate::engine::Skips;
use crate::repositories::is_of_repository;
use crate::snapshot::{Look, Snapshot, Tracked};

/// Reads the layer and brings changes from it into the tree.
pub(crate) struct Layer<'l> {
    guard: &'l Guard,
    pub(crate) upper: Folder,
    tree: Folder,
    /// What the harness itself writes is dropped; products are brought in like ignored files, without an account.
    skips: &'l Skips,
    /// Accounted for although they are ignored.
    tracked: &'l Tracked,
}

/// A folder of the layer, with the one that it covers.
struct Level {
    upper: Folder,
    /// `None` below a folder that the command created.
    tree: Option<Folder>,
    path: PathBuf,
    belongs: Belongs,
    /// Whether what git ignores in it are products.
    has_products: bool,
    /// Whether nothing of the tree's folder shows through, since this one or one above it was made anew. The kernel
    /// marks the uppermost alone.
    is_opaque: bool,
}

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
    pub(crate) fn open(
        guard: &'l Guard,
        upper: &Path,
        skips: &'l Skips,
        tracked: &'l Tracked,
    ) -> io::Result<Self> {
        // The command may have closed the root of its view.
        drop(code_commit_dir::reach::root(
            upper,
            code_commit_dir::reach::CHANGE,
        )?);
        Ok(Self {
            guard,
            upper: Folder::open(upper)?,
            tree: Folder::open(guard.root())?,
            skips,
            tracked,
        })
    }

    /// What changed, except for what is not accounted for; sorted: a folder comes before its content.
    pub(crate) fn changes(&self, interrupt: Interrupt<'_>) -> io::Result<ChangeSet> {
        let mut found = Vec::new();
        self.walk(|level, entry| {
            interrupt()?;
            if entry.belongs == Belongs::Ours {
                return Ok(false);
            }
            if entry.belongs == Belongs::Unaccounted {
                if self.tracked.has_below(&entry.path)
                    && entry.covers_folder(level)
                    && !level.is_opaque
                {
                    found.extend(self.hidden_below(&entry.path, interrupt)?);
                }
                // Of what git ignores, only what git would read, and what is no product.
                let is_read = is_of_repository(&entry.path) && !is_whiteout(&entry.upper);
                let is_apart = !level.has_products && entry.has_content();
                if (is_read || is_apart) && !entry.is_unchanged(level, interrupt) {
                    found.push(self.change(level, entry));
                }
                let holds_objects = entry.name == "objects" && level.is_git();
                return Ok(is_folder(&entry.upper) && !holds_objects);
            }
            if !entry.is_unchanged(level, interrupt) {
                found.push(self.change(level, entry));
            }
            // Below an opaque folder all was listed with it.
            if entry.covers_folder(level) && !level.is_opaque {
                found.extend(self.hidden_below(&entry.path, interrupt)?);
            }
            Ok(is_folder(&entry.upper) && entry.name != ".git")
        })?;
        Ok(ChangeSet::new(found))
    }

    fn change(&self, level: &Level, entry: &Entry) -> Change {
        let seen = |stat: &Stat| Seen {
            is_ignored: !level.has_products
                && !self.is_tracked(level, &entry.path)
                && self.ignores(&entry.path, is_folder(stat)),
            ..Seen::of(stat)
        };
        Change {
            path: entry.path.clone(),
            before: entry.tree.as_ref().map(seen),
            after: (!is_whiteout(&entry.upper)).then(|| seen(&entry.upper)),
        }
    }

    /// What a path shows, symlinks not followed.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        let (mut level, mut is_hidden) = (self.top()?, false);
        let mut names = path.iter().peekable();
        while let Some(name) = names.next() {
            let Some(entry) = self.entry(&level, name.to_owned())? else {
                return if is_hidden {
                    Ok(None)
                } else {
                    stat_below(&self.tree, path)
                };
            };
            if is_whiteout(&entry.upper) || names.peek().is_none() {
                return Ok(Some(entry.upper).filter(|found| !is_whiteout(found)));
            }
            if !is_folder(&entry.upper) {
                return Ok(None);
            }
            is_hidden |= entry.covers_folder(&level);
            level = level.enter(name, Belongs::Accounted)?;
        }
        Ok(None)
    }

    fn top(&self) -> io::Result<Level> {
        Ok(Level {
            upper: self.upper.try_clone()?,
            tree: Some(self.tree.try_clone()?),
            path: PathBuf::new(),
            belongs: Belongs::Accounted,
            has_products: false,
            is_opaque: false,
        })
    }

    /// `None` if there is none.
    fn entry(&self, level: &Level, name: OsString) -> io::Result<Option<Entry>> {
        let Some(upper) = level.upper.stat(&name)? else {
            return Ok(None);
        };
        let tree = level
            .tree
            .as_ref()
            .map(|tree| tree.stat(&name))
            .transpose()?
            .flatten();
        let path = level.path.join(&name);
        let now = Some(&upper).filter(|upper| !is_whiteout(upper));
        let belongs = self.belongs(level, &path, tree.iter().chain(now));
        Ok(Some(Entry {
            name,
            path,
            upper,
            tree,
            belongs,
        }))
    }

    /// Visits every entry; goes into a folder if `visit` says so. Not recursive: a command chooses the depth.
    fn walk(&self, mut visit: impl FnMut(&Level, &Entry) -> io::Result<bool>) -> io::Result<()> {
        let mut todo = self.visit_all(&Arc::new(self.top()?), &mut visit)?;
        while let Some((above, name, belongs)) = todo.pop() {
            if let Some(level) = unless_closed(above.enter(&name, belongs))? {
                todo.extend(self.visit_all(&Arc::new(level), &mut visit)?);
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
        for (name, _) in unless_closed(level.upper.entries())?.into_iter().flatten() {
            // It may have been moved meanwhile.
            let entry = unless_closed(self.entry(level, OsString::from_vec(name)))?;
            let Some(entry) = entry.flatten() else {
                continue;
            };
            if visit(level, &entry)? {
                inner.push((Arc::clone(level), entry.name, entry.belongs));
            }
        }
        Ok(inner)
    }

    /// What was there and what is there both have to be ignored: a rule for folders says nothing about a file in whose
    /// place a folder stands now.
    fn belongs<'s>(
        &self,
        level: &Level,
        path: &Path,
        mut sides: impl Iterator<Item = &'s Stat>,
    ) -> Belongs {
        if level.belongs != Belongs::Ours && self.tracked.has(path) {
            Belongs::Accounted
        } else if level.belongs != Belongs::Accounted {
            level.belongs
        } else if self.skips.own.iter().any(|own| path == own) || self.guard.is_git(path) {
            Belongs::Ours
        } else if sides.all(|side| self.ignores(path, is_folder(side))) {
            Belongs::Unaccounted
        } else {
            Belongs::Accounted
        }
    }

    /// Whether git tracks a file in spite of the rules, whatever is in its place.
    fn is_tracked(&self, level: &Level, path: &Path) -> bool {
        self.tracked.has(path)
            && (level.belongs != Belongs::Accounted || self.guard.has_ignored(path, false))
    }

    fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        (is_folder && self.skips.is_product(path)) || self.guard.has_ignored(path, is_folder)
    }

    /// The accounted content of a folder of the tree, except what the layer shows in its place.
    fn hidden_below(&self, folder: &Path, interrupt: Interrupt<'_>) -> io::Result<Vec<Change>> {
        let skips = self.skips;
        let skipped = |path: &Path| {
            skips
                .own
                .iter()
                .chain(&skips.products)
                .any(|own| path == own)
        };
        let mut hidden = Vec::new();
        for (path, seen) in self.look_below(folder, &skipped)? {
            interrupt()?;
            if !self.shows(&path) {
                hidden.push(Change {
                    path,
                    before: Some(seen),
                    after: None,
                });
            }
        }
        Ok(hidden)
    }

    fn look_below(
        &self,
        folder: &Path,
        skipped: &(dyn Fn(&Path) -> bool + Sync),
    ) -> io::Result<Snapshot> {
        let look = Look {
            guard: self.guard,
            tracked: self.tracked,
            skipped,
            policy: None,
            products: false,
            before: None,
        };
        look.below(folder).map_err(io::Error::other)
    }

    fn shows(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default();
        self.upper
            .folder_of(path)
            .and_then(|folder| folder.stat(name))
            .is_ok_and(|found| found.is_some())
    }
}

impl Level {
    /// Whether git keeps a repository in this folder, whose objects need not be looked through.
    fn is_git(&self) -> bool {
        let has_head = |folder: &Folder| matches!(folder.stat(OsStr::new("HEAD")), Ok(Some(_)));
        has_head(&self.upper) || self.tree.as_ref().is_some_and(has_head)
    }

    fn enter(&self, name: &OsStr, belongs: Belongs) -> io::Result<Level> {
        let tree = match self.tree.as_ref().map(|tree| tree.open_in(name)) {
            // What is in it cannot be compared.
            Some(Err(closed)) if closed.kind() == io::ErrorKind::PermissionDenied => {
                return Err(closed);
            }
            opened => opened.and_then(Result::ok),
        };
        let is_opaque = self.is_opaque || is_opaque(&self.upper, name);
        let is_product =
            belongs == Belongs::Unaccounted || tree.as_ref().is_some_and(Guard::is_cache);
        Ok(Level {
            has_products: self.has_products || is_product,
            upper: self.upper.open_in(name)?,
            tree,
            path: self.path.join(name),
            belongs,
            is_opaque,
        })
    }
}

impl Entry {
    /// Whether only times or owners differ, or, for a folder, only its content. Without proof it has changed.
    fn is_unchanged(&self, level: &Level, interrupt: Interrupt<'_>) -> bool {
        match &self.tree {
            None => is_whiteout(&self.upper),
            Some(tree) if is_folder(tree) && is_folder(&self.upper) => {
                tree.st_mode == self.upper.st_mode
            }
            Some(tree) => self
                .has_same_content(level, tree, interrupt)
                .unwrap_or(false),
        }
    }

    fn has_same_content(
        &self,
        level: &Level,
        was: &Stat,
        interrupt: Interrupt<'_>,
    ) -> io::Result<bool> {
        let Some(tree) = &level.tree else {
            return Ok(false);
        };
        if was.st_mode != self.upper.st_mode || was.st_size != self.upper.st_size {
            return Ok(false);
        }
        match FileType::from_raw_mode(was.st_mode) {
            FileType::RegularFile => {
                let open = |folder: &Folder| {
                    folder
                        .open_file(&self.name)
                        .map(|file| BufReader::new(Interruptible::new(file, interrupt)))
                };
                are_equal(open(tree)?, open(&level.upper)?)
            }
            FileType::Symlink => {
                Ok(tree.read_link(&self.name)? == level.upper.read_link(&self.name)?)
            }
            FileType::Fifo | FileType::Socket => Ok(true),
            FileType::Directory
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Ok(false),
        }
    }

    /// Whether it is or was a file or a symlink.
    fn has_content(&self) -> bool {
        let kind = FileType::from_raw_mode(self.tree.as_ref().unwrap_or(&self.upper).st_mode);
        matches!(kind, FileType::RegularFile | FileType::Symlink)
    }

    /// Whether the layer hides the content of a folder of the tree.
    fn covers_folder(&self, level: &Level) -> bool {
        self.tree.as_ref().is_some_and(is_folder)
            && (!is_folder(&self.upper) || level.is_opaque || is_opaque(&level.upper, &self.name))
    }
}

/// `None` if the command, or the user, removed their own permissions for the folder.
fn unless_closed<T>(looked: io::Result<T>) -> io::Result<Option<T>> {
    match looked {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        looked => looked.map(Some),
    }
}

/// The entry at a path below a folder; `None` where a parent is missing or not a folder.
pub(crate) fn stat_below(folder: &Folder, path: &Path) -> io::Result<Option<Stat>> {
    match folder.folder_of(path) {
        Err(error) if code_commit_dir::reach::is_gone(&error) => Ok(None),
        folder => folder?.stat(path.file_name().unwrap_or_default()),
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
    Path::new("/proc/self/fd")
        .join(folder.as_fd().as_raw_fd().to_string())
        .join(name)
}
