//! Records a folder before a turn, and restores what may not change.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::account::layout::{Repositories, folders_of};
use crate::agents::fault::{AgentFault, fault};
use crate::agents::role::Watched;
use crate::attic::Attic;
use code_commit_dir::reach::{self, CHANGE};
use code_commit_logging::name_as_text;
use kept::{Noted, noted};
use tree::{Found, Place, git_knows, is_in_git};

mod kept;
mod tree;

/// The folder in the run folder that holds the copies during the run.
pub const COPIES: &str = "before";
/// Folder of a talk for what the restored files replaced.
pub const TAKEN: &str = "taken";

pub use kept::{Kept, forget as forget_copies};
pub(super) use tree::{Tree, is_untouched_since};

/// A folder before a turn, with copies of what may have to be restored.
#[derive(Debug)]
pub(super) struct Before<'w> {
    watched: &'w Watched,
    tree: Tree,
    known: Option<BTreeSet<String>>,
    folder: PathBuf,
    taken: PathBuf,
    /// Whether the turn was cut off: unchanged files may have been restored already.
    is_late: bool,
}

/// Paths that a role may not touch could not be restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error("cannot restore {}; copies of how it was are in {}", list(left), copies.display())]
pub struct NotPutBack {
    /// The paths, and the error for each.
    pub left: BTreeMap<String, io::Error>,
    /// Where the copies are.
    pub copies: PathBuf,
}

/// How often a folder is looked at in which others remove files meanwhile, as git does when it tidies up.
const LOOKS: u32 = 5;
/// Paths named in a message.
const NAMED: usize = 10;

fn list(left: &BTreeMap<String, io::Error>) -> String {
    let named = left
        .iter()
        .take(NAMED)
        .map(|(path, error)| format!("{path} ({error})"));
    let more = left.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    named.chain(more).collect::<Vec<_>>().join(", ")
}

/// The differences at one moment: what the role may touch, what of that is gone, and what it may not touch,
/// with file names as bytes.
#[derive(Debug, Default)]
struct Differences {
    allowed: Vec<String>,
    gone: Vec<String>,
    not_allowed: Vec<Named>,
    unread: Vec<(String, io::Error)>,
}

/// A path as text, and the file's name as bytes, below the root.
type Named = (String, Place);

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) allowed: Vec<String>,
    /// Those of `allowed` that were removed.
    pub(super) gone: Vec<String>,
    pub(super) put_back: Vec<String>,
}

impl<'w> Before<'w> {
    /// Copies are in `folder` as long as `kept` lives; the content that a restore replaces is first moved to
    /// `taken`.
    pub(super) fn take(
        watched: &'w Watched,
        kept: &mut Kept,
        folder: &Path,
        taken: &Path,
    ) -> io::Result<Self> {
        let mut looks = LOOKS;
        loop {
            looks -= 1;
            match Self::look(watched, kept, folder, taken) {
                // Gone since it was listed.
                Err(error) if looks > 0 && reach::is_gone(&error) => {}
                taken => return taken,
            }
        }
    }

    fn look(
        watched: &'w Watched,
        kept: &mut Kept,
        folder: &Path,
        taken: &Path,
    ) -> io::Result<Self> {
        let (tree, since) = kept.look(&watched.root, &watched.skip)?;
        let known = watched
            .may_touch
            .as_ref()
            .and_then(|_| git_knows(watched.tree.clone(), &watched.root));
        let before = Self {
            watched,
            tree,
            known,
            folder: folder.to_owned(),
            taken: taken.to_owned(),
            is_late: false,
        };
        let wanted = |path: &str, found: &Found| before.is_kept(path, found);
        kept.keep(&watched.root, folder, (&before.tree, since), wanted)?;
        kept.hold(&Noted {
            tree: &before.tree,
            known: &before.known,
        })?;
        Ok(before)
    }

    /// The snapshot that the note of an interrupted turn describes; `None` if what that turn may not touch is restored.
    pub(super) fn cut_off(
        watched: &'w Watched,
        folder: &Path,
        taken: &Path,
    ) -> io::Result<Option<Self>> {
        let before = |Noted { tree, known }| {
            let (folder, taken) = (folder.to_owned(), taken.to_owned());
            Self {
                watched,
                tree,
                known,
                folder,
                taken,
                is_late: true,
            }
        };
        Ok(noted(folder)?.map(before))
    }

    /// The repositories in the tree that a path is a part of, or makes.
    fn repositories_of<'p>(&self, path: &'p Path, is_new: bool) -> Vec<&'p Path> {
        let roots = [self.watched.root.as_path()];
        let is_one =
            |folder: &&Path| folder.ends_with(".git") || Repositories(&roots).is_one(folder);
        let folders = folders_of(path, is_new);
        folders.into_iter().filter(is_one).collect()
    }

    /// Whether git runs programs for what a repository has at this path. No turn leaves that, not even in
    /// ignored folders: a person's `git status` would run it.
    fn is_run_by_git(&self, path: &Path, is_new: bool) -> bool {
        let roots = [self.watched.root.as_path()];
        let mut folders = self.repositories_of(path, is_new).into_iter();
        folders.any(|folder| !Repositories(&roots).is_harmless(folder))
    }

    /// Whether a file that existed has a copy.
    fn is_kept(&self, path: &str, found: &Found) -> bool {
        if !path.ends_with(".sample") && !self.repositories_of(&found.place.0, false).is_empty() {
            return found.stamp.is_copied();
        }
        let counts = self.is_known(path)
            || found.stamp.is_link()
            || self.is_protected(path)
            || self.hides_something(path);
        counts && found.stamp.is_copied() && !self.may_touch(path)
    }

    /// Files that git cannot name count as known.
    fn is_known(&self, path: &str) -> bool {
        let is_odd = || self.tree.files.get(path).is_some_and(Found::is_odd);
        self.known.as_ref().is_none_or(|known| known.contains(path)) || is_odd()
    }

    /// Ignore rules can hide themselves. In a new folder, such as a tool's cache, they hide only products;
    /// among files known to git they count.
    fn hides_something(&self, path: &str) -> bool {
        let Some(folder) = path
            .strip_suffix(".gitignore")
            .filter(|at| at.is_empty() || at.ends_with('/'))
        else {
            return false;
        };
        let first_from_there = self
            .known
            .as_ref()
            .and_then(|known| known.range(folder.to_owned()..).next());
        let there = self.tree.files.range(folder.to_owned()..);
        folder.is_empty()
            || first_from_there.is_some_and(|known| known.starts_with(folder))
            || there
                .take_while(|(path, _)| path.starts_with(folder))
                .any(|(_, found)| found.is_odd())
    }

    /// A name that cannot be judged counts as protected.
    fn is_protected(&self, path: &str) -> bool {
        let Watched {
            protected, within, ..
        } = self.watched;
        let refusal = protected
            .as_ref()
            .and_then(|policy| policy.refuses(&format!("{within}{path}")));
        refusal.is_some_and(|refusal| refusal.code() != code_commit_guard::Code::OutOfScope)
    }

    /// The last matching entry decides.
    fn may_touch(&self, path: &str) -> bool {
        if self.is_protected(path) {
            return false;
        }
        let Some(allowed) = &self.watched.may_touch else {
            return true;
        };
        let fits = |entry: &str| {
            entry == "/" || entry == path || (entry.ends_with('/') && path.starts_with(entry))
        };
        let last = allowed
            .iter()
            .rev()
            .find(|entry| fits(entry.strip_prefix('!').unwrap_or(entry)));
        last.is_some_and(|entry| !entry.starts_with('!'))
    }

    /// Finds the differences, and restores as much as possible of what the role may not touch. `kept` stays
    /// until all of it is restored.
    pub(super) fn compare(self, kept: &mut Kept) -> Result<Changes, NotPutBack> {
        let (mut put_back, mut left) = (BTreeSet::new(), BTreeMap::new());
        loop {
            let Differences {
                allowed,
                gone,
                mut not_allowed,
                unread,
            } = self.differences();
            not_allowed.retain(|(path, place)| {
                !put_back.contains(path) && !self.is_as_it_was(path, place)
            });
            for (path, place) in &not_allowed {
                if let Err(error) = self.put_back(path, place) {
                    left.insert(path.clone(), error);
                }
            }
            // Ignore rules that the role may not change may have hidden new files until now.
            let shows_more = not_allowed
                .iter()
                .any(|(path, _)| self.hides_something(path));
            put_back.extend(not_allowed.into_iter().map(|(path, _)| path));
            if shows_more {
                continue;
            }
            left.extend(unread);
            if !left.is_empty() {
                return Err(NotPutBack {
                    left,
                    copies: self.folder,
                });
            }
            kept.release();
            return Ok(Changes {
                allowed,
                gone,
                put_back: put_back.into_iter().collect(),
            });
        }
    }

    fn differences(&self) -> Differences {
        let after = Tree::of(&self.watched.root, &self.watched.skip);
        let known_now = self
            .known
            .as_ref()
            .map(|_| git_knows(self.watched.tree.clone(), &self.watched.root));
        // If git can no longer report what it knows, every new file counts.
        let is_new_to_git = |path: &str| match &known_now {
            None => false,
            Some(None) => !self.tree.files.contains_key(path),
            Some(Some(now)) => now.contains(path),
        };
        let gone = self
            .tree
            .files
            .iter()
            .filter(|(path, _)| !after.files.contains_key(*path));
        let other = after
            .files
            .iter()
            .filter(|(path, found)| self.tree.files.get(*path) != Some(found));
        let mut now = Differences::default();
        let new_folders = after.folders.difference(&self.tree.folders);
        let of_git = new_folders
            .filter(|place| self.is_run_by_git(&place.0, true))
            .map(|place| (name_as_text(&place.0).into_owned(), place.clone()));
        now.not_allowed.extend(of_git);
        for (path, found) in gone.chain(other) {
            let is_new = !self.tree.files.contains_key(path);
            if after.files.contains_key(path) && self.is_run_by_git(&found.place.0, is_new) {
                now.not_allowed.push((path.clone(), found.place.clone()));
                continue;
            }
            if is_in_git(path) {
                continue;
            }
            let counts = self.is_known(path) || is_new_to_git(path) || self.is_protected(path);
            if !(counts || found.is_odd() || self.hides_something(path)) {
                continue;
            }
            if self.may_touch(path) {
                now.allowed.push(path.clone());
                now.gone
                    .extend((!after.files.contains_key(path)).then(|| path.clone()));
            } else if self
                .tree
                .files
                .get(path)
                .is_none_or(|found| self.is_kept(path, found))
            {
                now.not_allowed.push((path.clone(), found.place.clone()));
            }
        }
        now.allowed.sort_unstable();
        now.not_allowed.sort_unstable();
        now.unread = after.unread;
        now
    }

    fn is_as_it_was(&self, path: &str, place: &Place) -> bool {
        let folder = |top| reach::folder_of(top, &place.0, reach::LOOK);
        let is_same = || {
            reach::is_same(
                &folder(&self.folder)?,
                &folder(&self.watched.root)?,
                place.name(),
            )
        };
        self.is_late && self.tree.files.contains_key(path) && is_same().unwrap_or(false)
    }

    fn put_back(&self, path: &str, place: &Place) -> io::Result<()> {
        let root = &self.watched.root;
        let was = self.tree.files.get(path);
        if let Some(found) = was {
            self.look_at_copy(found)?;
        }
        match reach::folder_of(root, &place.0, CHANGE) {
            Ok(folder) => {
                // It may be the work of the user at the same time: what cannot be kept stays.
                self.take_aside(place)?;
                let was_there = |above: &Path| self.tree.folders.contains(&Place(above.to_owned()));
                reach::remove_empty(folder, &place.0, was_there);
            }
            Err(error) if !reach::is_gone(&error) => return Err(error),
            // What is on the way to a new file may be restored already.
            Err(_) if was.is_some() => self.take_aside(place)?,
            Err(_) => {}
        }
        if was.is_some() {
            reach::put(&self.folder, root, &place.0)
        } else {
            Ok(())
        }
    }

    /// Takes what is there, or what is on the way to it and no folder.
    fn take_aside(&self, Place(path): &Place) -> io::Result<()> {
        let root = &self.watched.root;
        if code_commit_dir::obstacle::find(root, path)?.is_none() {
            return Ok(());
        }
        std::fs::create_dir_all(&self.taken)?;
        Attic::at(&self.taken).take_from(root, path)
    }

    /// Removes nothing if the copy is missing or incomplete after a power cut.
    fn look_at_copy(&self, Found { stamp, place }: &Found) -> io::Result<()> {
        let folder = reach::folder_of(&self.folder, &place.0, reach::LOOK)?;
        let copy = reach::look(&folder, place.name())?;
        let is_whole = copy.is_some_and(|copy| copy.st_size == stamp.bytes());
        if is_whole {
            Ok(())
        } else {
            Err(io::Error::other("there is no whole copy of it"))
        }
    }
}

/// Does `work`, restores what it may not touch, and gives those paths. What was there is then in `taken` below `scratch`.
pub fn watch_over<T>(
    watched: &Watched,
    scratch: &Path,
    work: impl FnOnce() -> T,
) -> Result<(T, Vec<String>), AgentFault> {
    let mut kept = Kept::default();
    let before = Before::take(
        watched,
        &mut kept,
        &scratch.join(COPIES),
        &scratch.join(TAKEN),
    )
    .map_err(fault("list", &watched.root))?;
    let result = work();
    Ok((result, before.compare(&mut kept)?.put_back))
}

/// Restores what a turn that was cut off may not have changed; gives the paths. The copies stay.
pub(super) fn put_back_after(
    watched: &Watched,
    folder: &Path,
    taken: &Path,
) -> Result<Vec<String>, AgentFault> {
    let cut_off =
        Before::cut_off(watched, folder, taken).map_err(fault("read what was noted of", folder))?;
    let Some(before) = cut_off else {
        return Ok(Vec::new());
    };
    Ok(before.compare(&mut Kept::default())?.put_back)
}

#[cfg(test)]
mod tests;
