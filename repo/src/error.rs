//! Why a repository could not be opened or asked.

use std::io;
use std::path::{Path, PathBuf};

/// Why a folder is not in a usable work tree.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Neither the folder nor any parent of it belongs to a repository.
    #[error("{} is not in a git work tree", folder.display())]
    NotARepository {
        /// The requested folder.
        folder: PathBuf,
    },
    /// The repository has no work tree.
    #[error("the repository {} is bare: it has no work tree", git_dir.display())]
    Bare {
        /// Its git directory.
        git_dir: PathBuf,
    },
    /// Another user owns the repository, and `safe.directory` does not list it.
    #[error("the git repository {} belongs to another user", git_dir.display())]
    ForeignOwner {
        /// Its git directory.
        git_dir: PathBuf,
        /// The top of its work tree, as `safe.directory` would name it.
        top: PathBuf,
    },
    /// There is a repository, but git's files cannot be read.
    #[error("cannot open the git repository of {}: {reason}", folder.display())]
    Unreadable {
        /// The requested folder.
        folder: PathBuf,
        /// The message from gix.
        reason: String,
    },
}

/// Why a query of the repository failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum RepoError {
    /// Git's own files could not be read.
    #[error("cannot {doing} in {}: {reason}", top.display())]
    Git {
        /// The operation: `list the work tree`, `read the index`.
        doing: &'static str,
        top: PathBuf,
        /// The message from gix.
        reason: String,
        /// The error of the system at the bottom of it.
        os_error: Option<i32>,
    },
    /// Branches and tags are stored in a binary table, which gix cannot read.
    #[error("git stores the references of {} as reftable, which is not supported yet", top.display())]
    Reftable { top: PathBuf },
    /// A folder could not be created or read.
    #[error("cannot use {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// Git does not recognize a repository here, but there may be commits in it.
    #[error("{} is damaged: git recognizes no repository there", path.display())]
    Damaged { path: PathBuf },
    /// A folder with the harness's name that no run created: a clone or an archive may have brought
    /// it along.
    #[error("{} was not created by a run here, or git tracks files in it", path.display())]
    NotMadeHere { path: PathBuf },
}

impl From<RepoError> for io::Error {
    /// An error of the system stays one: a full disk is nobody's fault.
    fn from(error: RepoError) -> Self {
        match error {
            RepoError::Git {
                os_error: Some(code),
                ..
            } => Self::from_raw_os_error(code),
            RepoError::Io { source, .. } => source,
            RepoError::Git { .. }
            | RepoError::Reftable { .. }
            | RepoError::Damaged { .. }
            | RepoError::NotMadeHere { .. } => Self::other(error),
        }
    }
}

impl RepoError {
    pub(crate) fn git(doing: &'static str, top: &Path, error: &gix_error::Error) -> Self {
        let (reason, os_error) = (with_causes(error), os_error(error));
        Self::Git {
            doing,
            top: top.to_owned(),
            reason,
            os_error,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Git { .. } => "run git status there",
            Self::Reftable { .. } => "convert them to files: git refs migrate --ref-format=files",
            Self::Damaged { .. } => {
                "repair it (git fsck, git status), or move it away to begin a new one"
            }
            Self::Io { .. } => "make sure that you own this folder",
            Self::NotMadeHere { .. } => {
                "inspect its content and move it away; remove it from git if it is tracked"
            }
        }
    }
}

/// In one line. The outermost error says only what was tried, and a cause may quote lines of an
/// unreadable file.
pub(crate) fn with_causes(error: &gix_error::Error) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| {
        error.source()
    });
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    let all = causes.join(": ");
    all.chars()
        .map(|c| {
            if c.is_control() {
                c.escape_debug().to_string()
            } else {
                c.to_string()
            }
        })
        .collect()
}

pub(crate) fn os_error(error: &gix_error::Error) -> Option<i32> {
    error
        .iter_errors()
        .find_map(|cause| cause.downcast_ref::<io::Error>()?.raw_os_error())
}
