//! What came of a command's changes, in words.

use std::path::Path;

use code_commit_engine::{Changed, Problem};
use code_commit_logging::name_as_text;

use crate::backup::Backup;
use crate::change::Change;

/// What a command changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Accounted {
    /// Kept; `undo` reverts it.
    pub changes: Vec<Changed>,
    /// Paths that were restored.
    pub put_back: Vec<String>,
    /// The size of new and changed files that are not accounted for, if it is known.
    pub unaccounted_bytes: u64,
    /// For the user.
    pub warnings: Vec<Problem>,
}

/// Paths named in a message.
const NAMED: usize = 10;

/// The first paths, and the number of the others.
pub fn named(paths: &[String]) -> String {
    let mut text = paths
        .iter()
        .take(NAMED)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(more) = paths.len().checked_sub(NAMED).filter(|more| *more > 0) {
        text += &format!(" and {more} more");
    }
    text
}

pub(crate) fn shown(changes: &[&Change]) -> Vec<String> {
    let shown = |one: &&Change| name_as_text(&one.path).into_owned();
    changes.iter().map(shown).collect()
}

/// For the user, who may have made the change at the same time; `folder` holds what was there.
pub fn put_back(who: &str, put_back: &[String], folder: Option<&Path>) -> Option<Problem> {
    if put_back.is_empty() {
        return None;
    }
    let mut message = format!(
        "{who} changed {}, which it may not; it was restored",
        named(put_back)
    );
    if let Some(folder) = folder {
        message += &format!("; the old content is in {}", folder.display());
    }
    let runs_later = |path: &str| {
        code_commit_names::runs_later(&path.to_lowercase())
            .and_then(|row| row.program().map(|by| (by, row.why)))
    };
    if let Some((path, (program, why))) = put_back
        .iter()
        .find_map(|path| Some((path, runs_later(path)?)))
    {
        message +=
            &format!("; {program} reads {path} later ({why}): --allow-write '{path}' lets it stay");
    }
    Some(Problem::new("put-back", message))
}

/// For the user, who may want back what was taken out of the tree: `what` is said of the paths.
fn left(
    paths: &[String],
    backup: &Backup<'_>,
    what: impl FnOnce(String) -> String,
) -> Option<Problem> {
    let folder = backup.folder().filter(|_| !paths.is_empty())?;
    let message = format!("{} is in {}", what(named(paths)), folder.display());
    Some(Problem::new("left", message))
}

/// Nothing restores what git ignores.
pub(crate) fn set_aside(who: &str, paths: &[String], backup: &Backup<'_>) -> Option<Problem> {
    left(paths, backup, |paths| {
        format!("{who} replaced or removed {paths}, which git ignores; the old content")
    })
}

/// Git cannot restore what was not committed.
pub(crate) fn uncommitted(who: &str, paths: &[String], backup: &Backup<'_>) -> Option<Problem> {
    left(paths, backup, |paths| {
        format!("{who} changed or removed {paths}, not committed before; the old content")
    })
}

/// What a person wrote stays.
pub(crate) fn others(who: &str, paths: &[String], backup: &Backup<'_>) -> Option<Problem> {
    let mut message = format!(
        "somebody changed {} while {who} changed it, too; the other change was kept",
        named(paths)
    );
    if let Some(folder) = backup.folder() {
        message += &format!(", and other old content is in {}", folder.display());
    }
    (!paths.is_empty()).then(|| Problem::new("left", message))
}

/// What has no usable copy: a socket, a file that is too large.
pub(crate) fn not_restored(who: &str, gone: &[String]) -> Option<Problem> {
    let message = format!(
        "{who} changed or removed {}, which could not be restored",
        named(gone)
    );
    (!gone.is_empty()).then(|| Problem::new("not-restored", message))
}

pub(crate) fn no_copy(lost: &[String]) -> Option<Problem> {
    let message = format!(
        "{} was changed, of which no copy could be kept: undo cannot restore it",
        named(lost)
    );
    (!lost.is_empty()).then(|| Problem::new("no-copy", message))
}

pub(crate) fn too_much(without: &[String]) -> Option<Problem> {
    let message = format!(
        "not committed, and too much to copy or not readable: {}; undo cannot restore what a build changes of it",
        named(without)
    );
    (!without.is_empty()).then(|| Problem::new("no-copy", message))
}

pub(crate) fn exdev(who: &str) -> Problem {
    let message = format!(
        "{who} failed with EXDEV, since an overlay cannot rename a folder of the tree: it runs again in the tree itself, \
         as does everything later in this run"
    );
    Problem::new("exdev", message)
}

pub(crate) fn abandoned(who: &str, folder: Option<&Path>) -> Option<Problem> {
    let message = format!(
        "restored what {who} had changed; the old content is in {}",
        folder?.display()
    );
    Some(Problem::new("put-back", message))
}
