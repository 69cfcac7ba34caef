//! The content of a tree, by the ignore rules captured when the guard was opened: enough to detect later what
//! a command has changed.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Stat};

use crate::patterns::Kind;
use crate::repository::WorkTree;
use crate::rules::{Way, is_closed};
use crate::tree::JudgeError;
use crate::{Guard, Policy, Surroundings};
use code_commit_dir::Folder;

/// Everything below the root that the captured rules do not ignore, sorted by path, and the ignored files that are no
/// products. A product lies below a folder that the rules ignore, or that is marked with a `CACHEDIR.TAG`
/// (<https://bford.info/cachedir/>): it can be built again, while a key or a database cannot.
///
/// Of a `.git`, lists only what makes git run programs later; of the root's own, nothing. The same for whatever git
/// takes for a repository where the rules ignore everything else. Lists a `.gitignore` even
/// if it ignores itself: it decides about everything beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey(Vec<(PathBuf, Seen)>);

/// The files that git tracks although its rules ignore them: added by force. Whatever replaces one counts, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tracked(BTreeSet<PathBuf>);

impl Tracked {
    /// Whether the file at this path is one.
    pub fn has(&self, path: &Path) -> bool {
        self.0.contains(path)
    }

    /// Whether a file at or below this path is one.
    pub fn has_below(&self, path: &Path) -> bool {
        self.0
            .range(path.to_owned()..)
            .next()
            .is_some_and(|first| first.starts_with(path))
    }
}

/// What was at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The type and the permission bits.
    pub mode: u32,
    /// In bytes.
    pub len: u64,
    /// When the content was last modified, in seconds and nanoseconds.
    pub mtime: (i64, i64),
    /// When the content or the metadata last changed.
    pub ctime: (i64, i64),
    /// Device and inode.
    pub id: (u64, u64),
    /// User and group.
    pub owner: (u32, u32),
    /// Whether the captured rules ignore it, by its own name.
    pub is_ignored: bool,
}

/// A path at which two surveys differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Relative to the root.
    pub path: PathBuf,
    /// What was there in the first one.
    pub before: Option<Seen>,
    /// What was there in the second one.
    pub after: Option<Seen>,
}

impl Seen {
    /// What `stat` says.
    pub fn of(stat: &Stat) -> Self {
        Self {
            mode: stat.st_mode,
            len: u64::try_from(stat.st_size).unwrap_or(0),
            mtime: (stat.st_mtime, stat.st_mtime_nsec.try_into().unwrap_or(0)),
            ctime: (stat.st_ctime, stat.st_ctime_nsec.try_into().unwrap_or(0)),
            id: (stat.st_dev, stat.st_ino),
            owner: (stat.st_uid, stat.st_gid),
            is_ignored: false,
        }
    }

    /// Whether it is a file, a folder, a symlink or something else.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Whether the mode is that of a folder.
    pub fn is_folder(mode: u32) -> bool {
        FileType::from_raw_mode(mode).is_dir()
    }

    /// What stays the same when it is moved or linked.
    pub fn identity(&self) -> (u32, u64, (i64, i64), (u64, u64)) {
        (self.mode, self.len, self.mtime, self.id)
    }

    /// Whether it is unchanged. Ignores the content of a folder.
    fn is_untouched(&self, other: &Seen) -> bool {
        self == other || (self.kind().is_dir() && self.mode == other.mode)
    }
}

impl Difference {
    /// Whether only what the rules ignore was and is there.
    pub fn is_ignored(&self) -> bool {
        let mut both = self.before.iter().chain(&self.after);
        both.all(|seen| seen.is_ignored)
    }
}

impl Survey {
    /// From paths in any order.
    pub fn new(mut found: Vec<(PathBuf, Seen)>) -> Self {
        found.sort_unstable_by(|(a, _), (b, _)| a.as_os_str().cmp(b.as_os_str()));
        Self(found)
    }

    /// Each path with what is there.
    pub fn iter(&self) -> impl Iterator<Item = &(PathBuf, Seen)> {
        self.0.iter()
    }

    /// What is at a path.
    pub fn get(&self, path: &Path) -> Option<&Seen> {
        let at = self
            .0
            .binary_search_by(|(known, _)| known.as_os_str().cmp(path.as_os_str()))
            .ok()?;
        self.0.get(at).map(|(_, seen)| seen)
    }

    /// The paths at which `now` differs, sorted: a folder comes before its content.
    pub fn differences(&self, now: &Survey) -> Vec<Difference> {
        let mut found = Vec::new();
        let (mut before, mut after) = (self.0.iter().peekable(), now.0.iter().peekable());
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => return found,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((was, _)), Some((is, _))) => was.as_os_str().cmp(is.as_os_str()),
            };
            let was = if order.is_le() { before.next() } else { None };
            let is = if order.is_ge() { after.next() } else { None };
            let same = matches!((was, is), (Some((_, was)), Some((_, is))) if was.is_untouched(is));
            if let Some((path, _)) = was.or(is).filter(|_| !same) {
                let seen = |side: Option<&(PathBuf, Seen)>| side.map(|(_, seen)| *seen);
                found.push(Difference {
                    path: path.clone(),
                    before: seen(was),
                    after: seen(is),
                });
            }
        }
    }
}

struct Level {
    folder: Folder,
    /// From the root.
    path: Vec<u8>,
    within: Within,
    /// Whether the rules ignore it: then only tracked files of it are listed.
    is_ignored: bool,
    /// Whether what the rules ignore in it are products.
    has_products: bool,
    way: Way,
}

/// A folder that still has to be looked into: its parent, its name, what it belongs to, and whether the rules ignore it.
type Todo = (Arc<Level>, OsString, Within, bool);

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

    fn lists(self, name: &[u8]) -> Listed {
        match self {
            Self::Tree if name == DOT_GIT.as_bytes() || name == b".gitignore" => Listed::Always,
            Self::Tree => Listed::UnlessIgnored,
            Self::Git if RUNS_LATER.contains(&name) => Listed::Always,
            Self::Hooks if !name.ends_with(b".sample") => Listed::Always,
            Self::Git | Self::Hooks => Listed::Never,
        }
    }
}

/// Whether git takes a folder with these entries for a repository.
fn is_repository(entries: &[(Vec<u8>, FileType)]) -> bool {
    let has = |wanted: &[u8]| entries.iter().any(|(name, _)| name == wanted);
    has(b"HEAD") && ((has(b"objects") && has(b"refs")) || has(b"commondir"))
}

const DOT_GIT: &str = ".git";
/// What makes git run programs: its configuration, its hooks, and a file that points to those of another repository
/// (gitrepository-layout(5)).
const RUNS_LATER: [&[u8]; 4] = [b"config", b"config.worktree", b"hooks", b"commondir"];

impl Guard {
    /// Those of the files, relative to the root, that the captured rules ignore.
    pub fn ignored_of(&self, tracked: impl IntoIterator<Item = PathBuf>) -> Tracked {
        let from_top = |path: &Path| format!("{}{}", self.work_tree.prefix, path.to_string_lossy());
        Tracked(
            tracked
                .into_iter()
                .filter(|path| self.captured.ignore(&from_top(path)))
                .collect(),
        )
    }

    /// Whether the rules in a folder that is not known yet ignore everything in it, themselves too: it is a tool's
    /// cache. What cannot be read is none.
    pub fn ignores_itself(folder: &Path) -> bool {
        let around = |root: &Path| Ok(WorkTree::without_repository(root));
        let all = Surroundings::of(folder, around)
            .and_then(|around| around.guard(Policy::new()))
            .ok();
        let survey = all
            .as_ref()
            .and_then(|all| all.survey(&Tracked::default(), &|_| false).ok());
        let (Some(all), Some(survey)) = (all, survey) else {
            return false;
        };
        let is_rules = |path: &Path| path.file_name() == Some(OsStr::new(".gitignore"));
        let is_ignored =
            |path: &Path| is_rules(path) && all.captured.ignore(&path.to_string_lossy());
        all.captured.of("").is_some()
            && survey
                .iter()
                .all(|(path, seen)| seen.kind().is_dir() || seen.is_ignored || is_ignored(path))
    }

    /// Surveys the whole tree, except products that git does not track, and what is below a path that `skipped` matches. Does not follow symlinks or enter other file systems.
    pub fn survey(
        &self,
        tracked: &Tracked,
        skipped: &dyn Fn(&Path) -> bool,
    ) -> Result<Survey, JudgeError> {
        self.survey_below(Path::new(""), tracked, skipped)
    }

    /// Surveys only what is below one folder.
    pub fn survey_below(
        &self,
        folder: &Path,
        tracked: &Tracked,
        skipped: &dyn Fn(&Path) -> bool,
    ) -> Result<Survey, JudgeError> {
        let rules = &self.captured;
        let prefix = self.work_tree.prefix.as_str();
        let path = folder.as_os_str().as_bytes().to_vec();
        let opened = self.root.folder_of(&folder.join("x")).map_err(at(&path))?;
        let mut found = Vec::new();
        let inside = format!("{prefix}{}/x", folder.to_string_lossy());
        let mut above =
            crate::patterns::folders(&inside).filter(|above| above.len() > prefix.len());
        let is_ignored = above.any(|above| rules.name(above, Kind::Folder));
        let (within, way) = (Within::of(folder), self.way_to(folder));
        let first = Level {
            has_products: is_ignored || (!path.is_empty() && Self::is_cache(&opened)),
            folder: opened,
            within,
            is_ignored,
            way,
            path,
        };
        let scope = (tracked, skipped);
        let mut todo = self.look_into(&Arc::new(first), scope, &mut found)?;
        while let Some((parent, name, within, is_ignored)) = todo.pop() {
            let path = join(&parent.path, &name);
            let folder = match parent.folder.open_in(&name) {
                Ok(folder) => folder,
                Err(error) if is_closed(&error) => continue,
                Err(error) => return Err(at(&path)(error)),
            };
            let text = String::from_utf8_lossy(&path);
            let own = rules.of(&format!("{prefix}{text}"));
            let way = parent.way.iter().cloned().chain(own).collect();
            let level = Level {
                has_products: parent.has_products || is_ignored || Self::is_cache(&folder),
                folder,
                path,
                within,
                is_ignored,
                way,
            };
            todo.extend(self.look_into(&Arc::new(level), scope, &mut found)?);
        }
        Ok(Survey::new(found))
    }

    /// Whether a tool has marked a folder as its cache.
    pub fn is_cache(folder: &Folder) -> bool {
        folder
            .stat(OsStr::new("CACHEDIR.TAG"))
            .is_ok_and(|tag| tag.is_some())
    }

    /// Whether the captured rules ignore this path itself; does not check the folders above it. What the
    /// survey lists in any case is not ignored: a repository, and ignore rules.
    pub fn has_ignored(&self, path: &Path, is_folder: bool) -> bool {
        if path
            .file_name()
            .is_some_and(|name| name == ".git" || name == ".gitignore")
        {
            return false;
        }
        let from_top = format!("{}{}", self.work_tree.prefix, path.to_string_lossy());
        let kind = if is_folder { Kind::Folder } else { Kind::File };
        self.captured
            .matches(&self.way_to(path.parent().unwrap_or(path)), &from_top, kind)
    }

    /// The rules on the way to the content of a folder, which is relative to the root.
    fn way_to(&self, folder: &Path) -> Way {
        let from_top = format!("{}{}/", self.work_tree.prefix, folder.to_string_lossy());
        let from_top = from_top.trim_matches('/');
        let above = [""].into_iter().chain(crate::patterns::folders(from_top));
        let own = self.captured.of(from_top).filter(|_| !from_top.is_empty());
        above
            .filter_map(|above| self.captured.of(above))
            .chain(own)
            .collect()
    }

    /// Records the content of one folder; returns its subfolders.
    fn look_into(
        &self,
        level: &Arc<Level>,
        (tracked, skipped): (&Tracked, &dyn Fn(&Path) -> bool),
        found: &mut Vec<(PathBuf, Seen)>,
    ) -> Result<Vec<Todo>, JudgeError> {
        let mut inner = Vec::new();
        let entries = match level.folder.entries() {
            Err(error) if is_closed(&error) => return Ok(inner),
            entries => entries.map_err(at(&level.path))?,
        };
        let is_tree = level.within == Within::Tree;
        let within = if level.is_ignored && is_tree && is_repository(&entries) {
            Within::Git
        } else {
            level.within
        };
        for (name, kind) in entries {
            let listed = within.lists(&name);
            if listed == Listed::Never && !level.is_ignored {
                continue;
            }
            let name = OsString::from_vec(name);
            let path = join(&level.path, &name);
            let place = PathBuf::from(OsString::from_vec(path.clone()));
            if self.is_git(&place) || skipped(&place) {
                continue;
            }
            // Ignore rules depend on whether it is a folder.
            let looked = if kind == FileType::Unknown {
                look(&level.folder, &name, &path)?
            } else {
                None
            };
            let kind = looked.map_or(kind, |stat| FileType::from_raw_mode(stat.st_mode));
            let of = if kind.is_dir() {
                Kind::Folder
            } else {
                Kind::File
            };
            let from_top = format!(
                "{}{}",
                self.work_tree.prefix,
                String::from_utf8_lossy(&path)
            );
            let may_be_ignored = listed == Listed::UnlessIgnored;
            let is_ignored = level.is_ignored
                || (may_be_ignored && self.captured.matches(&level.way, &from_top, of));
            let is_part = within != Within::Tree && listed == Listed::Always;
            let is_hidden = is_ignored && !is_part && !tracked.has_below(&place);
            let is_content = matches!(kind, FileType::RegularFile | FileType::Symlink);
            if is_hidden && (level.has_products || !is_content) {
                let holds_objects = within == Within::Git && name == "objects";
                if kind.is_dir() && within != Within::Hooks && !holds_objects {
                    let within = Within::Tree.enter(&name);
                    inner.push((Arc::clone(level), name, within, true));
                }
                continue;
            }
            let Some(stat) = look(&level.folder, &name, &path)? else {
                continue;
            };
            if kind.is_dir() && within != Within::Hooks {
                let within = within.enter(&name);
                inner.push((
                    Arc::clone(level),
                    name,
                    within,
                    is_ignored && !tracked.has(&place),
                ));
            }
            let seen = Seen {
                is_ignored: is_hidden,
                ..Seen::of(&stat)
            };
            found.push((place, seen));
        }
        Ok(inner)
    }
}

/// `None` if it was removed meanwhile, or if its folder has been closed.
fn look(folder: &Folder, name: &OsString, path: &[u8]) -> Result<Option<Stat>, JudgeError> {
    match folder.stat(name) {
        Err(error) if is_closed(&error) => Ok(None),
        looked => looked.map_err(at(path)),
    }
}

fn join(folder: &[u8], name: &OsString) -> Vec<u8> {
    if folder.is_empty() {
        name.as_bytes().to_vec()
    } else {
        [folder, b"/", name.as_bytes()].concat()
    }
}

fn at(path: &[u8]) -> impl FnOnce(std::io::Error) -> JudgeError {
    let path = String::from_utf8_lossy(path).into_owned();
    move |source| JudgeError { path, source }
}

#[cfg(test)]
mod tests;
