//! A repository for one test.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests make their repositories with git and plain writes"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Git, GitError, WorkTree};

pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    /// A repository without a commit.
    pub(crate) fn new() -> Self {
        Self::initialised(&[])
    }

    /// A repository without a commit, made with these flags of `git init`.
    pub(crate) fn initialised(flags: &[&str]) -> Self {
        let scratch = Self(tempfile::tempdir().unwrap());
        scratch.git(&[&["init", "-q", "-b", "main"], flags, &["."]].concat());
        scratch
    }

    /// A repository with these files in its first commit.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let scratch = Self::new();
        for (path, text) in files {
            scratch.write(path, text);
        }
        scratch.commit();
        scratch
    }

    /// As it is now.
    pub(crate) fn tree(&self) -> WorkTree {
        WorkTree::at(self.path()).unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs git and returns its output.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let done = Command::new("git")
            .args(["-c", "user.name=T", "-c", "user.email=t@example.invalid"])
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).unwrap()
    }

    /// Runs git with the words of a line.
    pub(crate) fn git_line(&self, line: &str) -> String {
        self.git(&line.split(' ').collect::<Vec<_>>())
    }

    /// Adds the repository at this path, without a commit.
    pub(crate) fn add_submodule(&self, library: &Self, path: &str) {
        let from = library.path().to_str().unwrap();
        let add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
        self.git(&[&add[..], &[from, path]].concat());
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Commits everything.
    pub(crate) fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "c", "--allow-empty"]);
    }
}

impl Git {
    /// What differs, for comparison.
    pub(crate) fn dirty(&self) -> Result<Vec<String>, GitError> {
        Ok(names(&self.dirty_paths()?))
    }
}

impl WorkTree {
    /// What is not committed, for comparison.
    pub(crate) fn dirty(&self) -> Result<Vec<String>, GitError> {
        Ok(names(&self.status(&git(self.root()))?.dirty))
    }
}

/// A git with only `PATH` from the user's environment.
pub(crate) fn git(folder: &Path) -> Git {
    let path = std::env::var_os("PATH").unwrap();
    Git::new(folder, "git", [("PATH".into(), path)])
}

fn names(paths: &[PathBuf]) -> Vec<String> {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect()
}
