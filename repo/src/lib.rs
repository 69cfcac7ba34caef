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
mod objects;
mod stable_hash;
mod state;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gix_config::File;
use gix_discover::path;
use gix_error::{ResultExt as _, message};
use gix_fs::SharedFileSnapshotMut;
use gix_ref::file::ReferenceExt as _;
use gix_sec::Trust;

pub use binary_patch::binary_patch;
pub use changed_in::ChangedIn;
pub use committed::{Committed, OnDisk};
pub use configuration::Configuration;
pub use dirty::Status;
pub use error::{OpenError, RepoError};
pub use git::{Aside, Git, GitError, Head, Identity, sweep_index};
pub use index::{Index, Kind, NeverWritten, Tracked};
pub use named::config_names_nothing;
pub use stable_hash::{TreeError, is_left_out, stable_hash};
pub use state::{hide_from_git, may_hold_state, state_dir_in_tree};

/// A git work tree, seen from one folder in it: the root of the run.
///
/// Its configuration is that of the moment when it was opened. Index, references and objects are read as they are when
/// they are asked for, `.gitignore` files too; what the configuration names and where state is, when it is first asked.
/// A clone shares all of it, and costs nothing.
#[derive(Clone)]
pub struct WorkTree {
    root: PathBuf,
    top: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    which: Configuration,
    config: Arc<File>,
    hash: gix_hash::Kind,
    index: Arc<SharedFileSnapshotMut<gix_index::File>>,
    known: Arc<Known>,
}

/// Looked up on first use, then shared by all clones.
#[derive(Default)]
struct Known {
    named: OnceLock<Vec<PathBuf>>,
    state: OnceLock<PathBuf>,
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
        Self::open(root, Configuration::All)
    }

    /// As [`at`](Self::at), with this configuration.
    pub fn open(root: &Path, which: Configuration) -> Result<Self, OpenError> {
        let unreadable = |reason: String| OpenError::Unreadable {
            folder: root.to_owned(),
            reason,
        };
        let real = |folder: &Path| fs::canonicalize(folder).map_err(|e| unreadable(e.to_string()));
        let root = real(root)?;
        let found = gix_discover::upwards(&root).ok();
        let found =
            found.map(|(at, trust)| (at.into_repository_and_work_tree_directories(), trust));
        let nearest = found
            .as_ref()
            .map(|((git_dir, top), _)| top.as_ref().unwrap_or(git_dir));
        can_look(&root, nearest.map(PathBuf::as_path)).map_err(unreadable)?;
        let Some(((git_dir, top), trust)) = found else {
            return Err(OpenError::NotARepository { folder: root });
        };
        let Some(top) = top else {
            return Err(OpenError::Bare { git_dir });
        };
        let top = real(&top)?;
        let linked_to = path::from_plain_file_relative_to_file(&git_dir.join("commondir"));
        let common_dir = linked_to.unwrap_or_else(|| Ok(git_dir.clone()));
        let common_dir = common_dir.map_err(|e| unreadable(e.to_string()))?;
        let (config, hash) = configuration::read(&git_dir, &common_dir, which)
            .or_raise(|| message("Repository configuration could not be loaded"))
            .map_err(|e| unreadable(error::with_causes(&e)))?;
        if trust != Trust::Full && !configuration::is_safe(&config, &top) {
            return Err(OpenError::ForeignOwner { git_dir, top });
        }
        // A bare repository may have linked work trees.
        let is_bare = configuration::own_boolean(&config, "core.bare") == Some(true);
        if (is_bare && git_dir == common_dir) || !root.starts_with(&top) {
            return Err(OpenError::Bare { git_dir });
        }
        Ok(Self {
            root,
            top,
            git_dir: real(&git_dir)?,
            common_dir: real(&common_dir)?,
            which,
            config: config.into(),
            hash,
            index: SharedFileSnapshotMut::new().into(),
            known: Arc::default(),
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

    /// The checked-out commit, in hex; `None` in a repository without commits.
    pub fn head(&self) -> Result<Option<String>, RepoError> {
        let storage = self.config.string("extensions.refStorage");
        if storage.is_some_and(|format| format.eq_ignore_ascii_case(b"reftable")) {
            let top = self.top.clone();
            return Err(RepoError::Reftable { top });
        }
        let head = || {
            let references = configuration::references(&self.git_dir, &self.common_dir, self.hash);
            let packed = references.cached_packed_buffer()?;
            let packed = packed.as_ref().map(|packed| &***packed);
            let mut head = references.find("HEAD")?;
            head.follow_to_object_packed(&references, packed)
        };
        match head() {
            Ok(id) => Ok(Some(id.to_string())),
            // A branch without commits.
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(self.git_error("read HEAD", &error)),
        }
    }

    /// A git operation in progress (such as a merge) that restoring the tree would end, with its
    /// changes lost: a hard reset forgets it, however clean the tree is.
    pub fn under_way(&self) -> Option<&'static str> {
        let is_there = |name: &str| self.git_dir.join(name).exists();
        if is_there("rebase-apply") || is_there("rebase-merge") {
            return None;
        }
        let begun = [
            ("CHERRY_PICK_HEAD", "cherry-pick"),
            ("MERGE_HEAD", "merge"),
            ("REVERT_HEAD", "revert"),
        ];
        let begun = begun.into_iter().find(|(file, _)| is_there(file));
        begun.map(|(_, what)| what)
    }

    /// Whether git tracks so few files that starting a thread takes longer than scanning them all.
    pub fn is_small(&self) -> bool {
        fs::metadata(self.git_dir.join(index::INDEX))
            .map_or(true, |index| index.len() <= ONE_THREAD_BYTES)
    }

    fn git_error(&self, doing: &'static str, error: &gix_error::Error) -> RepoError {
        RepoError::git(doing, &self.top, error)
    }
}

/// An index of this size lists about two thousand files.
const ONE_THREAD_BYTES: u64 = 200_000;

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
        if gix_discover::is_git(&git).is_ok() {
            return Err(format!(
                "{} could not be read while the repository was being located",
                git.display()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
