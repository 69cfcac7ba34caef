//! How git is started: with nothing that could make it run a program of the repository.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use gix::bstr::BString;

use super::{Git, GitError, text};
use crate::{OpenError, WorkTree};

/// Settings that go before whatever a configuration says.
const HARDENED: [&str; 9] = [
    "core.fsmonitor=false",
    // Not a folder, so nothing can lie in it.
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=dirty",
    // A partial clone fetches what it lacks, by whatever program its configuration names.
    "protocol.allow=never",
];

/// What a filter may start, and what has to be said of one that starts nothing.
const OF_A_FILTER: [(&str, &str); 4] =
    [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")];

impl Git {
    /// Runs git and gives its standard output.
    pub(super) fn run(&self, words: &[&str]) -> Result<String, GitError> {
        self.run_for_bytes(words).map(|out| text(&out))
    }

    /// The same as it came: names of files need not be UTF-8.
    pub(super) fn run_for_bytes(&self, words: &[&str]) -> Result<Vec<u8>, GitError> {
        self.succeeded(words, self.start(words)?)
    }

    /// Runs git with paths on its standard input.
    pub(super) fn run_on(&self, words: &[&str], paths: &[impl AsRef<Path>]) -> Result<Vec<u8>, GitError> {
        self.succeeded(words, self.start_on(words, paths)?)
    }

    fn succeeded(&self, words: &[&str], done: Output) -> Result<Vec<u8>, GitError> {
        if done.status.success() {
            return Ok(done.stdout);
        }
        let command = words.iter().find(|word| !word.starts_with('-')).copied().unwrap_or_default();
        Err(self.failed(command, text(&done.stderr).trim().to_owned()))
    }

    pub(super) fn failed(&self, command: &str, message: String) -> GitError {
        GitError::Failed { command: command.to_owned(), top: self.top.clone(), message }
    }

    pub(super) fn start(&self, words: &[&str]) -> Result<Output, GitError> {
        let start = |source| GitError::Start { top: self.top.clone(), source };
        self.command(words)?.output().map_err(start)
    }

    /// From a file and not through a pipe, which git might let fill up while we wait for it to read.
    pub(super) fn start_on(&self, words: &[&str], paths: &[impl AsRef<Path>]) -> Result<Output, GitError> {
        let start = |source| GitError::Start { top: self.top.clone(), source };
        let input = nul_ended(paths).map_err(start)?;
        self.command(words)?.stdin(input).output().map_err(start)
    }

    /// Settings that take every program off the filters of the repository's own configuration, as it is now.
    fn without_own_filters(&self) -> Result<Vec<(OsString, &'static str)>, GitError> {
        let tree = match WorkTree::at(&self.top) {
            Ok(tree) => tree,
            Err(error @ OpenError::Unreadable { .. }) if self.top.is_dir() => return Err(error.into()),
            // Git finds nothing there, or nothing that it would touch.
            Err(_) => return Ok(Vec::new()),
        };
        let named = |filter: &BString, key: &str| {
            let name = [b"filter.", filter.as_slice(), b".", key.as_bytes()].concat();
            OsString::from_vec(name)
        };
        let off = |filter| OF_A_FILTER.map(|(key, value)| (named(filter, key), value));
        Ok(tree.own_filters().iter().flat_map(off).collect())
    }

    /// In a process group of its own: Ctrl-C in a terminal is for the harness, which must not find a rollback cut in half.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts git")]
    pub(super) fn command(&self, words: &[&str]) -> Result<Command, GitError> {
        let settings = self.without_own_filters()?;
        let mut command = Command::new("git");
        command
            .args(HARDENED.iter().flat_map(|setting| ["-c", setting]))
            .args(words)
            .current_dir(&self.top)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            // Whatever `core.worktree` says.
            .env("GIT_WORK_TREE", &self.top)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_CONFIG_COUNT", settings.len().to_string())
            .stdin(Stdio::null())
            .process_group(0);
        for (number, (key, value)) in settings.iter().enumerate() {
            command
                .env(format!("GIT_CONFIG_KEY_{number}"), key)
                .env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        Ok(command)
    }
}

/// A file without a name, at its beginning.
fn nul_ended(paths: &[impl AsRef<Path>]) -> io::Result<File> {
    let mut all = Vec::new();
    for path in paths {
        all.extend_from_slice(path.as_ref().as_os_str().as_bytes());
        all.push(0);
    }
    let mut file = tempfile::tempfile()?;
    file.write_all(&all)?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests;
