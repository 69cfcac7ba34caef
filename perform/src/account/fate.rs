//! The policy of the account: what happens to each difference.

use std::ffi::OsStr;
use std::path::Path;

use guard::{Difference, Seen};

use super::Account;

/// What to do with a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Stays,
    /// A new folder, or one whose content changed: its entries are decided separately.
    Follows,
    PutBack,
    /// A tool's cache that ignores itself.
    Dropped,
}

impl Account {
    /// `now` is the folder with the new state: the tree, or the layer with its changes.
    pub(super) fn fates(&self, now: &Path, differences: &[Difference]) -> Vec<Fate> {
        let mut whole: Vec<(&Path, Fate)> = Vec::new();
        let mut fates = Vec::new();
        for one in differences {
            // Sorted: a folder comes before its content.
            let above = whole.iter().rev().find(|(folder, _)| one.path.starts_with(folder));
            let fate = match above {
                // Restored with the folder.
                Some(_) => Fate::Follows,
                None => self.fate(now, one),
            };
            if above.is_none() && is_made(one) && matches!(fate, Fate::PutBack | Fate::Dropped) {
                whole.push((&one.path, fate));
            }
            fates.push(fate);
        }
        fates
    }

    fn fate(&self, now: &Path, one: &Difference) -> Fate {
        let Difference { path, before, after } = one;
        let Some(text) = path.to_str() else { return Fate::PutBack };
        // A folder that is not in scope itself may hold a file that is.
        let refusal = self.may_change.refuses(text);
        let refusal = refusal.filter(|refusal| !(is_made(one) && refusal.code() == guard::Code::OutOfScope));
        // Nobody could tell what is in a folder that its own owner may not enter.
        let is_closed = is_made(one) && after.is_some_and(|after| after.mode & 0o500 != 0o500);
        if path.file_name() == Some(OsStr::new(".git")) || refusal.is_some() || is_closed {
            return Fate::PutBack;
        }
        if is_made(one) {
            return match (new_folder(&now.join(path)), before) {
                (Fate::Follows, Some(before)) if before.kind().is_file() => Fate::Stays,
                (_, Some(_)) => Fate::PutBack,
                (fate, None) => fate,
            };
        }
        match (before, after) {
            // Its files have differences of their own; git does not track an empty folder.
            (Some(before), _) if is_folder(Some(before)) && !is_folder(after.as_ref()) => match after {
                Some(after) if !after.kind().is_file() => Fate::PutBack,
                Some(_) => Fate::Stays,
                None => Fate::Follows,
            },
            _ => {
                let is_ordinary = |seen: &Seen| seen.kind().is_file() || is_folder(Some(seen));
                let both = before.iter().chain(after);
                let is_mode_of_folder = is_folder(before.as_ref()) && is_folder(after.as_ref());
                if both.into_iter().all(is_ordinary) && !is_mode_of_folder {
                    Fate::Stays
                } else {
                    Fate::PutBack
                }
            }
        }
    }
}

pub(super) fn is_made(one: &Difference) -> bool {
    is_folder(one.after.as_ref()) && !is_folder(one.before.as_ref())
}

fn is_folder(seen: Option<&Seen>) -> bool {
    seen.is_some_and(|seen| seen.kind().is_dir())
}

/// A repository is not kept, with a work tree or without: git runs programs named in its configuration. A
/// folder whose own ignore rules cover everything in it is a tool's cache.
fn new_folder(folder: &Path) -> Fate {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    let rules = dir::read(&folder.join(".gitignore"), 4 << 10, dir::Links::Refused).ok().flatten();
    let rules = rules.map(|rules| String::from_utf8_lossy(&rules).into_owned()).unwrap_or_default();
    if has(".git") || (has("HEAD") && ((has("objects") && has("refs")) || has("commondir"))) {
        Fate::PutBack
    } else if rules.lines().any(|line| line.trim_end() == "*") {
        Fate::Dropped
    } else {
        Fate::Follows
    }
}
