//! What a folder holds before and after a turn, and putting back what may not have changed.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use repo::WorkTree;

use crate::agents::role::Watched;
use kept::{clear, copy, make_folders};

mod kept;
mod tree;

/// The folder of a run in which the copies are, as long as it goes on.
pub const COPIES: &str = "before";

pub use kept::Kept;
pub(super) use tree::Tree;

/// A folder before a turn, with copies of what may have to be put back.
#[derive(Debug)]
pub(super) struct Before<'w> {
    watched: &'w Watched,
    tree: Tree,
    known: Option<BTreeSet<String>>,
    folder: PathBuf,
    taken: PathBuf,
}

/// What is different at one moment: what the role may touch, what of that is gone, and what it may not touch, with the real names.
#[derive(Debug, Default)]
struct Differences {
    allowed: Vec<String>,
    gone: Vec<String>,
    not_allowed: Vec<Named>,
}

/// A path, and the file's real name below the root.
type Named = (String, PathBuf);

/// What a turn changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) allowed: Vec<String>,
    /// Those of `allowed` that are not there any more.
    pub(super) gone: Vec<String>,
    pub(super) put_back: Vec<String>,
}

impl<'w> Before<'w> {
    /// Copies are in `folder` as long as `kept` lives; what something is put back from is first moved to `taken`.
    pub(super) fn take(
        watched: &'w Watched,
        kept: &mut Kept,
        folder: &Path,
        taken: &Path,
    ) -> io::Result<Self> {
        let (tree, since) = kept.look(&watched.root, &watched.skip)?;
        let known = watched.may_touch.as_ref().and_then(|_| known_to_git(&watched.root));
        let before = Self { watched, tree, known, folder: folder.to_owned(), taken: taken.to_owned() };
        let wanted = |path: &str, found: &tree::Found| {
            let counts = before.is_known(path) || found.stamp.is_link() || before.is_protected(path);
            counts && !before.may_touch(path)
        };
        if watched.may_touch.is_some() {
            kept.keep(&watched.root, folder, (&before.tree, since), wanted)?;
        }
        Ok(before)
    }

    /// What git cannot name counts too.
    fn is_known(&self, path: &str) -> bool {
        let is_odd = || self.tree.files.get(path).is_some_and(tree::Found::is_odd);
        self.known.as_ref().is_none_or(|known| known.contains(path)) || is_odd()
    }

    /// Ignore rules can hide themselves. In a folder of its own, such as a tool's cache, they hide what is a product; among files that
    /// git knows they count.
    fn hides_something(&self, path: &str) -> bool {
        let Some(folder) = path.strip_suffix(".gitignore").filter(|at| at.is_empty() || at.ends_with('/'))
        else {
            return false;
        };
        folder.is_empty() || self.known.iter().flatten().any(|known| known.starts_with(folder))
    }

    /// A name that cannot be judged counts as protected.
    fn is_protected(&self, path: &str) -> bool {
        let refusal = self.watched.protected.as_ref().and_then(|policy| policy.refuses(path));
        refusal.is_some_and(|refusal| refusal.code() != guard::Code::OutOfScope)
    }

    /// The last entry that fits decides.
    fn may_touch(&self, path: &str) -> bool {
        if self.is_protected(path) {
            return false;
        }
        let Some(allowed) = &self.watched.may_touch else { return true };
        let fits =
            |entry: &str| entry == "/" || entry == path || (entry.ends_with('/') && path.starts_with(entry));
        let last = allowed.iter().rev().find(|entry| fits(entry.strip_prefix('!').unwrap_or(entry)));
        last.is_some_and(|entry| !entry.starts_with('!'))
    }

    /// Looks what is different now, and puts back what the role may not touch.
    pub(super) fn compare(self) -> io::Result<Changes> {
        let mut put_back = BTreeSet::new();
        loop {
            let Differences { allowed, gone, mut not_allowed } = self.differences()?;
            not_allowed.retain(|(path, _)| !put_back.contains(path));
            for (path, place) in &not_allowed {
                self.put_back(path, place)?;
            }
            // Until now, new files may have been hidden by ignore rules that were not the role's to change.
            let shows_more = not_allowed.iter().any(|(path, _)| self.hides_something(path));
            put_back.extend(not_allowed.into_iter().map(|(path, _)| path));
            if !shows_more {
                return Ok(Changes { allowed, gone, put_back: put_back.into_iter().collect() });
            }
        }
    }

    /// What is different now.
    fn differences(&self) -> io::Result<Differences> {
        let after = Tree::of(&self.watched.root, &self.watched.skip)?;
        let known_now = self.known.as_ref().and_then(|_| known_to_git(&self.watched.root));
        let is_new_to_git = |path: &str| known_now.as_ref().is_some_and(|now| now.contains(path));
        let gone = self.tree.files.iter().filter(|(path, _)| !after.files.contains_key(*path));
        let other = after.files.iter().filter(|(path, found)| self.tree.files.get(*path) != Some(found));
        let mut now = Differences::default();
        for (path, found) in gone.chain(other) {
            let counts = self.is_known(path) || is_new_to_git(path) || self.is_protected(path);
            if !(counts || found.is_odd() || self.hides_something(path)) {
                continue;
            }
            if self.may_touch(path) {
                now.allowed.push(path.clone());
                now.gone.extend((!after.files.contains_key(path)).then(|| path.clone()));
            } else {
                now.not_allowed.push((path.clone(), found.place.clone()));
            }
        }
        now.allowed.sort_unstable();
        now.not_allowed.sort_unstable();
        Ok(now)
    }

    fn put_back(&self, path: &str, relative: &Path) -> io::Result<()> {
        let (root, was_there) = (&self.watched.root, self.tree.files.contains_key(path));
        if was_there {
            make_folders(root, relative)?;
        }
        let place = root.join(relative);
        if fs::symlink_metadata(&place).is_ok_and(|data| !data.is_dir()) {
            // It may be the work of a person who was at it at the same time.
            copy(&place, &self.taken, relative)?;
        }
        clear(&place)?;
        if was_there { copy(&self.folder.join(relative), root, relative) } else { Ok(()) }
    }
}

/// Does `work` and puts back what it may not touch; gives the paths that were put back. What they were put back from is then
/// in `taken` below `scratch`.
pub fn watch_over<T>(
    watched: &Watched,
    scratch: &Path,
    work: impl FnOnce() -> T,
) -> io::Result<(T, Vec<String>)> {
    let mut kept = Kept::default();
    let before = Before::take(watched, &mut kept, &scratch.join("before"), &scratch.join("taken"))?;
    let result = work();
    Ok((result, before.compare()?.put_back))
}

/// What git tracks, and what it would track: neither committed nor ignored. `None` where there is no repository.
fn known_to_git(root: &Path) -> Option<BTreeSet<String>> {
    let tree = WorkTree::at(root).ok()?;
    let tracked = tree.tracked().ok()?.into_iter().map(|file| file.path);
    Some(tracked.chain(tree.dirty().ok()?).collect())
}

#[cfg(test)]
mod tests;
