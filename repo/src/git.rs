//! The few things that only the git program can do: reset, clean, commit.
//!
//! A model may have written into the tree and a build may have run in it, so git is started with nothing that could make it run a
//! program of the repository: no hooks, no file-system monitor, no filter of the repository's own configuration, no other git in a
//! submodule, no fetch, no pager, no editor, no prompt. Of the environment it gets what it needs to find its configuration, and no
//! `GIT_*` but author and committer. The user's own configuration counts, because what it ignores must not be cleaned away; the
//! system's does not.

mod commit;
mod hold;
mod program;
mod submodules;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::{OpenError, RepoError, WorkTree};

/// What passes from the caller's environment.
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

/// Why git did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// There is no git, or it could not be started.
    #[error("cannot start git in {}", folder.display())]
    Start {
        /// The work tree, or a folder of it.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It ran and failed.
    #[error("git {command} failed in {}: {message}", folder.display())]
    Failed {
        /// What was asked: `reset`, `clean`, `commit`.
        command: String,
        /// The work tree, or a folder of it.
        folder: PathBuf,
        /// What it said.
        message: String,
    },
    /// The work tree could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Git's own files could not be read.
    #[error(transparent)]
    Look(#[from] RepoError),
    /// Another git holds the index, or was killed while it did.
    #[error("{} is there: another git is at work here, or one was killed; if none is, remove that file", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// The index could not be held or replaced.
    #[error("cannot use {}", path.display())]
    Index {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It did what it was asked, and still the tree is not as it was.
    #[error("after a reset and a clean the tree still differs: {}", paths.join(", "))]
    StillDirty {
        /// What differs, relative to the top.
        paths: Vec<String>,
    },
}

impl GitError {
    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        if let Self::Look(error) = self { error.hint() } else { "see what git status says" }
    }
}

/// The name under which a commit is made when the configuration has none.
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

/// The git program for one work tree.
#[derive(Debug, Clone)]
pub struct Git {
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl Git {
    /// For the work tree that has `folder` as its top; commits may also be looked at, and [made of paths](Self::commit_paths), from a
    /// folder below the top. Of `environment` it takes what git may have.
    pub fn new(
        folder: impl Into<PathBuf>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let passes = |name: &OsStr| PASSED.iter().any(|passed| name == *passed);
        let environment = environment.into_iter().filter(|(name, _)| passes(name)).collect();
        Self { folder: folder.into(), environment }
    }

    /// The same program for another work tree.
    #[must_use]
    pub fn at(&self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), environment: self.environment.clone() }
    }

    /// Where it works: the top of the work tree, or a folder below it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The commit that `name` stands for, in hex; none where there is no such commit.
    pub fn commit_of(&self, name: &str) -> Result<Option<String>, GitError> {
        let name = format!("{name}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
        Ok(self.asked(&words)?.map(|commit| text(&commit).trim().to_owned()))
    }

    /// Where `HEAD` points.
    pub fn head(&self) -> Result<Head, GitError> {
        let branch = self.asked(&["symbolic-ref", "--quiet", "HEAD"])?;
        Ok(branch.map_or(Head::Detached, |name| Head::Branch(text(&name).trim().to_owned())))
    }

    /// What differs from the commit that is checked out: staged, changed or untracked, relative to the top. Changes within a submodule
    /// are not looked for: git would start another git there, which would start what the submodule's configuration names.
    pub fn dirty_paths(&self) -> Result<Vec<PathBuf>, GitError> {
        let listed = self.run_for_bytes(&[
            "--no-optional-locks",
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=dirty",
        ])?;
        let paths = listed.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..));
        Ok(paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
    }

    /// The same for a person: of names that are not UTF-8 nobody can tell which they are.
    pub fn dirty(&self) -> Result<Vec<String>, GitError> {
        Ok(self.dirty_paths()?.iter().map(|path| path.display().to_string()).collect())
    }

    /// The files that differ between two commits, relative to the top.
    pub fn differing_between(&self, one: &str, other: &str) -> Result<Vec<PathBuf>, GitError> {
        let listed =
            self.run_for_bytes(&["diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other])?;
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
    }

    /// Files that git takes for unchanged without looking (`--assume-unchanged`), relative to the top: nobody can tell whether they are.
    pub fn assumed_unchanged(&self) -> Result<Vec<String>, GitError> {
        let listed = self.run(&["ls-files", "-v", "-z"])?;
        let files =
            listed.split('\0').filter(|entry| entry.starts_with(|tag: char| tag.is_ascii_lowercase()));
        Ok(files.filter_map(|entry| entry.get(2..)).map(str::to_owned).collect())
    }

    /// Files that a pattern ignores, and folders that are ignored as a whole, relative to the top.
    pub fn ignored(&self) -> Result<Vec<String>, GitError> {
        let words = ["--no-optional-locks", "status", "--porcelain=v1", "-z", "--untracked-files=all"];
        let listed = self.run(&[&words[..], &["--no-renames", "--ignored=matching"]].concat())?;
        Ok(listed.split('\0').filter_map(|entry| entry.strip_prefix("!! ")).map(str::to_owned).collect())
    }

    /// Removes what is neither tracked nor ignored, folders and nested repositories too.
    pub fn clean(&self) -> Result<(), GitError> {
        self.run(&["clean", "--quiet", "-ffd"]).map(drop)
    }

    /// Puts everything that git knows of back as it was when `head` was at `commit`, and looks whether it is.
    pub fn roll_back(&self, head: &Head, commit: &str) -> Result<(), GitError> {
        if self.head()? != *head {
            match head {
                Head::Branch(name) => self.run(&["symbolic-ref", "HEAD", name])?,
                Head::Detached => self.run(&["update-ref", "--no-deref", "HEAD", commit])?,
            };
        }
        self.reset_hard(commit)?;
        self.clean()?;
        if self.differing()?.is_empty() {
            return Ok(());
        }
        self.roll_back_submodules()?;
        let paths = self.differing()?;
        if paths.is_empty() { Ok(()) } else { Err(GitError::StillDirty { paths }) }
    }

    /// What differs from the commit, within submodules too.
    fn differing(&self) -> Result<Vec<String>, GitError> {
        let mut paths = self.dirty()?;
        paths.extend(WorkTree::at(&self.folder)?.dirty()?);
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Whether configuration or environment say in whose name a commit is made.
    pub fn knows_identity(&self) -> Result<bool, GitError> {
        let known = |whose| self.start(&["var", whose]).map(|done| done.status.success());
        Ok(known("GIT_AUTHOR_IDENT")? && known("GIT_COMMITTER_IDENT")?)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
