//! The one judge: a policy over the tree that results, whoever made it.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use code_commit_guard::{Code, Policy, Surroundings};

use crate::change::{Change, ChangeSet, Seen, Tops};
use crate::repositories::{Part, Resulting};
use crate::snapshot::Snapshot;

/// Larger files do not stay: what stays is read and hashed, for minutes.
const MOST_BYTES: u64 = 4 << 30;
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
    /// The same, made by a role: what is in it is only judged as a repository.
    Ignored,
}

/// The changes by what happens to them, each list in their order.
#[derive(Debug, Default)]
pub(crate) struct Decisions<'d> {
    pub(crate) stays: Vec<&'d Change>,
    pub(crate) back: Vec<&'d Change>,
    pub(crate) dropped: Vec<&'d Change>,
    pub(crate) set_aside: Vec<&'d Change>,
    /// New folders, whatever happens to them.
    pub(crate) made: Vec<PathBuf>,
    /// Removed folders, with their permission bits.
    pub(crate) gone: Vec<(String, u32)>,
}

impl<'d> Decisions<'d> {
    /// What does not stay.
    pub(crate) fn leave(&self) -> Vec<&'d Change> {
        [&self.dropped[..], &self.back].concat()
    }
}

/// Judges what the tree comes to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judge<'j> {
    pub(crate) result: Resulting<'j>,
    pub(crate) policy: &'j Policy,
}

impl Judge<'_> {
    /// Whether what is there stays because git ignores it, and what was there is set aside.
    pub(crate) fn sets_aside(&self, one: &Change) -> bool {
        one.is_ignored() && self.part(one) != Part::Dangerous
    }

    /// Whether a change is judged at all.
    pub(crate) fn counts(&self, one: &Change) -> bool {
        self.sets_aside(one) || self.part(one) != Part::Harmless
    }

    fn part(&self, one: &Change) -> Part {
        self.result.part(one, self.policy.is_of_role())
    }

    pub(crate) fn decisions<'d>(&self, changes: &'d ChangeSet) -> Decisions<'d> {
        let (mut whole, mut ignored) = (Tops::default(), Tops::default());
        let mut decisions = Vec::new();
        let nexts = changes.iter().skip(1).map(Some).chain([None]);
        for (one, next) in changes.iter().zip(nexts) {
            let has_content = next.is_some_and(|next| next.path.starts_with(&one.path));
            let decision = if whole.over(&one.path).is_some() {
                // Decided with the folder.
                Decision::Follows
            } else if ignored.over(&one.path).is_some() && self.part(one) != Part::Dangerous {
                Decision::Follows
            } else {
                self.decision(one, has_content)
            };
            if one.is_new_folder() && matches!(decision, Decision::PutBack | Decision::Dropped) {
                whole.insert(&one.path);
            } else if decision == Decision::Ignored {
                ignored.insert(&one.path);
            }
            decisions.push(decision);
        }
        come_back_whole(changes, &mut decisions);
        let mut sorted = Decisions::default();
        for (one, decision) in changes.iter().zip(decisions) {
            if matches!(decision, Decision::Follows | Decision::Stays) {
                sorted.gone.extend(removed_folder(one));
            }
            match decision {
                Decision::Stays => sorted.stays.push(one),
                Decision::PutBack => sorted.back.push(one),
                Decision::Dropped => sorted.dropped.push(one),
                Decision::SetAside => sorted.set_aside.push(one),
                Decision::Follows | Decision::Ignored => {}
            }
        }
        let made = changes.iter().filter(|one| one.is_new_folder());
        sorted.made = made.map(|one| one.path.clone()).collect();
        sorted
    }

    /// `has_content`: whether anything below it differs, too.
    fn decision(&self, one: &Change, has_content: bool) -> Decision {
        let Change {
            path,
            before,
            after,
        } = one;
        if self.sets_aside(one) {
            return Decision::SetAside;
        }
        // What git ignores is not judged, so it takes nobody's place.
        if before.is_some() && after.is_some_and(|after| after.is_ignored) {
            return Decision::PutBack;
        }
        match self.part(one) {
            Part::Dangerous => return Decision::PutBack,
            Part::Harmless => return Decision::Follows,
            Part::None => {}
        }
        // A folder that is not in scope itself may hold a file that is, and so may one that is gone.
        let is_for_its_files = (one.is_new_folder() && before.is_none())
            || (has_content && one.was_folder() && after.is_none());
        let refusal = self.policy.refuses_bytes(path.as_os_str().as_bytes());
        let refusal =
            refusal.filter(|refusal| !(is_for_its_files && refusal.code() == Code::OutOfScope));
        if self.policy.is_of_role() {
            return self.of_role(one, refusal.map(|refusal| refusal.code()));
        }
        // The contents of a folder that its own owner may not enter cannot be judged.
        let is_closed =
            one.is_new_folder() && after.is_some_and(|after| after.mode & 0o500 != 0o500);
        if path.ends_with(".git") || refusal.is_some() || is_closed {
            return Decision::PutBack;
        }
        if one.is_new_folder() {
            return match (self.new_folder(path), before) {
                (Decision::Follows, Some(before)) if before.kind().is_file() => Decision::Stays,
                (_, Some(_)) => Decision::PutBack,
                (decision, None) => decision,
            };
        }
        // The files of a folder have changes of their own; git does not track an empty one.
        if one.was_folder() && !one.is_folder() {
            return match after {
                Some(after) if !is_ordinary(after) => Decision::PutBack,
                Some(_) => Decision::Stays,
                None => Decision::Follows,
            };
        }
        // Then its mode has changed.
        if before.iter().chain(after).all(is_ordinary) && !one.has_content() {
            Decision::Stays
        } else {
            Decision::PutBack
        }
    }

    /// What a role has made: it may be of any kind, but runs with nobody else's rights, and git runs nothing for it.
    fn of_role(&self, one: &Change, refused: Option<Code>) -> Decision {
        let path = &one.path;
        if path.iter().any(|name| name == ".git") {
            return Decision::Follows;
        }
        let is_protected = refused.is_some_and(|code| code != Code::OutOfScope);
        // Git shows nothing of it.
        let git = self.result.now.join(path).join(".git");
        let has_git = || git.symlink_metadata().is_ok();
        let is_hidden = || has_git() || self.new_folder(path) == Decision::Dropped;
        if one.is_new_folder() && !is_protected && is_hidden() {
            return Decision::Ignored;
        }
        let has_id = one
            .after
            .is_some_and(|after| after.kind().is_file() && after.mode & SET_ID != 0);
        let mut both = one.before.iter().chain(&one.after);
        if refused.is_some() || has_id {
            Decision::PutBack
        } else if both.all(|seen| seen.kind().is_dir()) {
            Decision::Follows
        } else {
            Decision::Stays
        }
    }

    /// A repository is not kept, with a work tree or without: git runs programs named in its configuration. A
    /// folder whose own ignore rules cover everything in it is a tool's cache.
    fn new_folder(&self, path: &Path) -> Decision {
        let folder = self.result.now.join(path);
        let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
        if has(".git") || self.result.is_repository(path) {
            Decision::PutBack
        } else if has(".gitignore") && ignores_itself(&folder) {
            Decision::Dropped
        } else {
            Decision::Follows
        }
    }
}

/// Whether the rules in a folder that is not known yet ignore everything in it, themselves too: it is a tool's
/// cache. What cannot be read is none.
fn ignores_itself(folder: &Path) -> bool {
    let guard = Surroundings::alone(folder).and_then(|around| around.guard(Policy::new()));
    let Ok(guard) = guard else {
        return false;
    };
    let is_rules = |path: &Path| path.file_name() == Some(".gitignore".as_ref());
    let is_ignored = |path: &Path| is_rules(path) && guard.ignores(path);
    let is_out = |(path, seen): &(PathBuf, Seen)| {
        seen.kind().is_dir() || seen.is_ignored || is_ignored(path)
    };
    Snapshot::of(&guard, &|_, _| false).is_ok_and(|all| all.iter().all(is_out))
}

/// A folder that gave way to something else is restored with all its content, or not at all: nothing can come
/// back into a file.
fn come_back_whole(changes: &ChangeSet, decisions: &mut [Decision]) {
    let is_replaced = |one: &&Change| one.was_folder() && one.after.is_some() && !one.is_folder();
    let replaced: Tops = changes
        .iter()
        .filter(is_replaced)
        .map(|one| &*one.path)
        .collect();
    let of = |one: &Change| replaced.over(&one.path);
    let back: BTreeSet<&Path> = (changes.iter().zip(&*decisions))
        .filter(|(_, decision)| **decision == Decision::PutBack)
        .filter_map(|(one, _)| of(one))
        .collect();
    let whole = changes
        .iter()
        .zip(decisions)
        .filter(|(one, _)| of(one).is_some_and(|top| back.contains(top)));
    whole.for_each(|(_, decision)| *decision = Decision::PutBack);
}

/// With its permission bits.
fn removed_folder(one: &Change) -> Option<(String, u32)> {
    let was = one
        .before
        .filter(|_| one.was_folder() && !one.is_folder())?;
    Some((one.path.to_str()?.to_owned(), was.mode & 0o7777))
}

/// A program with a set-id bit is not: it runs with the rights of whoever ran the command, whoever starts it.
fn is_ordinary(seen: &Seen) -> bool {
    let is_usual_file = seen.kind().is_file() && seen.mode & SET_ID == 0 && seen.len <= MOST_BYTES;
    seen.kind().is_dir() || is_usual_file
}
