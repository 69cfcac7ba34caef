//! Why a set was not applied.

use std::io;
use std::path::{Path, PathBuf};

use crate::recover::{RecoverError, RolledBack};

/// Why a set was not applied. The tree is what it was unless it [`leaves_tree_changed`](ApplyError::leaves_tree_changed).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// An earlier transaction was interrupted: call [`recover`](crate::recover) first.
    #[error("an interrupted transaction waits in {}", path.display())]
    Unrecovered {
        /// Its folder.
        path: PathBuf,
    },
    /// The set was not judged for this, or names a file twice.
    #[error("{path} was not admitted for this: {reason}")]
    Misused {
        /// Relative to the root.
        path: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// The folder for the pre-images has something in it.
    #[error("{} is in use", path.display())]
    UndoTaken {
        /// The folder.
        path: PathBuf,
    },
    /// Somebody changed the file since it was judged; read it again.
    #[error("{path} was changed by somebody else in the meantime")]
    Changed {
        /// Relative to the root.
        path: String,
    },
    /// The state folder must be on the file system of the tree, since files are renamed from one to the other.
    #[error("{} and {} are on different file systems", state.display(), root.display())]
    OtherFileSystem {
        /// The state folder.
        state: PathBuf,
        /// The root of the tree.
        root: PathBuf,
    },
    /// The system refused something.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// A verb.
        doing: &'static str,
        /// Of what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It failed half way, and somebody has changed files since that it had written: theirs were left alone.
    #[error(
        "{cause}; changed since, so not put back: {}; as they were: {}",
        back.left.join(", "), back.left_in.as_deref().unwrap_or(Path::new("")).display()
    )]
    PartlyRolledBack {
        /// What failed.
        cause: Box<ApplyError>,
        /// What was put back, what was left, and where the old files of that are.
        back: RolledBack,
    },
    /// It failed half way and could not be put back either: the journal stays, for `recover` to try again.
    #[error("the tree could not be put back after a failure ({cause})")]
    NotRolledBack {
        /// What failed first.
        cause: Box<ApplyError>,
        /// What failed then.
        source: RecoverError,
    },
}

impl ApplyError {
    /// Whether the tree is neither what it was nor what it should have become.
    pub fn leaves_tree_changed(&self) -> bool {
        matches!(self, ApplyError::NotRolledBack { .. } | ApplyError::PartlyRolledBack { .. })
    }

    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| ApplyError::Io { doing, path, source }
    }
}
