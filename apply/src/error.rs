//! Why a set was not applied.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use crate::journal::Unread;

/// Why a set was not applied. The tree is unchanged, unless
/// [`leaves_tree_changed`](ApplyError::leaves_tree_changed).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum ApplyError {
    /// An earlier transaction was interrupted: call [`recover`](crate::recover) first.
    #[error("there is an interrupted transaction in {}", path.display())]
    Unrecovered { path: PathBuf },
    /// The set was not admitted for this operation, or names a file twice.
    #[error("{path} was not admitted for this operation: {reason}")]
    Misused {
        /// Relative to the root.
        path: String,
        reason: &'static str,
    },
    /// The folder for the pre-images is not empty.
    #[error("{} is in use", path.display())]
    UndoTaken { path: PathBuf },
    /// The file was changed after it was judged; judge it again.
    #[error("{path} was changed by somebody else in the meantime")]
    Changed {
        /// Relative to the root.
        path: String,
    },
    /// The state folder must be on the same file system as the tree, because files are renamed from
    /// one to the other.
    #[error("{} and {} are on different file systems", state.display(), root.display())]
    OtherFileSystem { state: PathBuf, root: PathBuf },
    #[error("cannot {doing} {}", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// It failed half way. Everything was restored, except files that were changed after the transaction
    /// wrote them.
    #[error(
        "after a failure everything was restored, except files that were changed since ({}{})",
        back.left.join(", "),
        back.left_in.as_ref().map(|folder| format!("; as it was: {}", folder.display())).unwrap_or_default()
    )]
    PartlyRolledBack {
        #[source]
        cause: Box<ApplyError>,
        /// What was restored, what was not, and where the old versions of the latter are.
        back: RolledBack,
    },
    /// It failed half way and could not be rolled back either. The journal stays, so that `recover`
    /// can try again.
    #[error("the work tree could not be restored after a failure ({})", with_causes(cause.as_ref()))]
    NotRolledBack {
        cause: Box<ApplyError>,
        source: RecoverError,
    },
}

impl ApplyError {
    /// Whether the tree is in neither the old nor the new state.
    pub fn leaves_tree_changed(&self) -> bool {
        matches!(
            self,
            ApplyError::NotRolledBack { .. } | ApplyError::PartlyRolledBack { .. }
        )
    }

    pub(crate) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| ApplyError::Io {
            doing,
            path,
            source,
        }
    }
}

/// An error and its causes in one line, for places where it cannot be a `source`.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let errors = std::iter::successors(Some(error), |&error| error.source());
    errors
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// The result of a rollback.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RolledBack {
    /// The paths that were restored or removed.
    pub restored: Vec<String>,
    /// The paths that were changed since by someone else; they were left alone.
    pub left: Vec<String>,
    /// Where the old versions of `left` are now; `None` if the transaction had created all of them.
    pub left_in: Option<PathBuf>,
}

/// Why an interrupted transaction could not be handled. It stays, and the next start tries again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum RecoverError {
    #[error("the interrupted transaction belongs to {}, which no longer exists", root.display())]
    RootMoved {
        /// Where the root was.
        root: PathBuf,
    },
    /// The journal belongs to another root, which is not in this work tree: it may have been planted.
    #[error("the interrupted transaction belongs to {}, which is not in this work tree", root.display())]
    ForeignRoot {
        /// The root that it names.
        root: PathBuf,
    },
    /// The journal names a path that no run writes: it may have been planted.
    #[error("the interrupted transaction names {path}, which no run may write")]
    Blocked {
        /// The path as recorded.
        path: String,
    },
    /// Another version of this program was interrupted, whose record cannot be read.
    #[error("{} was written by another version of code-commit (format {version})", path.display())]
    OtherVersion {
        /// The journal or the manifest.
        path: PathBuf,
        version: u32,
    },
    #[error("cannot restore {}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl RecoverError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| RecoverError::Io { path, source }
    }

    pub(crate) fn unread(path: PathBuf) -> impl FnOnce(Unread) -> Self {
        move |unread| match unread {
            Unread::Io(source) => RecoverError::Io { path, source },
            Unread::OtherVersion(version) => RecoverError::OtherVersion { path, version },
        }
    }
}

/// Why nothing was undone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum UndoError {
    #[error("changed since: {}", paths.join(", "))]
    ChangedSince {
        /// Relative to the root.
        paths: Vec<String>,
    },
    /// The path, or something on the way to it, is not a regular file or folder, or no run may
    /// write there.
    #[error("{path} cannot be restored: it is not a regular file, or a run may not write it")]
    Blocked {
        /// Relative to the root.
        path: String,
    },
    /// A folder of pre-images has no manifest; without it, its set's changes are unknown.
    #[error("cannot tell what was changed: {} is missing", path.display())]
    NoManifest { path: PathBuf },
    /// A pre-image has changed since it was saved.
    #[error("the pre-image of {path} is damaged: {}", kept.display())]
    Damaged {
        /// Relative to the root.
        path: String,
        kept: PathBuf,
    },
    /// Another version of this program wrote the set, and its manifest cannot be read.
    #[error("{} was written by another version of code-commit (format {version})", path.display())]
    OtherVersion { path: PathBuf, version: u32 },
    /// A folder of pre-images or the tree could not be read.
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_behind_a_rollback_tells_why_the_system_refused() {
        let full = || {
            Box::new(ApplyError::io("change", "a")(
                io::ErrorKind::StorageFull.into(),
            ))
        };
        let back = RolledBack {
            left: vec!["b".to_owned()],
            left_in: Some("left-1".into()),
            ..RolledBack::default()
        };
        let partly = ApplyError::PartlyRolledBack {
            cause: full(),
            back,
        };
        let new_only = RolledBack {
            left: vec!["n".to_owned()],
            ..RolledBack::default()
        };
        let partly_new = ApplyError::PartlyRolledBack {
            cause: full(),
            back: new_only,
        };
        insta::assert_snapshot!(with_causes(&partly_new), @"after a failure everything was restored, except files that were changed since (n): cannot change a: no storage space");
        insta::assert_snapshot!(with_causes(&partly), @"after a failure everything was restored, except files that were changed since (b; as it was: left-1): cannot change a: no storage space");
        let source = RecoverError::io("b")(io::ErrorKind::ReadOnlyFilesystem.into());
        insta::assert_snapshot!(with_causes(&ApplyError::NotRolledBack { cause: full(), source }), @"the work tree could not be restored after a failure (cannot change a: no storage space): cannot restore b: read-only filesystem or storage medium");
    }
}
