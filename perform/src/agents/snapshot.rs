//! What a folder holds before and after a turn, and putting back what may not have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use repo::WorkTree;

use crate::agents::fault::{AgentFault, fault};
use crate::agents::role::Watched;
use dir::reach::{self, CHANGE};
use kept::{Noted, noted};
use tree::{Found, Place};

mod kept;
mod tree;

/// The folder of a run in which the copies are, as long as it goes on.
pub const COPIES: &str = "before";
/// Folder of a talk for what stood in their place.
pub const TAKEN: &str = "taken";

pub use kept::{Kept, forget as forget_copies};
pub(super) use tree::Tree;

/// A folder before a turn, with copies of what may have to be put back.
#[derive(Debug)]
pub(super) struct Before<'w> {
    watched: &'w Watched,
    tree: Tree,
    known: Option<BTreeSet<String>>,
    folder: PathBuf,
    taken: PathBuf,
    /// Whether the turn was cut off: what is as it was may have been put back already.
    is_late: bool,
}

/// Why what a role may not touch is not as it was before.
#[derive(Debug, thiserror::Error)]
#[error("cannot restore {}; copies of how it was are in {}", list(left), copies.display())]
pub struct NotPutBack {
    /// The paths, and what stands in the way of each.
    pub left: BTreeMap<String, io::Error>,
    /// Where the copies are.
    pub copies: PathBuf,
}

/// So many paths are named in a message.
const NAMED: usize = 10;

fn list(left: &BTreeMap<String, io::Error>) -> String {
    let named = left.iter().take(NAMED).map(|(path, error)| format!("{path} ({error})"));
    let more = left.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    named.chain(more).collect::<Vec<_>>().join(", ")
}

/// What is different at one moment: what the role may touch, what of that is gone, and what it may not touch, with the real names.
#[derive(Debug, Default)]
struct Differences {
    allowed: Vec<String>,
    gone: Vec<String>,
    not_allowed: Vec<Named>,
    unread: Vec<(String, io::Error)>,
}

/// A path, and the file's real name below the root.
type Named = (String, Place);

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
        let before =
            Self { watched, tree, known, folder: folder.to_owned(), taken: taken.to_owned(), is_late: false };
        if watched.may_touch.is_some() {
            let wanted = |path: &str, found: &Found| before.is_kept(path, found);
            kept.keep(&watched.root, folder, (&before.tree, since), wanted)?;
            kept.hold(&Noted { tree: &before.tree, known: &before.known })?;
        }
        Ok(before)
    }

    /// The same, as it was noted before a turn that was cut off; none if what that turn may not have touched is as it was.
    pub(super) fn cut_off(watched: &'w Watched, folder: &Path, taken: &Path) -> io::Result<Option<Self>> {
        let before = |Noted { tree, known }| {
            let (folder, taken) = (folder.to_owned(), taken.to_owned());
            Self { watched, tree, known, folder, taken, is_late: true }
        };
        Ok(noted(folder)?.map(before))
    }

    /// Whether there is a copy of a file that was there.
    fn is_kept(&self, path: &str, found: &Found) -> bool {
        let counts = self.is_known(path)
            || found.stamp.is_link()
            || self.is_protected(path)
            || self.hides_something(path);
        counts && found.stamp.is_copied() && !self.may_touch(path)
    }

    /// What git cannot name counts too.
    fn is_known(&self, path: &str) -> bool {
        let is_odd = || self.tree.files.get(path).is_some_and(Found::is_odd);
        self.known.as_ref().is_none_or(|known| known.contains(path)) || is_odd()
    }

    /// Ignore rules can hide themselves. In a folder of its own, such as a tool's cache, they hide what is a product; among files that
    /// git knows they count.
    fn hides_something(&self, path: &str) -> bool {
        let Some(folder) = path.strip_suffix(".gitignore").filter(|at| at.is_empty() || at.ends_with('/'))
        else {
            return false;
        };
        let first_from_there = self.known.as_ref().and_then(|known| known.range(folder.to_owned()..).next());
        folder.is_empty() || first_from_there.is_some_and(|known| known.starts_with(folder))
    }

    /// A name that cannot be judged counts as protected.
    fn is_protected(&self, path: &str) -> bool {
        let Watched { protected, within, .. } = self.watched;
        let refusal = protected.as_ref().and_then(|policy| policy.refuses(&format!("{within}{path}")));
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

    /// Looks what is different now, and puts back what the role may not touch: all that can be. Until that is everything, `kept` stays.
    pub(super) fn compare(self, kept: &mut Kept) -> Result<Changes, NotPutBack> {
        let (mut put_back, mut left) = (BTreeSet::new(), BTreeMap::new());
        loop {
            let Differences { allowed, gone, mut not_allowed, unread } = self.differences();
            not_allowed.retain(|(path, place)| !put_back.contains(path) && !self.is_as_it_was(path, place));
            for (path, place) in &not_allowed {
                if let Err(error) = self.put_back(path, place) {
                    left.insert(path.clone(), error);
                }
            }
            // Until now, new files may have been hidden by ignore rules that were not the role's to change.
            let shows_more = not_allowed.iter().any(|(path, _)| self.hides_something(path));
            put_back.extend(not_allowed.into_iter().map(|(path, _)| path));
            if shows_more {
                continue;
            }
            left.extend(unread);
            if !left.is_empty() {
                return Err(NotPutBack { left, copies: self.folder });
            }
            kept.release();
            return Ok(Changes { allowed, gone, put_back: put_back.into_iter().collect() });
        }
    }

    /// What is different now.
    fn differences(&self) -> Differences {
        let after = Tree::of(&self.watched.root, &self.watched.skip);
        let known_now = self.known.as_ref().map(|_| known_to_git(&self.watched.root));
        // Where git cannot say any more what it knows, everything new counts.
        let is_new_to_git = |path: &str| match &known_now {
            None => false,
            Some(None) => !self.tree.files.contains_key(path),
            Some(Some(now)) => now.contains(path),
        };
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
            } else if self.tree.files.get(path).is_none_or(|found| self.is_kept(path, found)) {
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
        let is_same = || reach::is_same(&folder(&self.folder)?, &folder(&self.watched.root)?, place.name());
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
                // It may be the work of a person who was at it at the same time. What is put back goes before.
                let _ = reach::take(&folder, &self.taken, &place.0);
                reach::remove(&folder, place.name())?;
                let was_there = |above: &Path| self.tree.folders.contains(&Place(above.to_owned()));
                reach::remove_empty(folder, &place.0, was_there);
            }
            Err(error) if reach::is_gone(&error) => {}
            Err(error) => return Err(error),
        }
        if was.is_some() { reach::put(&self.folder, root, &place.0) } else { Ok(()) }
    }

    /// Nothing is removed for a copy that is not there or that a power cut has left unfinished.
    fn look_at_copy(&self, Found { stamp, place }: &Found) -> io::Result<()> {
        let folder = reach::folder_of(&self.folder, &place.0, reach::LOOK)?;
        let copy = reach::look(&folder, place.name())?;
        let is_whole = copy.is_some_and(|copy| copy.st_size == stamp.bytes());
        if is_whole { Ok(()) } else { Err(io::Error::other("there is no whole copy of it")) }
    }
}

/// Does `work` and puts back what it may not touch; gives the paths that were restored. What they were restored from is then
/// in `taken` below `scratch`.
pub fn watch_over<T>(
    watched: &Watched,
    scratch: &Path,
    work: impl FnOnce() -> T,
) -> Result<(T, Vec<String>), AgentFault> {
    let mut kept = Kept::default();
    let before = Before::take(watched, &mut kept, &scratch.join(COPIES), &scratch.join(TAKEN))
        .map_err(fault("list", &watched.root))?;
    let result = work();
    Ok((result, before.compare(&mut kept)?.put_back))
}

/// Puts back what a turn that was cut off has changed and may not; gives the paths. The copies stay.
pub(super) fn put_back_after(
    watched: &Watched,
    folder: &Path,
    taken: &Path,
) -> Result<Vec<String>, AgentFault> {
    let cut_off = Before::cut_off(watched, folder, taken).map_err(fault("read what was noted of", folder))?;
    let Some(before) = cut_off else { return Ok(Vec::new()) };
    Ok(before.compare(&mut Kept::default())?.put_back)
}

/// What git tracks, and what it would track: neither committed nor ignored. `None` where there is no repository.
fn known_to_git(root: &Path) -> Option<BTreeSet<String>> {
    let tree = WorkTree::at(root).ok()?;
    let tracked = tree.tracked().ok()?.into_iter().map(|file| file.path);
    Some(tracked.chain(tree.dirty().ok()?).collect())
}

#[cfg(test)]
mod tests;
