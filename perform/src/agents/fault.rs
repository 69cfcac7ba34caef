//! What stops a run that drives agents.

use std::io;
use std::path::{Path, PathBuf};

use code_commit_logging::FolderError;
use code_commit_repo::GitError;

use crate::record::RecordError;

/// What stops a run from the outside. The journal stays as it is, so that the run can be resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum AgentFault {
    /// The user pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The prompt holds a key: it is not sent.
    #[error("the prompt of turn {number} contains an API key and was not sent")]
    KeyInPrompt { number: u32 },
    /// The record could not be kept.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A file of the project or of the harness.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// The operation: `read`, `write`, `list`.
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Paths that a role may not touch could not be restored.
    #[error("cannot restore {paths}; copies of the old content are in {}", copies.display())]
    NotPutBack { paths: String, copies: PathBuf },
    /// What was changed in a tree could not be taken account of.
    #[error(transparent)]
    Changes(code_commit_changes::Fault),
    /// The agent could not be supervised.
    #[error("cannot run the {role}")]
    Agent {
        role: String,
        source: code_commit_agent::AgentError,
    },
    /// A marker could not be stored.
    #[error("cannot keep a marker of the {role}")]
    Marker { role: String, source: io::Error },
    /// What a turn needs beside it could not be started.
    #[error("cannot get ready for the {role}")]
    Guard { role: String, source: io::Error },
    /// The user's command could not be supervised.
    #[error("cannot run a command")]
    Run(#[source] code_commit_runner::RunError),
    /// Git could not report the state of a tree.
    #[error("cannot ask git about the tree")]
    Git(#[source] GitError),
    /// A commit failed.
    #[error("cannot commit")]
    Commit(#[source] GitError),
}

impl AgentFault {
    /// The copies are in this run.
    pub(super) fn not_put_back(error: code_commit_changes::Fault, run: &Path) -> Self {
        let code_commit_changes::Fault::NotPutBack { paths } = error else {
            return Self::Changes(error);
        };
        Self::NotPutBack {
            paths,
            copies: run.join(code_commit_changes::BACKUP),
        }
    }
}

impl From<FolderError> for AgentFault {
    fn from(error: FolderError) -> Self {
        Self::Record(error.into())
    }
}

pub(super) fn fault(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> AgentFault {
    let path = path.to_owned();
    move |source| AgentFault::File {
        doing,
        path,
        source,
    }
}
