#![doc = include_str!("../README.md")]

mod binary_patch;
mod changed_in;
mod committed;
mod configuration;
mod dirty;
mod elsewhere;
mod error;
mod git;
mod index;
mod init;
mod named;
mod stable_hash;
mod state;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gix::config::source::Kind as Source;
use gix::sec::Trust;

pub use binary_patch::binary_patch;
pub use changed_in::ChangedIn;
pub use committed::{Committed, OnDisk};
pub use dirty::Status;
pub use error::{OpenError, RepoError};
pub use git::{Aside, Git, GitError, Head, Identity, sweep_index};
pub use index::{Index, Kind, Tracked};
pub use named::config_names_nothing;
pub use stable_hash::{TreeError, is_left_out, stable_hash};
pub use state::{hide_from_git, may_hold_state, state_dir_in_tree};

/// A git work tree, seen from one folder in it: the root of the run.
///
/// Its configuration is that of the moment when it was opened. Index, references and objects are read as they are when
/// they are asked for, `.gitignore` files too. A clone shares all of it, and costs nothing.
#[derive(Clone)]
pub struct WorkTree {
    root: PathBuf,
    top: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    repository: gix::Repository,
}

impl std::fmt::Debug for WorkTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkTree")
            .field("root", &self.root)
            .field("top", &self.top)
            .finish_non_exhaustive()
    }
}

impl WorkTree {
    /// The work tree that contains `root`. Ignores `GIT_DIR` and similar variables: only the folder
    /// decides.
    pub fn at(root: &Path) -> Result<Self, OpenError> {
        let unreadable = |reason: String| OpenError::Unreadable {
            folder: root.to_owned(),
            reason,
        };
        let root = fs::canonicalize(root).map_err(|e| unreadable(e.to_string()))?;
        let found = gix::discover::upwards(&root)
            .map_err(|_| OpenError::NotARepository {
                folder: root.clone(),
            })
            .map(|(found, trust)| (found.into_repository_and_work_tree_directories(), trust));
        let nearest = found
            .as_ref()
            .ok()
            .map(|((git_dir, top), _)| top.as_ref().unwrap_or(git_dir).as_path());
        can_look(&root, nearest).map_err(unreadable)?;
        let ((git_dir, top), trust) = found?;
        let Some(top) = top else {
            return Err(OpenError::Bare { git_dir });
        };
        let options = gix::open::Options::default()
            .with(Trust::Reduced)
            .filter_config_section(may_start_programs)
            // Reduced so that it starts no program. Its files are the user's, of whatever size.
            .config_overrides([NO_ALLOCATION_LIMIT])
            .permissions(permissions());
        // Opened by its work tree: for the git directory of a submodule, or one that is elsewhere,
        // gix cannot determine the owner.
        let repository =
            gix::open_opts(&top, options).map_err(|e| unreadable(error::with_causes(&e)))?;
        let top = repository.workdir().map_or(top, Path::to_owned);
        let top = fs::canonicalize(&top).map_err(|e| unreadable(e.to_string()))?;
        // An open repository has full trust if `safe.directory` lists it.
        if trust != Trust::Full && repository.git_dir_trust() != Trust::Full {
            return Err(OpenError::ForeignOwner { git_dir, top });
        }
        // A bare repository may have linked work trees.
        let is_linked = repository.git_dir() != repository.common_dir();
        if (repository.is_bare() && !is_linked) || !root.starts_with(&top) {
            return Err(OpenError::Bare { git_dir });
        }
        let real = |folder| fs::canonicalize(folder).map_err(|e| unreadable(e.to_string()));
        Ok(Self {
            root,
            top,
            git_dir: real(repository.git_dir())?,
            common_dir: real(repository.common_dir())?,
            repository,
        })
    }

    /// The requested folder with symlinks resolved. Everything that a run touches is below it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The top of the work tree: `root` or a folder above it.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// The git directory of this work tree (for a linked one, its own folder in `.git/worktrees`), with symlinks resolved:
    /// a `.git` may be one.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The git directory that linked work trees share, with symlinks resolved.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The repository as it was opened: its own configuration is not trusted.
    pub(crate) fn repository(&self) -> &gix::Repository {
        &self.repository
    }

    /// The checked-out commit, in hex; `None` in a repository without commits.
    pub fn head(&self) -> Result<Option<String>, RepoError> {
        self.has_readable_references()?;
        let head = || {
            let head = self.repository.head()?;
            match head.id() {
                Some(id) => Ok(Some(id)),
                // A branch that points to another branch.
                None => head.try_into_peeled_id(),
            }
        };
        let head = head().map_err(|e| self.git_error("read HEAD", &e))?;
        Ok(head.map(|id| id.to_string()))
    }

    /// A git operation in progress (such as a merge) that restoring the tree would end, with its
    /// changes lost: a hard reset forgets it, however clean the tree is.
    pub fn under_way(&self) -> Option<&'static str> {
        use gix::state::InProgress as Is;
        match self.repository.state()? {
            Is::Merge => Some("merge"),
            Is::CherryPick | Is::CherryPickSequence => Some("cherry-pick"),
            Is::Revert | Is::RevertSequence => Some("revert"),
            Is::ApplyMailbox
            | Is::ApplyMailboxRebase
            | Is::Bisect
            | Is::Rebase
            | Is::RebaseInteractive => None,
        }
    }

    /// Whether git tracks so few files that starting a thread takes longer than scanning them all.
    pub fn is_small(&self) -> bool {
        fs::metadata(self.repository.index_path())
            .map_or(true, |index| index.len() <= ONE_THREAD_BYTES)
    }

    fn git_error(&self, doing: &'static str, error: &gix::Error) -> RepoError {
        RepoError::git(doing, &self.top, error)
    }

    fn has_readable_references(&self) -> Result<(), RepoError> {
        let storage = self
            .repository
            .config_snapshot()
            .string("extensions.refStorage");
        if storage.is_some_and(|format| format.eq_ignore_ascii_case(b"reftable")) {
            return Err(RepoError::Reftable {
                top: self.top.clone(),
            });
        }
        Ok(())
    }
}

/// An index of this size lists about two thousand files.
const ONE_THREAD_BYTES: u64 = 200_000;

const NO_ALLOCATION_LIMIT: &str = "gitoxide.objects.allocLimitIfReducedTrust=0";

/// Fails if a nearer repository than the one found cannot be inspected, or could not be when gix looked: gix takes it
/// for none, and another one, or none at all, would decide where the state is.
fn can_look(root: &Path, found: Option<&Path>) -> Result<(), String> {
    for folder in root.ancestors().take_while(|folder| Some(*folder) != found) {
        let git = folder.join(".git");
        for path in [
            git.clone(),
            git.join("HEAD"),
            git.join("objects"),
            git.join("refs"),
        ] {
            match fs::metadata(&path) {
                Err(error)
                    if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
                {
                    return Err(format!("{}: {error}", path.display()));
                }
                Ok(_) | Err(_) => {}
            }
        }
        if gix::discover::is_git(&git).is_ok() {
            return Err(format!(
                "{} could not be read while the repository was being located",
                git.display()
            ));
        }
    }
    Ok(())
}

/// Whether filters and monitors of this part of the configuration may run: never those of the
/// repository itself, even if `safe.directory` lists it.
fn may_start_programs(part: &gix::config::file::Metadata) -> bool {
    part.source.kind() != Source::Repository && part.trust == Trust::Full
}

/// Like git's, without `GIT_*` variables: the `GIT_INDEX_FILE` or `GIT_WORK_TREE` of a caller such
/// as a hook refers to another tree.
fn permissions() -> gix::open::Permissions {
    let all = gix::open::Permissions::all();
    let env = gix::open::permissions::Environment {
        git_prefix: gix::sec::Permission::Deny,
        ..all.env
    };
    gix::open::Permissions { env, ..all }
}

#[cfg(test)]
mod tests;
