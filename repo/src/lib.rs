#![doc = include_str!("../README.md")]

mod below;
mod binary_patch;
mod changed_in;
mod committed;
mod configuration;
mod elsewhere;
mod error;
mod git;
mod init;
mod look;
mod named;
mod stable_hash;
mod state;
mod tracked;
mod untracked;

use std::cell::RefCell;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use gix::bstr::{BStr, ByteSlice as _};
use gix::config::source::Kind;
use gix::sec::Trust;
use gix::submodule::config::Ignore;

pub use binary_patch::binary_patch;
pub use changed_in::ChangedIn;
pub use committed::{Committed, OnDisk};
pub use error::{OpenError, RepoError};
pub use git::{Aside, Git, GitError, Head, Identity, sweep_index};
pub use init::init;
pub use look::{Asked, Look};
pub use named::config_names_nothing;
pub use stable_hash::{TreeError, is_left_out, stable_hash};
pub use state::{hide_from_git, may_hold_state, state_dir_in_tree};
pub use tracked::{Besides, Tracked};

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
    /// The result of the last scan for [`repositories_below`](Self::repositories_below), without
    /// nested levels.
    below: RefCell<Option<Vec<PathBuf>>>,
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
            below: RefCell::default(),
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

    /// Those of these paths, relative to the root, that are submodules.
    pub fn submodules_of(&self, paths: &[PathBuf]) -> Result<Vec<PathBuf>, RepoError> {
        let submodules = self.submodules_in_index()?.into_iter();
        Ok(submodules
            .map(|submodule| submodule.path)
            .filter(|path| paths.contains(path))
            .collect())
    }

    pub(crate) fn submodules_in_index(&self) -> Result<Vec<Submodule>, RepoError> {
        let index = self.index()?;
        let mut entries = index
            .entries()
            .iter()
            .filter(|entry| entry.mode.is_submodule())
            .peekable();
        if entries.peek().is_none() {
            return Ok(Vec::new());
        }
        let settings = || self.repository.submodules();
        let settings = settings().map_err(|e| self.git_error("read .gitmodules", &e))?;
        let settings: Vec<_> = settings.into_iter().flatten().collect();
        let config = self.repository.config_snapshot();
        let submodule = |entry: &gix::index::Entry| {
            let path = entry.path(&index);
            let named = settings
                .iter()
                .find(|one| one.path().is_ok_and(|named| *named == *path));
            // As they are: the settings of the repository itself may say what is ignored.
            let set = |key: String| Ignore::try_from(config.string(&*key)?.as_bstr()).ok();
            let ignore = named
                .and_then(|one| set(format!("submodule.{}.ignore", one.name())))
                .or_else(|| named?.ignore().ok()?)
                .or_else(|| set("diff.ignoreSubmodules".to_owned()));
            Some(Submodule {
                path: self.relative(path)?,
                ignore,
            })
        };
        Ok(entries.filter_map(submodule).collect())
    }

    fn index(&self) -> Result<gix::worktree::Index, RepoError> {
        self.repository
            .index_or_empty()
            .map_err(|e| self.git_error("read the index", &e))
    }

    /// Relative to the root. An index may contain any text as a path, even one that leads outside.
    fn relative(&self, path: &BStr) -> Option<PathBuf> {
        let path = gix::path::from_bstr(path).ok()?;
        if !path
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
        {
            return None;
        }
        if self.root == self.top {
            return Some(path.into_owned());
        }
        self.top
            .join(path)
            .strip_prefix(&self.root)
            .ok()
            .map(Path::to_owned)
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

/// A submodule in the index.
pub(crate) struct Submodule {
    /// Relative to the root.
    pub(crate) path: PathBuf,
    /// Which of its changes git ignores, by its configuration (`submodule.NAME.ignore`).
    pub(crate) ignore: Option<Ignore>,
}

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
    part.source.kind() != Kind::Repository && part.trust == Trust::Full
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
