//! A snapshot of a tree, by the ignore rules captured when the guard was opened: enough to tell later what a command has
//! changed. Git's index says which names need no rule; nothing else of git is asked, and no file is read.
//!
//! There are two ways to know what a command did: snapshots of the tree before and after it, or, where it worked in an
//! overlay, a snapshot of what its layer shows, and one of what that covers of the tree. The same walk makes all four.

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use code_commit_dir::{Attributes, Folder, reach};
use code_commit_guard::{Code, Guard, Policy, Position};
use rustix::fs::{FileType, Mode, Stat};
use rustix::io::Errno;

use crate::change::{Change, ChangeSet, Seen};
use crate::fault::Fault;
use crate::overlay::{is_opaque, is_whiteout};
use crate::tracked::Tracked;

/// Everything below the root that the captured rules do not ignore, sorted by path, and the ignored files that are no
/// products. A product lies below a folder that the rules ignore, or that is marked with a `CACHEDIR.TAG`
/// (<https://bford.info/cachedir/>): it can be built again, while a key or a database cannot.
///
/// Of a `.git`, lists only what makes git run programs later; of the root's own, nothing. The same for whatever git
/// takes for a repository where the rules ignore everything else. Lists a `.gitignore` even
/// if it ignores itself: it decides about everything beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    all: Vec<(PathBuf, Seen)>,
    /// Those of which git may not have the bytes, by their number.
    uncommitted: Vec<usize>,
}

impl Snapshot {
    /// That of the guard's tree, whatever git tracks; without the paths that `skipped` matches.
    pub fn of(
        guard: &Guard,
        skipped: &(dyn Fn(&Path, FileType) -> bool + Sync),
    ) -> Result<Self, Fault> {
        Look::at(guard, &Tracked::None, skipped).whole()
    }

    /// From paths that are sorted.
    pub(crate) fn new(all: Vec<(PathBuf, Seen)>) -> Self {
        let uncommitted = (0..all.len()).collect();
        Self { all, uncommitted }
    }

    /// Each path with what is there.
    pub fn iter(&self) -> impl Iterator<Item = &(PathBuf, Seen)> {
        self.all.iter()
    }

    /// Those of which git may not have the bytes.
    pub(crate) fn uncommitted(&self) -> impl Iterator<Item = &(PathBuf, Seen)> {
        self.uncommitted.iter().filter_map(|at| self.all.get(*at))
    }

    /// Adds what is at a path that is not listed.
    pub(crate) fn add(&mut self, path: &Path, seen: Option<Seen>) {
        let at = self.all.binary_search_by(|(known, _)| (**known).cmp(path));
        if let (Err(at), Some(seen)) = (at, seen) {
            let later = self.uncommitted.iter_mut().filter(|one| **one >= at);
            later.for_each(|one| *one += 1);
            self.uncommitted.push(at);
            self.all.insert(at, (path.to_owned(), seen));
        }
    }

    /// Recovery restores what was ignored like everything else, but products.
    pub(crate) fn with_ignored(mut self) -> Self {
        let all = self.all.iter_mut();
        all.for_each(|(_, seen)| seen.is_ignored &= seen.is_product);
        self
    }

    /// What is at a path.
    pub(crate) fn get(&self, path: &Path) -> Option<&Seen> {
        let at = self.all.binary_search_by(|(known, _)| (**known).cmp(path));
        self.all.get(at.ok()?).map(|(_, seen)| seen)
    }

    /// What differs in `now`. A new time may be all that differs.
    pub(crate) fn differences(&self, now: &Snapshot) -> ChangeSet {
        let mut found = Vec::new();
        let (mut before, mut after) = (self.iter().peekable(), now.iter().peekable());
        loop {
            let next = [before.peek().copied(), after.peek().copied()];
            let next = next.into_iter().flatten().map(|(path, _)| path).min();
            let Some(path) = next else {
                return ChangeSet::new(found);
            };
            let is_it = |one: &&(PathBuf, Seen)| one.0 == *path;
            let was = before.next_if(is_it).map(|(_, seen)| *seen);
            let is = after.next_if(is_it).map(|(_, seen)| *seen);
            let is_untouched = matches!((was, is), (Some(was), Some(is)) if was.is_untouched(&is));
            if !is_untouched {
                let (before, after) = (was, is);
                found.push(Change {
                    path: path.clone(),
                    before,
                    after,
                });
            }
        }
    }
}

/// How a tree is looked at.
pub(crate) struct Look<'l> {
    pub(crate) guard: &'l Guard,
    pub(crate) tracked: &'l Tracked,
    /// What is skipped, with everything below it.
    pub(crate) skipped: &'l (dyn Fn(&Path, FileType) -> bool + Sync),
    /// What its names protect is listed even among products.
    pub(crate) policy: Option<&'l Policy>,
    /// Whether products are listed, too.
    pub(crate) products: bool,
    pub(crate) when: When<'l>,
    /// The layer of an overlay, if only that and what it covers is looked at.
    pub(crate) layer: Option<&'l Path>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum When<'l> {
    /// Before the command; what git has of it need not be copied.
    Before,
    /// A folder that the command has closed since is opened.
    After(Option<&'l Snapshot>),
}

struct Level {
    folder: Folder,
    /// The same folder of the layer, or of the tree if it is the layer that is looked at. `None` where nothing of the
    /// other shows.
    other: Option<Folder>,
    path: PathBuf,
    within: Within,
    /// Whether the rules ignore it: then only tracked files of it are listed.
    is_ignored: bool,
    /// Whether what the rules ignore in it are products.
    has_products: bool,
    position: Position,
    tracked: Range<usize>,
}

/// A folder that still has to be looked into.
struct Todo {
    above: Arc<Level>,
    name: OsString,
    within: Within,
    is_ignored: bool,
    mode: Option<u32>,
}

/// What a look comes to, in the order of the paths.
enum Part {
    Found {
        path: PathBuf,
        seen: Seen,
        is_committed: bool,
    },
    Folder(Todo),
}

/// What a folder belongs to, which decides what of it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Tree,
    Git,
    Hooks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    Always,
    UnlessIgnored,
    Never,
}

impl Within {
    /// What a folder in this one belongs to.
    fn enter(self, name: &OsStr) -> Self {
        match self {
            Self::Tree if name == DOT_GIT => Self::Git,
            Self::Tree => Self::Tree,
            Self::Git | Self::Hooks => Self::Hooks,
        }
    }

    fn lists(self, name: &OsStr) -> Listed {
        match self {
            Self::Tree if name == DOT_GIT || name == ".gitignore" => Listed::Always,
            Self::Tree => Listed::UnlessIgnored,
            Self::Git if RUN_BY_GIT.iter().any(|run| name == *run) => Listed::Always,
            Self::Hooks if !name.as_bytes().ends_with(b".sample") => Listed::Always,
            Self::Git | Self::Hooks => Listed::Never,
        }
    }
}

const DOT_GIT: &str = ".git";
/// What makes git run programs: its configuration, its hooks, and a file that points to those of another repository
/// (gitrepository-layout(5)).
pub(crate) const RUN_BY_GIT: [&str; 4] = ["config", "config.worktree", "commondir", "hooks"];
/// So many folders are worth a second thread.
const SHARED: usize = 64;
/// How deep they are looked for.
const SHARED_DEPTH: usize = 6;
const MOST_THREADS: usize = 4;

impl<'l> Look<'l> {
    /// One of the whole tree before a command.
    pub(crate) fn at(
        guard: &'l Guard,
        tracked: &'l Tracked,
        skipped: &'l (dyn Fn(&Path, FileType) -> bool + Sync),
    ) -> Self {
        Self {
            guard,
            tracked,
            skipped,
            policy: None,
            products: false,
            when: When::Before,
            layer: None,
        }
    }

    /// Follows no symlink and enters no other file system.
    pub(crate) fn whole(&self) -> Result<Snapshot, Fault> {
        let (root, after) = (self.guard.root(), matches!(self.when, When::After(_)));
        let open = |path: &Path| Folder::open(path).map_err(Fault::file("look at", path));
        let other = match self.layer {
            Some(_) if after => Some(open(root)?),
            Some(layer) => Some(open(layer)?),
            None => None,
        };
        let first = Level {
            folder: open(self.layer.filter(|_| after).unwrap_or(root))?,
            other,
            path: PathBuf::new(),
            within: Within::Tree,
            is_ignored: false,
            has_products: false,
            position: self.guard.position(Path::new("")),
            tracked: 0..self.tracked.len(),
        };
        let mut parts = self.list(&Arc::new(first))?;
        let folders = |parts: &[Part]| {
            let is_folder = |part: &&Part| matches!(part, Part::Folder(_));
            parts.iter().filter(is_folder).count()
        };
        for _ in 0..SHARED_DEPTH {
            if (1..SHARED).contains(&folders(&parts)) {
                let inner = parts.into_iter().map(|part| match part {
                    Part::Folder(todo) => self.enter(todo),
                    found @ Part::Found { .. } => Ok(vec![found]),
                });
                parts = inner
                    .collect::<Result<Vec<_>, _>>()?
                    .into_iter()
                    .flatten()
                    .collect();
            }
        }
        // Starting threads would take longer than looking.
        if folders(&parts) < SHARED {
            return self.all_of(parts);
        }
        self.share(parts)
    }

    /// Looks into the remaining folders, in several threads.
    fn share(&self, mut parts: Vec<Part>) -> Result<Snapshot, Fault> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let each = parts.len().div_ceil(threads.min(MOST_THREADS)).max(1);
        thread::scope(|scope| {
            let mut workers = Vec::new();
            while !parts.is_empty() {
                let rest = parts.split_off(each.min(parts.len()));
                let share = std::mem::replace(&mut parts, rest);
                workers.push(scope.spawn(move || self.all_of(share)));
            }
            let mut whole = Snapshot::default();
            for worker in workers {
                let part = worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                let before = whole.all.len();
                let uncommitted = part.uncommitted.into_iter().map(|at| at + before);
                whole.uncommitted.extend(uncommitted);
                whole.all.extend(part.all);
            }
            Ok(whole)
        })
    }

    /// Not recursive: a command chooses the depth.
    fn all_of(&self, parts: Vec<Part>) -> Result<Snapshot, Fault> {
        let (mut whole, mut open) = (Snapshot::default(), vec![parts.into_iter()]);
        while let Some(parts) = open.last_mut() {
            match parts.next() {
                None => drop(open.pop()),
                Some(Part::Folder(todo)) => open.push(self.enter(todo)?.into_iter()),
                Some(Part::Found {
                    path,
                    seen,
                    is_committed,
                }) => {
                    let at = whole.all.len();
                    whole.uncommitted.extend((!is_committed).then_some(at));
                    whole.all.push((path, seen));
                }
            }
        }
        Ok(whole)
    }

    fn enter(&self, next: Todo) -> Result<Vec<Part>, Fault> {
        let Todo {
            above,
            name,
            within,
            is_ignored,
            mode,
        } = next;
        let path = above.path.join(&name);
        self.reopen(&above, &name, &path, mode);
        let folder = match above.folder.open_in(&name) {
            Ok(folder) => folder,
            Err(error) if is_closed(&error) => return Ok(Vec::new()),
            Err(error) => return Err(Fault::file("look at", &path)(error)),
        };
        let layer = match self.when {
            When::Before => above.other.as_ref(),
            When::After(_) => Some(&above.folder),
        };
        let other = above.other.as_ref().map(|other| other.open_in(&name));
        let other = match other {
            // What is in it cannot be compared.
            Some(Err(closed)) if closed.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Vec::new());
            }
            other => other.and_then(Result::ok),
        };
        let other = other.filter(|_| layer.is_some_and(|layer| !is_opaque(layer, &name)));
        let level = Level {
            has_products: above.has_products
                || is_ignored
                || [Some(&folder), other.as_ref()]
                    .into_iter()
                    .flatten()
                    .any(Guard::is_cache),
            folder,
            other,
            within,
            is_ignored,
            position: self.guard.enter(&above.position, &name.to_string_lossy()),
            tracked: self.tracked.below(&above.tracked, &path),
            path,
        };
        self.list(&Arc::new(level))
    }

    /// Opens a folder that its owner has closed since.
    fn reopen(&self, above: &Level, name: &OsStr, path: &Path, mode: Option<u32>) {
        let When::After(before) = self.when else {
            return;
        };
        let was_open = |mode: u32| mode & LOOK == LOOK;
        let covered = |tree: &Folder| Some(tree.stat(name).ok()??.st_mode);
        let was = match before {
            Some(before) => before.get(path).map(|was| was.mode),
            None => above.other.as_ref().and_then(covered),
        };
        if let Some(mode) = mode.filter(|mode| !was_open(*mode))
            && was.is_none_or(was_open)
        {
            // Otherwise what is in it cannot be seen, and its mode is put back, or it goes.
            let open = Mode::from_raw_mode(mode) | reach::CHANGE;
            let _ = reach::set_mode(above.folder.as_fd(), name, open);
        }
    }

    /// The content of one folder, by name.
    fn list(&self, level: &Arc<Level>) -> Result<Vec<Part>, Fault> {
        let is_covered = level.other.is_some() && matches!(self.when, When::Before);
        let listed = level.other.as_ref().filter(|_| is_covered);
        let mut entries = match listed.unwrap_or(&level.folder).entries() {
            Err(error) if is_closed(&error) => return Ok(Vec::new()),
            entries => entries.map_err(Fault::file("look at", &level.path))?,
        };
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let within = if level.is_ignored && level.within == Within::Tree && level.is_git(&entries) {
            Within::Git
        } else {
            level.within
        };
        let mut parts = Vec::with_capacity(entries.len());
        for (name, kind) in entries {
            let kind = if is_covered || kind.is_char_device() {
                FileType::Unknown
            } else {
                kind
            };
            self.entry(level, within, &OsString::from_vec(name), kind, &mut parts)?;
        }
        Ok(parts)
    }

    fn entry(
        &self,
        level: &Arc<Level>,
        within: Within,
        name: &OsStr,
        kind: FileType,
        parts: &mut Vec<Part>,
    ) -> Result<(), Fault> {
        let listed = within.lists(name);
        if listed == Listed::Never && !level.is_ignored {
            return Ok(());
        }
        let path = level.path.join(name);
        let look = || match level.folder.stat(name) {
            Err(error) if is_closed(&error) => Ok(None),
            looked => looked.map_err(Fault::file("look at", &path)),
        };
        // Ignore rules depend on whether it is a folder.
        let looked = if kind == FileType::Unknown {
            match look()? {
                Some(found) if !is_whiteout(&found) => Some(found),
                Some(_) | None => return Ok(()),
            }
        } else {
            None
        };
        let kind = looked.map_or(kind, |stat| FileType::from_raw_mode(stat.st_mode));
        if self.guard.is_git(&path) || (self.skipped)(&path, kind) {
            return Ok(());
        }
        let text = name.to_string_lossy();
        let ignores = |is_folder| self.guard.ignores_in(&level.position, &text, is_folder);
        let tracked = self.tracked.find(&level.tracked, &path);
        // A folder in the place of a file counts if that was tracked in spite of the rules.
        let is_tracked =
            tracked.is_some() && (!kind.is_dir() || level.is_ignored || ignores(false));
        let is_ignored = level.is_ignored
            || (listed == Listed::UnlessIgnored && !is_tracked && ignores(kind.is_dir()));
        let is_part = within != Within::Tree && listed == Listed::Always;
        let counts = || {
            is_tracked
                || !self.tracked.below(&level.tracked, &path).is_empty()
                || self.protects(&path)
        };
        let is_hidden = is_ignored && !is_part && !counts();
        let is_content = matches!(kind, FileType::RegularFile | FileType::Symlink);
        let holds_objects = within == Within::Git && name == "objects" && is_hidden;
        let is_product = is_hidden && level.has_products;
        let is_listed = !is_hidden || ((self.products || !is_product) && is_content);
        let stat = match looked {
            Some(_) if is_listed => looked,
            None if is_listed => look()?,
            Some(_) | None => None,
        };
        let todo = (kind.is_dir()
            && within != Within::Hooks
            && !holds_objects
            && (stat.is_some() || !is_listed))
            .then(|| Todo {
                above: Arc::clone(level),
                within: if is_hidden {
                    Within::Tree.enter(name)
                } else {
                    within.enter(name)
                },
                is_ignored: is_ignored && (is_hidden || !is_tracked),
                mode: stat.map(|stat: Stat| stat.st_mode),
                name: name.to_owned(),
            });
        if let Some(stat) = stat {
            let seen = Seen {
                is_ignored: is_hidden,
                is_product,
                ..Seen::of(&stat)
            };
            let is_committed = tracked.is_some_and(|at| self.is_committed(at, &path, &seen));
            parts.push(Part::Found {
                path,
                seen,
                is_committed,
            });
        }
        parts.extend(todo.map(Part::Folder));
        Ok(())
    }

    /// Git has no attributes, and no symlinks that lead where they did.
    fn is_committed(&self, at: usize, path: &Path, seen: &Seen) -> bool {
        match (self.tracked, self.when, self.layer) {
            (Tracked::Index(index), When::Before, None) => {
                index.has(at, &seen.on_disk()) && !Attributes::are_at(&self.guard.root().join(path))
            }
            _ => false,
        }
    }

    fn protects(&self, path: &Path) -> bool {
        let policy = self.policy.filter(|policy| policy.protects_any());
        let refusal = policy.and_then(|policy| policy.refuses_bytes(path.as_os_str().as_bytes()));
        refusal.is_some_and(|refusal| refusal.code() != Code::OutOfScope)
    }
}

impl Level {
    /// Whether git takes a folder with these entries for a repository.
    fn is_git(&self, entries: &[(Vec<u8>, FileType)]) -> bool {
        let is_in = |folder: &Folder, name: &str| matches!(folder.stat(name), Ok(Some(_)));
        let has = |wanted: &str| {
            entries.iter().any(|(name, _)| name == wanted.as_bytes())
                || self
                    .other
                    .as_ref()
                    .is_some_and(|other| is_in(other, wanted) || is_in(&self.folder, wanted))
        };
        has("HEAD") && ((has("objects") && has("refs")) || has("commondir"))
    }
}

/// What it takes to see what is in a folder.
const LOOK: u32 = 0o500;

/// Whether the error means that there is no folder, that it is on another file system, or that it may not be read.
fn is_closed(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::ACCESS | Errno::LOOP | Errno::NOENT | Errno::NOTDIR | Errno::PERM | Errno::XDEV
        )
    )
}

#[cfg(test)]
mod tests;
