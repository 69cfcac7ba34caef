//! Why what a command changed could not be taken account of.

use std::io;
use std::path::{Path, PathBuf};

/// The tree may hold what the command left: the next command puts it back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum Fault {
    /// Pre-images could not be stored.
    #[error("cannot keep what was there before")]
    Apply(#[source] code_commit_apply::ApplyError),
    /// A set could not be reverted.
    #[error("cannot put the tree back")]
    Undo(#[source] code_commit_apply::UndoError),
    /// Paths could not be put back.
    #[error("the build changed {paths}, which cannot be restored")]
    NotPutBack { paths: String },
    /// A file or folder of the tree or of the harness.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// The operation: `look at`, `remove`.
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl Fault {
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File {
            doing,
            path: path.to_owned(),
            source,
        }
    }
}
