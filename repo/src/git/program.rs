//! Starts git such that it cannot run a program of the repository.

use std::ffi::OsString;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bstr::BString;
use code_commit_dir::OwnChild;

use super::{Git, GitError, text};
use crate::{OpenError, WorkTree};

/// Settings that override every configuration.
const HARDENED: [&str; 10] = [
    "core.fsmonitor=false",
    // Not a folder, so it contains nothing.
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=true",
    "gc.auto=0",
    "maintenance.auto=false",
    // Asks a person whether the line ends that git would check out are meant; a run that passed must be committed.
    "core.safecrlf=false",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=dirty",
    // A partial clone would fetch missing objects, with any program that its configuration names.
    "protocol.allow=never",
];

/// The settings of a filter that name programs.
const OF_A_FILTER: [&str; 3] = ["clean", "smudge", "process"];

/// Appended to git's message if it could not store a file without a filter that it may not run.
const OWN_FILTER: &str = "; filters that the repository's own configuration names are not run: \
    commit this yourself, or name the filter in your own configuration (git config --global) instead";
const SYSTEM_FILTER: &str = "; filters that only the system's configuration names are not run: \
    commit this yourself, or name the filter in your own configuration (git config --global)";

impl Git {
    /// Runs git and returns its standard output.
    pub(super) fn run(&self, words: &[&str]) -> Result<String, GitError> {
        self.run_for_bytes(words).map(|out| text(&out))
    }

    /// Runs git and returns its standard output as bytes: file names need not be UTF-8.
    pub(crate) fn run_for_bytes(&self, words: &[&str]) -> Result<Vec<u8>, GitError> {
        self.succeeded(words, self.start(words)?)
    }

    /// Runs git with paths on its standard input.
    pub(super) fn run_on(
        &self,
        words: &[&str],
        paths: &[impl AsRef<Path>],
    ) -> Result<Vec<u8>, GitError> {
        self.succeeded(words, self.start_on(words, paths)?)
    }

    /// Runs a query that git answers on standard output, or with exit code 1 for no.
    pub(super) fn asked(&self, words: &[&str]) -> Result<Option<Vec<u8>>, GitError> {
        self.answered(words, self.start(words)?)
    }

    pub(super) fn asked_of(
        &self,
        words: &[&str],
        paths: &[impl AsRef<Path>],
    ) -> Result<Option<Vec<u8>>, GitError> {
        self.answered(words, self.start_on(words, paths)?)
    }

    fn answered(&self, words: &[&str], done: Output) -> Result<Option<Vec<u8>>, GitError> {
        if done.status.code() == Some(1) {
            Ok(None)
        } else {
            self.succeeded(words, done).map(Some)
        }
    }

    fn succeeded(&self, words: &[&str], done: Output) -> Result<Vec<u8>, GitError> {
        if done.status.success() {
            return Ok(done.stdout);
        }
        Err(self.refused(words, &done))
    }

    /// Git's message when it failed.
    pub(super) fn refused(&self, words: &[&str], done: &Output) -> GitError {
        let mut said = text(&done.stderr).trim().to_owned();
        if let Ok(tree) = self.tree() {
            let hint = self.hint_for(&said, &tree);
            said.push_str(hint);
        }
        self.failed(command_of(words), said)
    }

    /// The hint if git would have had to store a file without a filter that we disabled.
    fn hint_for(&self, said: &str, tree: &WorkTree) -> &'static str {
        let is_missed =
            |filter: &BString| said.contains(&format!("clean filter '{filter}' failed"));
        if tree.own_filters().iter().any(is_missed) {
            OWN_FILTER
        } else if self.system_filters().iter().any(is_missed) {
            SYSTEM_FILTER
        } else {
            ""
        }
    }

    pub(super) fn failed(&self, command: &str, message: String) -> GitError {
        GitError::Failed {
            command: command.to_owned(),
            folder: self.folder.clone(),
            message,
        }
    }

    pub(super) fn start(&self, words: &[&str]) -> Result<Output, GitError> {
        output(&mut self.command(words)?).map_err(|source| self.no_start(source))
    }

    pub(crate) fn no_start(&self, source: io::Error) -> GitError {
        GitError::Start {
            folder: self.folder.clone(),
            source,
        }
    }

    pub(super) fn start_on(
        &self,
        words: &[&str],
        paths: &[impl AsRef<Path>],
    ) -> Result<Output, GitError> {
        let bytes = |path: &dyn AsRef<Path>| path.as_ref().as_os_str().as_bytes().to_vec();
        let paths = paths
            .iter()
            .flat_map(|path| [bytes(path), vec![0]].concat());
        self.fed(words, &paths.collect::<Vec<u8>>())
    }

    /// Passes the input in an unnamed file: with a pipe, git could block while we wait for it to read.
    fn fed(&self, words: &[&str], input: &[u8]) -> Result<Output, GitError> {
        let file = || {
            let mut file = tempfile::tempfile()?;
            file.write_all(input)?;
            file.rewind()?;
            Ok(file)
        };
        let input = file().map_err(|source| self.no_start(source))?;
        output(self.command(words)?.stdin(input)).map_err(|source| self.no_start(source))
    }

    /// The lengths of objects, of which each line names one. `None` for one that is not there.
    pub(crate) fn lengths(&self, ids: &str) -> Result<Vec<Option<u64>>, GitError> {
        let words = ["cat-file", "--batch-check=%(objectsize)"];
        let listed = self.succeeded(&words, self.fed(&words, ids.as_bytes())?)?;
        Ok(text(&listed).lines().map(|len| len.parse().ok()).collect())
    }

    /// The work tree, of the repository that every git is pinned to and of no other.
    ///
    /// Opened anew each time, on purpose: git reads its configuration at every start, so the filters to switch off are
    /// those that it names now, not those that it named when the run began.
    pub fn tree(&self) -> Result<WorkTree, GitError> {
        let tree = WorkTree::at(&self.folder)?;
        if tree.git_dir() == self.repository {
            Ok(tree)
        } else {
            Err(OpenError::NotARepository {
                folder: self.folder.clone(),
            }
            .into())
        }
    }

    /// Finds the repository of the folder, ignoring its configuration. If there is none, it is the one that
    /// the folder itself may get.
    pub(super) fn pinned(
        folder: PathBuf,
        program: PathBuf,
        environment: Vec<(OsString, OsString)>,
    ) -> Self {
        let found = gix_discover::upwards(&folder).ok();
        let (git_dir, top) = found.map_or_else(
            || (folder.join(".git"), None),
            |(found, _)| found.into_repository_and_work_tree_directories(),
        );
        let top = canonical(top.unwrap_or_else(|| folder.clone()));
        Self {
            repository: canonical(git_dir),
            top,
            folder,
            program,
            environment,
        }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Result<Command, GitError> {
        let settings = self.without_filters(&self.tree()?, words);
        let mut command = self.bare();
        command
            .args(HARDENED.iter().flat_map(|setting| ["-c", setting]))
            .args(words)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (number, (key, value)) in settings.iter().enumerate() {
            command
                .env(format!("GIT_CONFIG_KEY_{number}"), key)
                .env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        Ok(command)
    }

    /// Makes a repository in the folder, whichever is around it. No template: it may have hooks.
    pub(crate) fn make(&self, git_dir: &Path) -> Result<(), GitError> {
        let words = ["init", "--quiet", "--template="];
        let mut command = self.bare();
        command.args(words).env("GIT_DIR", git_dir);
        let done = output(command.env("GIT_WORK_TREE", &self.folder))
            .map_err(|source| self.no_start(source))?;
        self.succeeded(&words, done).map(drop)
    }

    /// In its own process group: Ctrl-C must not interrupt a rollback; the harness handles it.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that starts git"
    )]
    pub(crate) fn bare(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_DIR", &self.repository)
            // Overrides `core.worktree`.
            .env("GIT_WORK_TREE", &self.top)
            // For what git itself starts without the two above.
            .env(
                "GIT_CEILING_DIRECTORIES",
                self.top.parent().unwrap_or(&self.top),
            )
            .stdin(Stdio::null())
            .process_group(0);
        command
    }

    /// Settings that disable every program in the filters of the repository's own configuration. Git then
    /// refuses to store a file that goes through one, which may be there to keep a secret out of the history,
    /// or through one of the system's, which it does not know.
    fn without_filters(&self, tree: &WorkTree, words: &[&str]) -> Vec<(OsString, &'static str)> {
        let named = |filter: &BString, key: &str| {
            let name = [b"filter.", filter.as_slice(), b".", key.as_bytes()].concat();
            OsString::from_vec(name)
        };
        let stores = matches!(command_of(words), "add" | "commit");
        let is_required = if stores { "true" } else { "false" };
        let off = |filter: &BString| {
            let programs = OF_A_FILTER.map(|key| (named(filter, key), ""));
            programs
                .into_iter()
                .chain([(named(filter, "required"), is_required)])
                .collect::<Vec<_>>()
        };
        let of_system = if stores {
            self.system_filters()
        } else {
            Vec::new()
        };
        tree.own_filters()
            .iter()
            .chain(&of_system)
            .flat_map(off)
            .collect()
    }

    /// The filters that only the system's configuration names, not the user's.
    fn system_filters(&self) -> Vec<BString> {
        let mut names = self.filters_in("--system");
        if !names.is_empty() {
            let of_user = self.filters_in("--global");
            names.retain(|name| !of_user.contains(name));
        }
        names
    }

    /// Empty if there is no such configuration.
    fn filters_in(&self, which: &str) -> Vec<BString> {
        let asked = [
            "config",
            which,
            "--null",
            "--name-only",
            "--get-regexp",
            r"^filter\.",
        ];
        let listed = output(self.bare().args(asked))
            .map(|done| done.stdout)
            .unwrap_or_default();
        listed
            .split(|byte| *byte == 0)
            .filter_map(filter_of)
            .collect()
    }
}

fn output(git: &mut Command) -> io::Result<Output> {
    OwnChild::start(git.stdout(Stdio::piped()).stderr(Stdio::piped()))?.wait()
}

fn canonical(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

/// `x.y` of `filter.x.y.clean`.
fn filter_of(key: &[u8]) -> Option<BString> {
    let name = key.strip_prefix(b"filter.")?;
    let end = name.iter().rposition(|byte| *byte == b'.')?;
    name.get(..end).map(BString::from)
}

/// `commit` of `-c user.name=x --literal-pathspecs commit -m y`.
fn command_of<'w>(words: &[&'w str]) -> &'w str {
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if word == "-c" {
            words.next();
        } else if !word.starts_with('-') {
            return word;
        }
    }
    ""
}

#[cfg(test)]
mod tests;
