//! The repository around the root, if any: the top of its work tree, and what it ignores.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::Folder;
use code_commit_repo::{
    Configuration, NeverWritten, OpenError as NotOpened, RepoError, WorkTree as Repository,
};
use gix_glob::pattern::Case;

use crate::patterns::{Patterns, folders};

use crate::rules::{Rules, Unread};

/// Why a root cannot be guarded. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum OpenError {
    /// The root or something in it could not be read.
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// There is a repository, but its data cannot be read.
    #[error("the git repository around {} cannot be opened: {reason}", root.display())]
    Repository {
        /// The requested root.
        root: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The root is in a bare repository or in a `.git` folder.
    #[error("{} is not in a work tree: it belongs to the git directory {}", root.display(), git_dir.display())]
    NotAWorkTree {
        /// The requested root.
        root: PathBuf,
        git_dir: PathBuf,
    },
    /// Another user owns the repository, and `safe.directory` does not list it.
    #[error(
        "the git repository {} belongs to another user; if you trust it: git config --global --add safe.directory {}",
        git_dir.display(), top.display()
    )]
    ForeignOwner { git_dir: PathBuf, top: PathBuf },
    /// The path of the root within its repository is not UTF-8.
    #[error("{} is not valid UTF-8", root.display())]
    NotUtf8 {
        /// The requested root.
        root: PathBuf,
    },
}

/// The work tree that contains the root.
#[derive(Debug)]
pub(crate) struct WorkTree {
    /// The top of the work tree; the root if there is no repository.
    top: PathBuf,
    /// The root's path relative to the top; empty or with a trailing slash.
    pub(crate) prefix: String,
    /// The folders from the top down to the root's parent, with their paths relative to the top.
    pub(crate) above: Vec<(String, Folder)>,
    pub(crate) never_written: NeverWritten,
    /// The patterns of a sparse checkout.
    sparse: Option<Patterns>,
    /// The folders below the root, relative to it, in which git keeps this repository.
    pub(crate) git: Vec<PathBuf>,
    /// The user's excludes, then `info/exclude`; empty without a repository.
    pub(crate) excludes: Vec<Vec<u8>>,
    pub(crate) global: Vec<Patterns>,
    pub(crate) case: Case,
}

impl WorkTree {
    /// Searches for a repository at and above `root`, which must be canonical.
    pub(crate) fn around(root: &Path, configuration: Configuration) -> Result<WorkTree, OpenError> {
        match Repository::open(root, configuration) {
            Ok(repo) => WorkTree::of(&repo),
            // If a `.git` cannot be opened, that is no reason to continue without ignore rules.
            Err(NotOpened::NotARepository { .. }) if !root.ancestors().any(may_have_dot_git) => {
                Ok(WorkTree::without_repository(root))
            }
            Err(NotOpened::Bare { git_dir }) => Err(no_work_tree(root, canonical(&git_dir)?)),
            Err(NotOpened::ForeignOwner { git_dir, top }) => Err(OpenError::ForeignOwner {
                git_dir: canonical(&git_dir)?,
                top,
            }),
            Err(NotOpened::Unreadable { reason, .. }) => Err(unreadable(root, reason)),
            Err(error) => Err(unreadable(root, error.to_string())),
        }
    }

    fn of(repo: &Repository) -> Result<WorkTree, OpenError> {
        let root = repo.root();
        let elsewhere = || no_work_tree(root, repo.git_dir().to_owned());
        let top = repo.configured_top();
        let top = top.map_or_else(|| Ok(repo.top().to_owned()), |top| canonical(&top))?;
        if root.starts_with(repo.git_dir()) {
            return Err(elsewhere());
        }
        let below = root.strip_prefix(&top).map_err(|_| elsewhere())?;
        let below = below.to_str().ok_or_else(|| OpenError::NotUtf8 {
            root: root.to_owned(),
        })?;
        let unreadable = |error: RepoError| unreadable(root, error.to_string());
        let excludes = excludes(repo).map_err(unreadable)?;
        Ok(WorkTree {
            prefix: if below.is_empty() {
                String::new()
            } else {
                format!("{below}/")
            },
            above: folders_above(&top, below)?,
            never_written: repo.never_written().map_err(unreadable)?,
            sparse: sparse(repo),
            git: repo.git_below(root),
            global: excludes.iter().map(|text| Patterns::parse(text)).collect(),
            excludes,
            case: if repo.is_set("core.ignoreCase") {
                Case::Fold
            } else {
                Case::Sensitive
            },
            top,
        })
    }

    pub(crate) fn without_repository(root: &Path) -> WorkTree {
        WorkTree {
            top: root.to_owned(),
            prefix: String::new(),
            above: Vec::new(),
            never_written: NeverWritten::default(),
            sparse: None,
            git: Vec::new(),
            excludes: Vec::new(),
            global: Vec::new(),
            case: Case::Sensitive,
        }
    }

    /// The absolute path of a path relative to the top.
    pub(crate) fn whole(&self, path: &str) -> PathBuf {
        // `join` alone would leave a trailing slash on the top itself.
        self.top.join(path).components().collect()
    }

    /// Whether git keeps a file at this path, relative to the top, out of the work tree: then `git add` refuses it.
    pub(crate) fn keeps_out(&self, path: &str) -> bool {
        let absent = &self.never_written.absent;
        let in_absent = |folder: &str| absent.contains(&format!("{folder}/"));
        let is_chosen = |sparse: &Patterns| sparse.nearest_verdict(path, self.case) == Some(true);
        absent.contains(path)
            || folders(path).any(in_absent)
            || !self.sparse.as_ref().is_none_or(is_chosen)
    }

    /// The rules of all sources except the `.gitignore` files at and below the root. Those above it
    /// are read now; the user's excludes and `info/exclude` were read when the guard was opened.
    pub(crate) fn rules(&self) -> Result<Rules, Unread> {
        let mut rules = Rules {
            global: self.global.clone(),
            by_folder: HashMap::new(),
            case: self.case,
            protected: Vec::new(),
        };
        for (path, folder) in &self.above {
            rules.read(path, folder).map_err(Unread::at(path))?;
        }
        Ok(rules)
    }

    /// The rules, with all `.gitignore` files at and below the root.
    pub(crate) fn capture(&self, root: &Arc<Folder>) -> Result<Rules, Unread> {
        let mut rules = self.rules()?;
        rules.read_below(self.prefix.trim_end_matches('/'), root)?;
        Ok(rules)
    }
}

/// Also if it cannot be inspected.
fn may_have_dot_git(folder: &Path) -> bool {
    let found = folder.join(".git").symlink_metadata();
    !found.is_err_and(|error| {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    })
}

fn no_work_tree(root: &Path, git_dir: PathBuf) -> OpenError {
    let root = root.to_owned();
    OpenError::NotAWorkTree { root, git_dir }
}

fn unreadable(root: &Path, reason: String) -> OpenError {
    let root = root.to_owned();
    OpenError::Repository { root, reason }
}

pub(crate) fn canonical(path: &Path) -> Result<PathBuf, OpenError> {
    path.canonicalize().map_err(|source| OpenError::Io {
        path: path.to_owned(),
        source,
    })
}

fn folders_above(top: &Path, below: &str) -> Result<Vec<(String, Folder)>, OpenError> {
    if below.is_empty() {
        return Ok(Vec::new());
    }
    std::iter::once("")
        .chain(folders(below))
        .map(|path| {
            let full = top.join(path);
            let folder =
                Folder::open(&full).map_err(|source| OpenError::Io { path: full, source })?;
            Ok((path.to_owned(), folder))
        })
        .collect()
}

/// `None` if all is checked out; without the file of patterns, git checks out everything, too.
fn sparse(repo: &Repository) -> Option<Patterns> {
    let patterns = repo.git_dir().join("info").join("sparse-checkout");
    let is_sparse = repo.is_set("core.sparseCheckout");
    let patterns = is_sparse.then(|| std::fs::read(patterns).ok()).flatten()?;
    Some(Patterns::parse(&patterns))
}

/// The user's excludes file, then `info/exclude`, which linked work trees share in git's common
/// directory.
fn excludes(repo: &Repository) -> Result<Vec<Vec<u8>>, RepoError> {
    let users = repo.users_file("core.excludesFile", "ignore")?;
    let info = repo.common_dir().join("info").join("exclude");
    // Unlike nested files, these belong to the user and may be symlinks. An unreadable one counts
    // as empty, as in git.
    let sources = users.into_iter().chain([info]);
    Ok(sources
        .map(|path| std::fs::read(path).unwrap_or_default())
        .collect())
}
