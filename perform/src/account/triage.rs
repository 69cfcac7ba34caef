//! The policy of the account: what happens to each difference.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use code_commit_dir::Interrupt;
use code_commit_guard::{Difference, Guard, Seen};

use super::Account;
use super::layout::{Layout, Role};

/// The set-user-ID and the set-group-ID bit.
const SET_ID: u32 = 0o6000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Stays,
    /// A new folder, or one whose content changed: its entries are decided separately.
    Follows,
    PutBack,
    /// An ignored file that is no product: stays as it is now, and what was there is kept.
    SetAside,
    /// A tool's cache that ignores itself.
    Dropped,
}

/// The differences by what happens to them, each list in their order.
#[derive(Debug, Default)]
pub(super) struct Decisions<'d> {
    pub(super) stays: Vec<&'d Difference>,
    pub(super) back: Vec<&'d Difference>,
    dropped: Vec<&'d Difference>,
    pub(super) set_aside: Vec<&'d Difference>,
    /// New folders, whatever happens to them.
    pub(super) made: Vec<String>,
    /// Removed folders, with their permission bits.
    pub(super) gone: Vec<(String, u32)>,
}

/// Paths of which none is below another.
#[derive(Debug, Default)]
pub(super) struct Tops(BTreeSet<PathBuf>);

impl Tops {
    /// Adds a path after all those above it.
    fn insert(&mut self, path: &Path) {
        if self.over(path).is_none() {
            self.0.insert(path.to_owned());
        }
    }

    /// The one that is at or above a path.
    pub(super) fn over(&self, path: &Path) -> Option<&Path> {
        // Nothing else comes between a path and what is below it.
        let mut up_to = self
            .0
            .range::<Path, _>((Bound::Unbounded, Bound::Included(path)));
        up_to
            .next_back()
            .map(PathBuf::as_path)
            .filter(|top| path.starts_with(top))
    }

    /// Whether one is at or below a path.
    pub(super) fn has_below(&self, path: &Path) -> bool {
        let mut from = self
            .0
            .range::<Path, _>((Bound::Included(path), Bound::Unbounded));
        from.next().is_some_and(|top| top.starts_with(path))
    }
}

impl<'p> FromIterator<&'p Path> for Tops {
    fn from_iter<I: IntoIterator<Item = &'p Path>>(paths: I) -> Self {
        let sorted: BTreeSet<&Path> = paths.into_iter().collect();
        let mut tops = Self::default();
        sorted.into_iter().for_each(|path| tops.insert(path));
        tops
    }
}

impl<'d> Decisions<'d> {
    /// What does not stay.
    pub(super) fn leave(&self) -> Vec<&'d Difference> {
        [&self.dropped[..], &self.back].concat()
    }

    /// The paths that are restored, for the user.
    pub(super) fn back(&self) -> Vec<String> {
        self.back
            .iter()
            .map(|one| one.path.display().to_string())
            .collect()
    }
}

impl Account {
    /// `now` is the folder with the new state: the tree, or the layer with its changes.
    pub(super) fn decisions<'d>(
        &self,
        guard: &Guard,
        now: &Path,
        differences: &'d [Difference],
        interrupt: Interrupt<'_>,
    ) -> io::Result<Decisions<'d>> {
        let layout = Layout { now, guard };
        // Sorted: a folder comes before its content.
        let mut whole = Tops::default();
        let mut decisions = Vec::new();
        for (one, next) in differences
            .iter()
            .zip(differences.iter().skip(1).map(Some).chain([None]))
        {
            interrupt()?;
            // Decided with the folder.
            let is_below = whole.over(&one.path).is_some();
            let has_content = next.is_some_and(|next| next.path.starts_with(&one.path));
            let decision = if is_below {
                Decision::Follows
            } else {
                self.decision(layout, one, has_content)
            };
            if is_made(one) && matches!(decision, Decision::PutBack | Decision::Dropped) {
                whole.insert(&one.path);
            }
            decisions.push(decision);
        }
        come_back_whole(differences, &mut decisions);
        let mut sorted = Decisions::default();
        for (one, decision) in differences.iter().zip(decisions) {
            if matches!(decision, Decision::Follows | Decision::Stays) {
                sorted.gone.extend(removed_folder(one));
            }
            match decision {
                Decision::Stays => sorted.stays.push(one),
                Decision::PutBack => sorted.back.push(one),
                Decision::Dropped => sorted.dropped.push(one),
                Decision::SetAside => sorted.set_aside.push(one),
                Decision::Follows => {}
            }
        }
        let made = differences.iter().filter(|one| is_made(one));
        sorted.made = made
            .filter_map(|one| one.path.to_str().map(str::to_owned))
            .collect();
        Ok(sorted)
    }

    /// `has_content`: whether anything below it differs, too.
    fn decision(&self, layout: Layout<'_>, one: &Difference, has_content: bool) -> Decision {
        let Difference {
            path,
            before,
            after,
        } = one;
        if layout.sets_aside(one) {
            return Decision::SetAside;
        }
        // What git ignores is not judged, so it takes nobody's place.
        if before.is_some() && after.is_some_and(|after| after.is_ignored) {
            return Decision::PutBack;
        }
        match layout.role(one) {
            Role::Dangerous => return Decision::PutBack,
            Role::Harmless => return Decision::Follows,
            Role::None => {}
        }
        let Some(text) = path.to_str() else {
            return Decision::PutBack;
        };
        // A folder that is not in scope itself may hold a file that is, and so may one that is gone.
        let is_for_its_files =
            is_made(one) || (has_content && is_folder(before.as_ref()) && after.is_none());
        let refusal = self.may_change.refuses(text);
        let refusal = refusal.filter(|refusal| {
            !(is_for_its_files && refusal.code() == code_commit_guard::Code::OutOfScope)
        });
        // The contents of a folder that its own owner may not enter cannot be judged.
        let is_closed = is_made(one) && after.is_some_and(|after| after.mode & 0o500 != 0o500);
        if path.file_name() == Some(OsStr::new(".git")) || refusal.is_some() || is_closed {
            return Decision::PutBack;
        }
        if is_made(one) {
            return match (new_folder(layout, path), before) {
                (Decision::Follows, Some(before)) if before.kind().is_file() => Decision::Stays,
                (_, Some(_)) => Decision::PutBack,
                (decision, None) => decision,
            };
        }
        match (before, after) {
            // Its files have differences of their own; git does not track an empty folder.
            (Some(before), _) if is_folder(Some(before)) && !is_folder(after.as_ref()) => {
                match after {
                    Some(after) if !is_ordinary(after) => Decision::PutBack,
                    Some(_) => Decision::Stays,
                    None => Decision::Follows,
                }
            }
            _ => {
                let both = before.iter().chain(after);
                let is_mode_of_folder = is_folder(before.as_ref()) && is_folder(after.as_ref());
                if both.into_iter().all(is_ordinary) && !is_mode_of_folder {
                    Decision::Stays
                } else {
                    Decision::PutBack
                }
            }
        }
    }
}

/// A folder that gave way to something else is restored with all its content, or not at all: nothing can come
/// back into a file.
fn come_back_whole(differences: &[Difference], decisions: &mut [Decision]) {
    let is_replaced = |one: &Difference| {
        is_folder(one.before.as_ref()) && one.after.is_some() && !is_folder(one.after.as_ref())
    };
    let replaced: Tops = differences
        .iter()
        .filter(|one| is_replaced(one))
        .map(|one| &*one.path)
        .collect();
    let of = |one: &Difference| replaced.over(&one.path);
    let back: BTreeSet<&Path> = (differences.iter().zip(&*decisions))
        .filter(|(_, decision)| **decision == Decision::PutBack)
        .filter_map(|(one, _)| of(one))
        .collect();
    let whole = differences
        .iter()
        .zip(decisions)
        .filter(|(one, _)| of(one).is_some_and(|top| back.contains(top)));
    whole.for_each(|(_, decision)| *decision = Decision::PutBack);
}

/// With its permission bits.
fn removed_folder(one: &Difference) -> Option<(String, u32)> {
    let was = one
        .before
        .filter(|was| was.kind().is_dir() && !is_folder(one.after.as_ref()))?;
    Some((one.path.to_str()?.to_owned(), was.mode & 0o7777))
}

/// A program with a set-id bit is not: it runs with the rights of whoever ran the command, whoever starts it.
fn is_ordinary(seen: &Seen) -> bool {
    is_folder(Some(seen)) || (seen.kind().is_file() && seen.mode & SET_ID == 0)
}

fn is_made(one: &Difference) -> bool {
    is_folder(one.after.as_ref()) && !is_folder(one.before.as_ref()) && !one.is_ignored()
}

fn is_folder(seen: Option<&Seen>) -> bool {
    seen.is_some_and(|seen| seen.kind().is_dir())
}

/// A repository is not kept, with a work tree or without: git runs programs named in its configuration. A
/// folder whose own ignore rules cover everything in it is a tool's cache.
fn new_folder(layout: Layout<'_>, path: &Path) -> Decision {
    let folder = layout.now.join(path);
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    if has(".git") || layout.is_repository(path) {
        Decision::PutBack
    } else if has(".gitignore") && Guard::ignores_itself(&folder) {
        Decision::Dropped
    } else {
        Decision::Follows
    }
}
