//! What stops a run of a loop that asks a model.

use std::io;
use std::path::{Path, PathBuf};

use code_commit_apply::{Applied, Warning};
use code_commit_logging::FolderError;
use rustix::io::Errno;

use crate::record::RecordError;

/// What stops a run from the outside. The journal stays as it is, so that the run can be resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum Fault {
    /// The user pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The prompt holds a key: it is not sent.
    #[error("the prompt of round {round} contains an API key and was not sent")]
    KeyInPrompt { round: u32 },
    /// The record could not be kept.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The guard could not inspect the tree.
    #[error("cannot judge the reply's paths")]
    Judge(#[source] code_commit_guard::JudgeError),
    /// The changes could not be written. The tree is as before unless the error says otherwise
    /// ([`code_commit_apply::ApplyError::leaves_tree_changed`]).
    #[error("cannot write the reply's changes")]
    Apply(#[source] code_commit_apply::ApplyError),
    /// What an earlier part of the run wrote could not be read back.
    #[error("cannot read what was applied before")]
    Undo(#[source] code_commit_apply::UndoError),
    /// The run's changes could not be reverted.
    #[error("cannot put the tree back")]
    Restore(#[source] code_commit_apply::UndoError),
    /// Git could not report the state of the tree.
    #[error("cannot ask git about the tree")]
    Git(#[source] code_commit_repo::GitError),
    /// Git could not restore the tree.
    #[error("cannot put the tree back")]
    RollBack(#[source] code_commit_repo::GitError),
    /// A build or a command changed protected files that could not be restored.
    #[error("the build changed {paths}, which cannot be restored")]
    Seal {
        /// Which, relative to the root.
        paths: String,
    },
    /// A file or folder of the tree or of the harness.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// The operation: `look at`, `append to`, `remove`.
        doing: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The build could not be supervised.
    #[error("cannot run the build")]
    Run(#[source] code_commit_runner::RunError),
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

impl From<code_commit_changes::Fault> for Fault {
    fn from(fault: code_commit_changes::Fault) -> Self {
        use code_commit_changes::Fault as Changes;
        match fault {
            Changes::Apply(error) => Self::Apply(error),
            Changes::Undo(error) => Self::Restore(error),
            Changes::NotPutBack { paths } => Self::Seal { paths },
            Changes::File {
                doing,
                path,
                source,
            } => Self::File {
                doing,
                path,
                source,
            },
            other => Self::File {
                doing: "look at",
                path: PathBuf::new(),
                source: io::Error::other(other),
            },
        }
    }
}

impl From<FolderError> for Fault {
    fn from(error: FolderError) -> Self {
        Self::Record(error.into())
    }
}

/// Fails if the pre-images could not be moved to their folder: no answer could name their manifest, so nobody could
/// undo what is in place. The next command moves them, and the run can be resumed.
pub(crate) fn finished(applied: Applied, undo: &Path) -> Result<Applied, Fault> {
    let failed = applied
        .warnings
        .iter()
        .find(|warning| matches!(warning, Warning::CleanUp { .. }));
    match failed {
        Some(warning)
            if code_commit_apply::read_applied(undo)
                .map_err(Fault::Undo)?
                .is_none() =>
        {
            Err(Fault::file("move the old files to", undo)(
                io::Error::other(warning.to_string()),
            ))
        }
        Some(_) | None => Ok(applied),
    }
}

/// Whether the machine failed, rather than the model or the project: the disk is full or broken. Then the run is
/// stopped and can be resumed; nobody's attempt has failed.
pub(crate) fn is_of_the_machine(error: &(dyn std::error::Error + 'static)) -> bool {
    const BROKEN: [Errno; 7] = [
        Errno::IO,
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::ROFS,
        Errno::NOMEM,
        Errno::NFILE,
        Errno::MFILE,
    ];
    std::iter::successors(Some(error), |error| error.source())
        .filter_map(|error| Errno::from_io_error(error.downcast_ref()?))
        .any(|error| BROKEN.contains(&error))
}

/// An error and its causes in one line.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(source) = below {
        text = format!("{text}: {source}");
        below = source.source();
    }
    text
}
