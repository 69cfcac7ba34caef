//! Operations that only the git program can do: roll back, commit.
//!
//! A model may have written into the tree and a build may have run in it, so git is started such that it
//! cannot run a program of the repository: no hooks, no file-system monitor, no filter of the repository's
//! own configuration, no other git in a submodule, no fetch, no pager, no editor, no prompt. From the
//! environment it gets only what it needs to find its configuration; of the `GIT_*` variables, only author
//! and committer. The user's own configuration applies, because files that it ignores must not be cleaned;
//! the system's does not.

mod commit;
mod hold;
mod program;
mod submodules;

pub use hold::sweep_index;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::{OpenError, RepoError};

/// Variables that are passed on from the caller's environment.
const PASSED: [&str; 11] = [
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "TMPDIR",
    "TZ",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
];

/// Why a git command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum GitError {
    /// Git is not installed, or could not be started.
    #[error("cannot start git in {}", folder.display())]
    Start {
        /// The work tree, or a folder of it.
        folder: PathBuf,
        source: io::Error,
    },
    #[error("git {command} failed in {}: {message}", folder.display())]
    Failed {
        /// The git command: `reset`, `clean`, `commit`.
        command: String,
        /// The work tree, or a folder of it.
        folder: PathBuf,
        message: String,
    },
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Git's own files could not be read.
    #[error(transparent)]
    Look(#[from] RepoError),
    /// Another git process holds the index, or was killed while holding it.
    #[error("{} exists: another git process is running here, or was killed; if none is running, remove that file", path.display())]
    Locked { path: PathBuf },
    /// The index could not be locked or replaced.
    #[error("cannot use {}", path.display())]
    Index { path: PathBuf, source: io::Error },
    /// Something that differs could not be moved away.
    #[error("cannot move {} aside", path.display())]
    InTheWay { path: PathBuf, source: io::Error },
    /// Git reported success, but the work tree is still not as it was.
    #[error("after a rollback, the work tree still differs: {}", paths.join(", "))]
    StillDirty {
        /// What differs, relative to the top.
        paths: Vec<String>,
    },
}

impl GitError {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        if let Self::Look(error) = self {
            error.hint()
        } else {
            "run git status"
        }
    }
}

/// The identity for commits if the configuration has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'a> {
    /// `user.name`.
    pub name: &'a str,
    /// `user.email`.
    pub email: &'a str,
}

/// Where `HEAD` points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// At a branch: `refs/heads/main`.
    Branch(String),
    /// At a commit.
    Detached,
}

/// Moves the file, symlink or folder at a path away.
pub type Aside<'a> = &'a mut dyn FnMut(&Path) -> io::Result<()>;

/// An entry of `git status`.
pub(crate) struct Changed {
    /// Relative to the top; of a folder, with a slash at its end.
    pub(crate) path: PathBuf,
    /// Whether it is tracked, and differs only from the index.
    pub(crate) is_unstaged: bool,
}

/// How often a rollback moves away what somebody saves meanwhile.
const TRIES: u32 = 5;

/// Runs git in one work tree. The repository is found once: if it is damaged or removed later, git fails
/// instead of working on a repository in a parent folder.
#[derive(Debug, Clone)]
pub struct Git {
    folder: PathBuf,
    repository: PathBuf,
    top: PathBuf,
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl Git {
    /// For the work tree with `folder` as its top. A folder below the top is enough to read commits
    /// and to [commit paths](Self::commit_paths). `program` is git itself, where no command of the
    /// project can change it. Only permitted variables are taken from `environment`.
    pub fn new(
        folder: impl Into<PathBuf>,
        program: impl Into<PathBuf>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let passes = |name: &OsStr| PASSED.iter().any(|passed| name == *passed);
        let environment = environment
            .into_iter()
            .filter(|(name, _)| passes(name))
            .collect();
        Self::pinned(folder.into(), program.into(), environment)
    }

    /// Runs the same git program in another work tree.
    #[must_use]
    pub fn at(&self, folder: impl Into<PathBuf>) -> Self {
        Self::pinned(
            folder.into(),
            self.program.clone(),
            self.environment.clone(),
        )
    }

    /// The folder it works in: the top of the work tree, or a folder below it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The commit that `name` refers to, in hex; `None` if there is no such commit.
    pub fn commit_of(&self, name: &str) -> Result<Option<String>, GitError> {
        let name = format!("{name}^{{commit}}");
        let words = [
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &name,
        ];
        Ok(self
            .asked(&words)?
            .map(|commit| text(&commit).trim().to_owned()))
    }

    /// Whether `HEAD` is this commit or comes after it. A commit that is not here is not.
    pub fn has_in_history(&self, commit: &str) -> Result<bool, GitError> {
        let Some(commit) = self.commit_of(commit)? else {
            return Ok(false);
        };
        Ok(self
            .asked(&["merge-base", "--is-ancestor", &commit, "HEAD"])?
            .is_some())
    }

    /// Where `HEAD` points.
    pub fn head(&self) -> Result<Head, GitError> {
        let branch = self.asked(&["symbolic-ref", "--quiet", "HEAD"])?;
        Ok(branch.map_or(Head::Detached, |name| {
            Head::Branch(text(&name).trim().to_owned())
        }))
    }

    /// What differs from the checked-out commit: staged, changed or untracked files, relative to
    /// the top. Does not search submodules for changes: that would start another git in the
    /// submodule, which would run programs that the submodule's configuration names.
    pub fn dirty_paths(&self) -> Result<Vec<PathBuf>, GitError> {
        let changed = self.status("all")?.into_iter();
        Ok(changed.map(|changed| changed.path).collect())
    }

    pub(crate) fn status(&self, untracked: &str) -> Result<Vec<Changed>, GitError> {
        let untracked = format!("--untracked-files={untracked}");
        let words = [
            "--no-optional-locks",
            "status",
            "--porcelain=v1",
            "-z",
            &untracked,
        ];
        let listed = self.run_for_bytes(
            &[&words[..], &["--no-renames", "--ignore-submodules=dirty"]].concat(),
        )?;
        // Two letters, for the index and for the work tree, and a blank.
        let changed = |entry: &[u8]| {
            Some(Changed {
                path: PathBuf::from(OsStr::from_bytes(entry.get(3..)?)),
                is_unstaged: entry.starts_with(b" "),
            })
        };
        Ok(listed
            .split(|byte| *byte == 0)
            .filter_map(changed)
            .collect())
    }

    /// The files that differ between two commits, relative to the top.
    pub fn differing_between(&self, one: &str, other: &str) -> Result<Vec<PathBuf>, GitError> {
        let listed = self.run_for_bytes(&[
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            one,
            other,
        ])?;
        let paths = listed
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty());
        Ok(paths
            .map(|path| PathBuf::from(OsStr::from_bytes(path)))
            .collect())
    }

    /// The last commits but for merges, the latest first: messages, and the files changed below `folder`, relative to it.
    pub fn last_commits(
        &self,
        folder: &Path,
        most: u32,
    ) -> Result<Vec<(String, Vec<PathBuf>)>, GitError> {
        let Some(_) = self.commit_of("HEAD")? else {
            return Ok(Vec::new());
        };
        let (count, below) = (
            format!("-{most}"),
            format!("--relative={}", folder.join("").display()),
        );
        let words = [
            "log",
            "-z",
            "--name-only",
            "--no-renames",
            "--no-merges",
            "--format=%x01%B%x02",
        ];
        let listed = self.run_for_bytes(&[&words[..], &[&count, &below]].concat())?;
        let mut commits: Vec<(String, Vec<PathBuf>)> = Vec::new();
        for entry in listed.split(|byte| *byte == 0) {
            if let Some(message) = entry
                .strip_prefix(b"\x01")
                .and_then(|entry| entry.strip_suffix(b"\x02"))
            {
                commits.push((text(message), Vec::new()));
            } else if let Some((_, files)) = commits.last_mut().filter(|_| !entry.is_empty()) {
                files.push(PathBuf::from(OsStr::from_bytes(
                    entry.strip_prefix(b"\n").unwrap_or(entry),
                )));
            }
        }
        Ok(commits)
    }

    /// Files that git assumes to be unchanged without checking (`--assume-unchanged`), relative to
    /// the top; they may have changed anyway.
    pub fn assumed_unchanged(&self) -> Result<Vec<String>, GitError> {
        let listed = self.run(&["ls-files", "-v", "-z"])?;
        let files = listed
            .split('\0')
            .filter(|entry| entry.starts_with(|tag: char| tag.is_ascii_lowercase()));
        Ok(files
            .filter_map(|entry| entry.get(2..))
            .map(str::to_owned)
            .collect())
    }

    /// Restores everything that git knows about to the state when `head` was at `commit`, and checks the
    /// result. Whatever differs is first moved away by `aside`, which gets absolute paths, also of files that
    /// are gone: nothing is deleted or overwritten, since somebody may save a file at any moment.
    pub fn roll_back(&self, head: &Head, commit: &str, aside: Aside<'_>) -> Result<(), GitError> {
        if self.head()? != *head {
            match head {
                Head::Branch(name) => self.run(&["symbolic-ref", "HEAD", name])?,
                Head::Detached => self.run(&["update-ref", "--no-deref", "HEAD", commit])?,
            };
        }
        self.reset(commit)?;
        let mut refused = None;
        for _ in 0..TRIES {
            self.clear(aside)?;
            match self.check_out() {
                Err(error @ GitError::Failed { .. }) => refused = Some(error),
                done => done?,
            }
            if self.differing()?.is_empty() {
                return Ok(());
            }
            self.roll_back_submodules(aside)?;
        }
        // A new file that appears again and again is somebody's work in progress.
        let (changed, submodules, mut paths) =
            (self.status("no")?, self.submodules()?, self.differing()?);
        paths.retain(|path| {
            let path = Path::new(path);
            changed.iter().any(|one| one.path == path)
                || submodules.iter().any(|one| path.starts_with(one))
        });
        if paths.is_empty() {
            Ok(())
        } else {
            Err(refused.unwrap_or(GitError::StillDirty { paths }))
        }
    }

    /// Moves everything away that differs, except submodules.
    fn clear(&self, aside: Aside<'_>) -> Result<(), GitError> {
        let submodules = self.submodules()?;
        for path in self.dirty_paths()? {
            let whole = self.folder.join(&path);
            if !(submodules.contains(&path) && whole.is_dir()) {
                aside(&whole).map_err(|source| GitError::InTheWay {
                    path: whole.clone(),
                    source,
                })?;
            }
            // Git knows no empty folders.
            let above = whole
                .ancestors()
                .skip(1)
                .take_while(|above| *above != self.folder);
            above
                .map(std::fs::remove_dir)
                .take_while(Result::is_ok)
                .for_each(drop);
        }
        Ok(())
    }

    /// What differs from the commit, including changes in submodules.
    fn differing(&self) -> Result<Vec<String>, GitError> {
        let status = self.tree()?.status(self)?;
        Ok(status
            .dirty
            .iter()
            .map(|path| path.display().to_string())
            .collect())
    }

    /// Whether the configuration or the environment has an identity for commits.
    pub fn knows_identity(&self) -> Result<bool, GitError> {
        let known = |whose| {
            self.start(&["var", whose])
                .map(|done| done.status.success())
        };
        Ok(known("GIT_AUTHOR_IDENT")? && known("GIT_COMMITTER_IDENT")?)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
