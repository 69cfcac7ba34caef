//! A snapshot of a tree, by the ignore rules captured when the guard was opened: enough to tell later what a command has
//! changed. Git's index says which names need no rule; nothing else of git is asked, and no file is read.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use code_commit_dir::{Folder, reach};
use code_commit_guard::{Code, Guard, Policy, Position};
use rustix::fs::{FileType, Mode, Stat};
use rustix::io::Errno;

use crate::change::{Change, ChangeSet, Seen};
use crate::fault::Fault;

/// Everything below the root that the captured rules do not ignore, sorted by path, and the ignored files that are no
/// products. A product lies below a folder that the rules ignore, or that is marked with a `CACHEDIR.TAG`
/// (<https://bford.info/cachedir/>): it can be built again, while a key or a database cannot.
///
/// Of a `.git`, lists only what makes git run programs later; of the root's own, nothing. The same for whatever git
/// takes for a repository where the rules ignore everything else. Lists a `.gitignore` even
/// if it ignores itself: it decides about everything beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot(Vec<(PathBuf, Seen)>);

/// The files that git tracks, sorted: no rule makes one ignored. Whatever replaces one counts, too.
#[derive(Debug, Default)]
pub(crate) struct Tracked(Vec<PathBuf>);

impl Tracked {
    pub(crate) fn new(mut paths: Vec<PathBuf>) -> Self {
        paths.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        Self(paths)
    }

    /// Whether the file at this path is one.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.has_in(&(0..self.0.len()), path)
    }

    /// Whether a file at or below this path is one.
    pub(crate) fn has_below(&self, path: &Path) -> bool {
        self.has(path) || !self.below(&(0..self.0.len()), path).is_empty()
    }

    fn has_in(&self, range: &Range<usize>, path: &Path) -> bool {
        let all = self.0.get(range.clone()).unwrap_or_default();
        all.binary_search_by(|one| one.as_os_str().cmp(path.as_os_str()))
            .is_ok()
    }

    /// Those of a range that are below a folder.
    fn below(&self, range: &Range<usize>, folder: &Path) -> Range<usize> {
        let all = self.0.get(range.clone()).unwrap_or_default();
        let order = |one: &PathBuf| {
            let (one, folder) = (one.as_os_str().as_bytes(), folder.as_os_str().as_bytes());
            let (head, rest) = one.split_at(folder.len().min(one.len()));
            head.cmp(folder)
                .then_with(|| rest.first().copied().unwrap_or(0).cmp(&b'/'))
        };
        let start = all.partition_point(|one| order(one) == Ordering::Less);
        let end = all.partition_point(|one| order(one) != Ordering::Greater);
        range.start + start..range.start + end
    }
}

impl Snapshot {
    /// That of the guard's tree, whatever git tracks; without the paths that `skipped` matches.
    pub fn of(guard: &Guard, skipped: &(dyn Fn(&Path) -> bool + Sync)) -> Result<Self, Fault> {
        let look = Look {
            guard,
            tracked: &Tracked::default(),
            skipped,
            policy: None,
            products: false,
            before: None,
        };
        look.whole()
    }

    /// From paths in any order.
    pub(crate) fn new(mut found: Vec<(PathBuf, Seen)>) -> Self {
        sort(&mut found);
        Self(found)
    }

    /// Each path with what is there.
    pub fn iter(&self) -> impl Iterator<Item = &(PathBuf, Seen)> {
        self.0.iter()
    }

    /// Adds what is at a path that is not listed.
    pub(crate) fn add(&mut self, path: &Path, seen: Option<Seen>) {
        let at = self
            .0
            .binary_search_by(|(known, _)| known.as_os_str().cmp(path.as_os_str()));
        if let (Err(at), Some(seen)) = (at, seen) {
            self.0.insert(at, (path.to_owned(), seen));
        }
    }

    /// Recovery restores what was ignored like everything else, but products.
    pub(crate) fn with_ignored(mut self) -> Self {
        self.0
            .iter_mut()
            .for_each(|(_, seen)| seen.is_ignored &= seen.is_product);
        self
    }

    /// What is at a path.
    pub(crate) fn get(&self, path: &Path) -> Option<&Seen> {
        let at = self
            .0
            .binary_search_by(|(known, _)| known.as_os_str().cmp(path.as_os_str()))
            .ok()?;
        self.0.get(at).map(|(_, seen)| seen)
    }

    /// What differs in `now`. A new time may be all that differs.
    pub(crate) fn differences(&self, now: &Snapshot) -> ChangeSet {
        let mut found = Vec::new();
        let (mut before, mut after) = (self.0.iter().peekable(), now.0.iter().peekable());
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => return ChangeSet::new(found),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((was, _)), Some((is, _))) => was.as_os_str().cmp(is.as_os_str()),
            };
            let was = if order.is_le() { before.next() } else { None };
            let is = if order.is_ge() { after.next() } else { None };
            let same = matches!((was, is), (Some((_, was)), Some((_, is))) if was.is_untouched(is));
            if let Some((path, _)) = was.or(is).filter(|_| !same) {
                let seen = |side: Option<&(PathBuf, Seen)>| side.map(|(_, seen)| *seen);
                found.push(Change {
                    path: path.clone(),
                    before: seen(was),
                    after: seen(is),
                });
            }
        }
    }
}

impl IntoIterator for Snapshot {
    type Item = (PathBuf, Seen);
    type IntoIter = std::vec::IntoIter<(PathBuf, Seen)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// How a tree is looked at.
pub(crate) struct Look<'l> {
    pub(crate) guard: &'l Guard,
    pub(crate) tracked: &'l Tracked,
    /// Paths that are skipped, with everything below them.
    pub(crate) skipped: &'l (dyn Fn(&Path) -> bool + Sync),
    /// What its names protect is listed even among products.
    pub(crate) policy: Option<&'l Policy>,
    /// Whether products are listed, too.
    pub(crate) products: bool,
    /// The snapshot before the command: a folder that the command has closed is opened.
    pub(crate) before: Option<&'l Snapshot>,
}

struct Level {
    folder: Folder,
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
    fn of(folder: &Path) -> Self {
        folder.iter().fold(Self::Tree, Self::enter)
    }

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
const MOST_THREADS: usize = 4;

impl Look<'_> {
    /// The whole tree. Follows no symlink and enters no other file system.
    pub(crate) fn whole(&self) -> Result<Snapshot, Fault> {
        self.below(Path::new(""))
    }

    /// Only what is below one folder.
    pub(crate) fn below(&self, path: &Path) -> Result<Snapshot, Fault> {
        let failed = |error| Fault::file("look at", &self.guard.root().join(path))(error);
        let root = Folder::open(self.guard.root()).map_err(failed)?;
        let folder = root.folder_of(&path.join("x")).map_err(failed)?;
        let is_ignored = self.guard.has_ignored_folder(path);
        let all = 0..self.tracked.0.len();
        let is_root = path.as_os_str().is_empty();
        let first = Level {
            has_products: is_ignored || (!is_root && Guard::is_cache(&folder)),
            folder,
            within: Within::of(path),
            is_ignored,
            position: self.guard.position(path),
            tracked: if is_root {
                all
            } else {
                self.tracked.below(&all, path)
            },
            path: path.to_owned(),
        };
        let mut found = Vec::new();
        let mut todo = self.look_into(&Arc::new(first), &mut found)?;
        while todo.len() < SHARED
            && let Some(next) = todo.pop()
        {
            todo.extend(self.enter(next, &mut found)?);
        }
        self.share(todo, &mut found)?;
        Ok(Snapshot::new(found))
    }

    /// Looks into the remaining folders, in several threads.
    fn share(&self, mut todo: Vec<Todo>, found: &mut Vec<(PathBuf, Seen)>) -> Result<(), Fault> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let each = todo.len().div_ceil(threads.min(MOST_THREADS)).max(1);
        thread::scope(|scope| {
            let mut workers = Vec::new();
            while !todo.is_empty() {
                let mut part = todo.split_off(todo.len().saturating_sub(each));
                workers.push(scope.spawn(move || {
                    let mut found = Vec::new();
                    while let Some(next) = part.pop() {
                        part.extend(self.enter(next, &mut found)?);
                    }
                    sort(&mut found);
                    Ok(found)
                }));
            }
            for worker in workers {
                let part = worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                found.extend(part?);
            }
            Ok(())
        })
    }

    fn enter(&self, next: Todo, found: &mut Vec<(PathBuf, Seen)>) -> Result<Vec<Todo>, Fault> {
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
        let level = Level {
            has_products: above.has_products || is_ignored || Guard::is_cache(&folder),
            folder,
            within,
            is_ignored,
            position: self.guard.enter(&above.position, &name.to_string_lossy()),
            tracked: self.tracked.below(&above.tracked, &path),
            path,
        };
        self.look_into(&Arc::new(level), found)
    }

    /// Opens a folder that its owner has closed since.
    fn reopen(&self, above: &Level, name: &OsStr, path: &Path, mode: Option<u32>) {
        let was_open = |mode: u32| mode & LOOK == LOOK;
        let was = |before: &Snapshot| before.get(path).is_none_or(|was| was_open(was.mode));
        if let Some(mode) = mode.filter(|mode| !was_open(*mode))
            && self.before.is_some_and(was)
        {
            // Otherwise what is in it cannot be seen, and its mode is put back, or it goes.
            let _ = reach::set_mode(
                above.folder.as_fd(),
                name,
                Mode::from_raw_mode(mode) | reach::CHANGE,
            );
        }
    }

    /// Records the content of one folder; returns its subfolders.
    fn look_into(
        &self,
        level: &Arc<Level>,
        found: &mut Vec<(PathBuf, Seen)>,
    ) -> Result<Vec<Todo>, Fault> {
        let mut inner = Vec::new();
        let entries = match level.folder.entries() {
            Err(error) if is_closed(&error) => return Ok(inner),
            entries => entries.map_err(Fault::file("look at", &level.path))?,
        };
        let within = if level.is_ignored && level.within == Within::Tree && is_repository(&entries)
        {
            Within::Git
        } else {
            level.within
        };
        for (name, kind) in entries {
            let name = OsString::from_vec(name);
            let listed = within.lists(&name);
            if listed == Listed::Never && !level.is_ignored {
                continue;
            }
            let path = level.path.join(&name);
            if self.guard.is_git(&path) || (self.skipped)(&path) {
                continue;
            }
            let look = || match level.folder.stat(&name) {
                Err(error) if is_closed(&error) => Ok(None),
                looked => looked.map_err(Fault::file("look at", &path)),
            };
            // Ignore rules depend on whether it is a folder.
            let looked = if kind == FileType::Unknown {
                look()?
            } else {
                None
            };
            let kind = looked.map_or(kind, |stat| FileType::from_raw_mode(stat.st_mode));
            let ignores = |is_folder| {
                self.guard
                    .ignores_in(&level.position, &name.to_string_lossy(), is_folder)
            };
            // A folder in the place of a file counts if that was tracked in spite of the rules.
            let is_tracked = || {
                self.tracked.has_in(&level.tracked, &path)
                    && (!kind.is_dir() || level.is_ignored || ignores(false))
            };
            let is_ignored = level.is_ignored
                || (listed == Listed::UnlessIgnored && !is_tracked() && ignores(kind.is_dir()));
            let is_part = within != Within::Tree && listed == Listed::Always;
            let counts = || {
                is_tracked()
                    || !self.tracked.below(&level.tracked, &path).is_empty()
                    || self.protects(&path)
            };
            let is_hidden = is_ignored && !is_part && !counts();
            let is_content = matches!(kind, FileType::RegularFile | FileType::Symlink);
            let holds_objects = within == Within::Git && name == "objects" && is_hidden;
            let is_product = is_hidden && level.has_products;
            let is_listed = !is_hidden || ((self.products || !is_product) && is_content);
            let stat = if is_listed { look()? } else { None };
            if kind.is_dir()
                && within != Within::Hooks
                && !holds_objects
                && (stat.is_some() || !is_listed)
            {
                inner.push(Todo {
                    above: Arc::clone(level),
                    within: if is_hidden {
                        Within::Tree.enter(&name)
                    } else {
                        within.enter(&name)
                    },
                    is_ignored: is_ignored && (is_hidden || !is_tracked()),
                    mode: stat.map(|stat: Stat| stat.st_mode),
                    name,
                });
            }
            let seen = |stat: Stat| Seen {
                is_ignored: is_hidden,
                is_product,
                ..Seen::of(&stat)
            };
            found.extend(stat.map(|stat| (path, seen(stat))));
        }
        Ok(inner)
    }

    fn protects(&self, path: &Path) -> bool {
        let policy = self.policy.filter(|policy| policy.protects_any());
        let refusal = policy.and_then(|policy| policy.refuses_bytes(path.as_os_str().as_bytes()));
        refusal.is_some_and(|refusal| refusal.code() != Code::OutOfScope)
    }
}

/// Parts that are sorted already only have to be merged.
fn sort(found: &mut [(PathBuf, Seen)]) {
    found.sort_by(|(a, _), (b, _)| a.as_os_str().cmp(b.as_os_str()));
}

/// What it takes to see what is in a folder.
const LOOK: u32 = 0o500;

/// Whether git takes a folder with these entries for a repository.
fn is_repository(entries: &[(Vec<u8>, FileType)]) -> bool {
    let has = |wanted: &[u8]| entries.iter().any(|(name, _)| name == wanted);
    has(b"HEAD") && ((has(b"objects") && has(b"refs")) || has(b"commondir"))
}

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
