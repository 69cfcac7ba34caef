//! The repository around the root, if any: the top of its work tree, and what it ignores.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::ByteSlice;
use gix::glob::pattern::Case;
use gix::index::Entry;
use gix::index::entry::{Flags, Mode};
use gix::sec::Trust;

use crate::patterns::{Patterns, folders};
use crate::policy::Configuration;
use crate::rules::{Rules, Unread};
use code_commit_dir::Folder;

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
        /// The message from gix.
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
    /// The paths, relative to the top, of the submodules in the index, checked out or not.
    pub(crate) submodules: BTreeSet<String>,
    /// The paths, relative to the top, that the index marks as not checked out; a folder has a trailing slash.
    absent: BTreeSet<String>,
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
        let Some(repo) = discover(root, configuration)? else {
            return Ok(WorkTree::without_repository(root));
        };
        refuse_foreign_owner(&repo)?;
        WorkTree::of(&repo, root, configuration)
    }

    fn of(
        repo: &gix::Repository,
        root: &Path,
        configuration: Configuration,
    ) -> Result<WorkTree, OpenError> {
        let git_dir = canonical(repo.git_dir())?;
        let no_work_tree = || OpenError::NotAWorkTree {
            root: root.to_owned(),
            git_dir: git_dir.clone(),
        };
        let top = canonical(repo.workdir().ok_or_else(no_work_tree)?)?;
        if root.starts_with(&git_dir) {
            return Err(no_work_tree());
        }
        let below = root.strip_prefix(&top).map_err(|_| no_work_tree())?;
        let below = below.to_str().ok_or_else(|| OpenError::NotUtf8 {
            root: root.to_owned(),
        })?;
        let unreadable = |error: gix::Error| unreadable(root, &error);
        let [submodules, absent] = never_written(repo).map_err(unreadable)?;
        let excludes = excludes(repo, configuration).map_err(unreadable)?;
        Ok(WorkTree {
            prefix: if below.is_empty() {
                String::new()
            } else {
                format!("{below}/")
            },
            above: folders_above(&top, below)?,
            submodules,
            absent,
            sparse: sparse(repo),
            git: git_below(repo, root),
            global: excludes.iter().map(|text| Patterns::parse(text)).collect(),
            excludes,
            case: ignore_case(repo),
            top,
        })
    }

    pub(crate) fn without_repository(root: &Path) -> WorkTree {
        WorkTree {
            top: root.to_owned(),
            prefix: String::new(),
            above: Vec::new(),
            submodules: BTreeSet::new(),
            absent: BTreeSet::new(),
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
        let in_absent = |folder: &str| self.absent.contains(&format!("{folder}/"));
        let is_chosen = |sparse: &Patterns| sparse.nearest_verdict(path, self.case) == Some(true);
        self.absent.contains(path)
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

fn discover(
    root: &Path,
    configuration: Configuration,
) -> Result<Option<gix::Repository>, OpenError> {
    let options = match configuration {
        Configuration::All => gix::open::Options::default().permissions(permissions()),
        Configuration::RepositoryOnly => gix::open::Options::isolated(),
    };
    let found = gix::ThreadSafeRepository::discover_opts(
        root,
        gix::discover::upwards::Options::default(),
        gix::sec::trust::Mapping {
            full: options.clone(),
            reduced: options,
        },
    );
    match found {
        Ok(repo) => Ok(Some(repo.to_thread_local())),
        // If gix cannot open a `.git`, that is no reason to continue without ignore rules.
        Err(error) if root.ancestors().any(may_have_dot_git) => Err(unreadable(root, &error)),
        Err(_) => Ok(None),
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

/// Refuses another user's repository unless `safe.directory` lists it.
fn refuse_foreign_owner(repo: &gix::Repository) -> Result<(), OpenError> {
    match repo.workdir() {
        Some(top) if repo.git_dir_trust() != Trust::Full => Err(OpenError::ForeignOwner {
            git_dir: canonical(repo.git_dir())?,
            top: canonical(top)?,
        }),
        _ => Ok(()),
    }
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

fn unreadable(root: &Path, error: &gix::Error) -> OpenError {
    OpenError::Repository {
        root: root.to_owned(),
        reason: error.to_string(),
    }
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

/// What the index has and no reply may write: submodules, and what is not checked out.
fn never_written(repo: &gix::Repository) -> gix::Result<[BTreeSet<String>; 2]> {
    if std::fs::read(repo.index_path()).is_ok_and(|index| has_only_files(&index)) {
        return Ok(Default::default());
    }
    // Skips the checksum, which git does not check either.
    let skip_hash = true;
    let decode = gix::index::decode::Options::default();
    let index =
        gix::index::File::at_or_default(repo.index_path(), repo.object_hash(), skip_hash, decode)?;
    let paths = |wanted: fn(&Entry) -> bool| {
        let entries = index.entries().iter().filter(|entry| wanted(entry));
        let paths = entries.map(|entry| entry.path(&index).to_str_lossy().into_owned());
        paths.collect()
    };
    Ok([
        paths(|entry| entry.mode == Mode::COMMIT),
        paths(|entry| entry.flags.contains(Flags::SKIP_WORKTREE)),
    ])
}

/// Whether the index certainly names neither submodules nor files that are not checked out: version 2 cannot mark the
/// latter, and neither the mode of a submodule nor the reference to a shared index occurs in its bytes. Most indexes
/// are like that, and this search takes a fraction of the time of reading the entries.
fn has_only_files(index: &[u8]) -> bool {
    let mode = Mode::COMMIT.bits().to_be_bytes();
    index.starts_with(b"DIRC\0\0\0\x02") && !index.contains_str(mode) && !index.contains_str("link")
}

/// `None` if all is checked out; without the file of patterns, git checks out everything, too.
fn sparse(repo: &gix::Repository) -> Option<Patterns> {
    let is_sparse = repo.config_snapshot().boolean("core.sparseCheckout") == Some(true);
    let patterns = repo.git_dir().join("info").join("sparse-checkout");
    let patterns = is_sparse.then(|| std::fs::read(patterns).ok()).flatten()?;
    Some(Patterns::parse(&patterns))
}

/// By their real paths: a `.git` may be a file or a symlink that leads to any folder of the tree.
fn git_below(repo: &gix::Repository, root: &Path) -> Vec<PathBuf> {
    let folders = [repo.git_dir(), repo.common_dir()].into_iter();
    let real = folders.filter_map(|folder| folder.canonicalize().ok());
    real.filter_map(|folder| folder.strip_prefix(root).ok().map(Path::to_owned))
        .collect()
}

/// The user's excludes file, then `info/exclude`, which linked work trees share in git's common
/// directory.
fn excludes(repo: &gix::Repository, configuration: Configuration) -> gix::Result<Vec<Vec<u8>>> {
    let configured = repo.config_snapshot().trusted_path("core.excludesFile")?;
    let users = match (configured, configuration) {
        // Git reads a relative one from the top, where it works.
        (Some(path), _) => Some(repo.workdir().unwrap_or(Path::new("")).join(path)),
        (None, Configuration::All) => {
            gix::path::env::xdg_config("ignore", &mut |name| gix::path::env::var(name))
        }
        (None, Configuration::RepositoryOnly) => None,
    };
    let info = repo.common_dir().join("info").join("exclude");
    // Unlike nested files, these belong to the user and may be symlinks. An unreadable one counts
    // as empty, as in git.
    let sources = users.into_iter().chain([info]);
    Ok(sources
        .map(|path| std::fs::read(path).unwrap_or_default())
        .collect())
}

fn ignore_case(repo: &gix::Repository) -> Case {
    if repo
        .config_snapshot()
        .boolean("core.ignoreCase")
        .unwrap_or(false)
    {
        Case::Fold
    } else {
        Case::Sensitive
    }
}
