//! What git says of a root, read once for all guards of a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::Folder;
use code_commit_repo::Configuration;

use crate::patterns::folders;
use crate::policy::Policy;
use crate::repository::{OpenError, WorkTree, canonical};
use crate::rules::Unread;
use crate::{Guard, raise_descriptor_limit};

/// A root, and what git says of it apart from the `.gitignore` files at and below it: its repository, its
/// configuration and the user's excludes. Read once, for every guard of a run: a build may change them meanwhile.
#[derive(Debug, Clone)]
pub struct Surroundings {
    pub(crate) root: Arc<Folder>,
    pub(crate) path: PathBuf,
    pub(crate) work_tree: Arc<WorkTree>,
}

impl Surroundings {
    /// Searches for a repository at and above `root`.
    pub fn find(root: &Path, configuration: Configuration) -> Result<Self, OpenError> {
        Self::of(root, |root| WorkTree::around(root, configuration))
    }

    /// As if the root were in no repository: only its own rules count.
    pub fn alone(root: &Path) -> Result<Self, OpenError> {
        Self::of(root, |root| Ok(WorkTree::without_repository(root)))
    }

    fn of(
        root: &Path,
        work_tree: impl FnOnce(&Path) -> Result<WorkTree, OpenError>,
    ) -> Result<Self, OpenError> {
        let path = canonical(root)?;
        let root = Folder::open(&path).map_err(|source| OpenError::Io {
            path: path.clone(),
            source,
        })?;
        Ok(Self {
            root: root.into(),
            work_tree: work_tree(&path)?.into(),
            path,
        })
    }

    /// Whether the root is in a work tree of git.
    pub fn is_git(&self) -> bool {
        !self.work_tree.excludes.is_empty()
    }

    /// The texts of the user's excludes file and of `info/exclude`, as they were read.
    pub fn excludes(&self) -> &[Vec<u8>] {
        &self.work_tree.excludes
    }

    /// Whether git ignores a file at `path`, relative to the root, if it does not track it: by the `.gitignore` files of
    /// now and by the other rules as they were read.
    pub fn ignores(&self, path: &str) -> Result<bool, OpenError> {
        let prefix = &self.work_tree.prefix;
        let asked = || {
            let mut rules = self.work_tree.rules()?;
            let mut folder = Arc::clone(&self.root);
            let from_top = format!("{prefix}{path}");
            rules
                .read(prefix.trim_end_matches('/'), &folder)
                .map_err(Unread::at(prefix))?;
            for below in folders(path) {
                let name = below.rsplit('/').next().unwrap_or(below);
                match folder.open_in(name) {
                    Ok(inner) => folder = Arc::new(inner),
                    // What is not there has no rules.
                    Err(_) => break,
                }
                let below = format!("{prefix}{below}");
                rules.read(&below, &folder).map_err(Unread::at(&below))?;
            }
            Ok(rules.ignore(&from_top))
        };
        asked().map_err(|Unread { path, source }| OpenError::Io {
            path: self.work_tree.whole(&path),
            source,
        })
    }

    /// Captures the `.gitignore` files of the whole tree as they are now. Everything else is as it was read.
    ///
    /// Raises the soft limit on open files to the hard limit for the whole process, because a reply may touch
    /// thousands of folders.
    pub fn guard(&self, policy: Policy) -> Result<Guard, OpenError> {
        raise_descriptor_limit();
        let Self {
            root,
            path,
            work_tree,
        } = self.clone();
        let captured = work_tree
            .capture(&root)
            .map_err(|Unread { path, source }| OpenError::Io {
                path: work_tree.whole(&path),
                source,
            })?;
        Ok(Guard {
            root,
            path,
            policy,
            work_tree,
            captured,
        })
    }
}
