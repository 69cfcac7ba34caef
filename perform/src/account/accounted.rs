//! What came of the account of a command, in words.

use std::path::Path;

use code_commit_engine::{Changed, Problem};

use crate::attic::Attic;
use crate::paths::named;

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
    /// Whether the account was interrupted: then the tree is as before the command, and the warnings say where its
    /// changes are.
    pub is_interrupted: bool,
}

/// For the user, who may have made the change at the same time.
pub(crate) fn warning(who: &str, put_back: &[String], attic: Option<&Path>) -> Option<Problem> {
    if put_back.is_empty() {
        return None;
    }
    let mut message = format!(
        "{who} changed {}, which it may not; it was restored",
        named(put_back)
    );
    if let Some(attic) = attic {
        message += &format!("; what was there is in {}", attic.display());
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

/// For the user, who may want back what was moved to the attic: `what` is said of the paths.
pub(super) fn left(
    paths: &[String],
    attic: &Attic<'_>,
    what: impl FnOnce(String) -> String,
) -> Option<Problem> {
    let folder = attic.folder().filter(|_| !paths.is_empty())?;
    let message = format!("{} is in {}", what(named(paths)), folder.display());
    Some(Problem::new("left", message))
}

/// Nothing restores what git ignores.
pub(super) fn set_aside(who: &str, paths: &[String], attic: &Attic<'_>) -> Option<Problem> {
    let what =
        |paths| format!("{who} replaced or removed {paths}, which git ignores; what was there");
    left(paths, attic, what)
}

/// What has no usable copy: a socket, a file that is too large.
pub(super) fn not_restored(who: &str, gone: &[String]) -> Option<Problem> {
    let message = format!(
        "{who} changed or removed {}, which could not be restored",
        named(gone)
    );
    (!gone.is_empty()).then(|| Problem::new("not-restored", message))
}
