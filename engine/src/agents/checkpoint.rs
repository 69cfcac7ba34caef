//! Commits of what agents changed, without what a person had not committed.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use logging::sha256_hex;
use repo::{Git, GitError, WorkTree};

use crate::Record;
use crate::agents::fault::fault;
use crate::agents::role::{IDENTITY, Repository};
use crate::agents::{AgentFact, AgentFault, AgentShop, Checkpoint, Uncommitted};

/// In bytes. One argument may have 128 KiB.
const LONGEST_MESSAGE: usize = 64 << 10;

impl AgentShop<'_> {
    pub(super) fn survey(&self, name: &str) -> Result<AgentFact, AgentFault> {
        let git = &self.repository(name)?.git;
        let head = git.commit_of("HEAD").map_err(AgentFault::Commit)?;
        let mut uncommitted = Vec::new();
        for path in dirty(git).map_err(AgentFault::Commit)? {
            let place = git.top().join(&path);
            let sha256 = fingerprint(&place).map_err(fault("read", &place))?;
            uncommitted.push(Uncommitted { path, sha256 });
        }
        Ok(AgentFact::Surveyed { repository: name.to_owned(), head, uncommitted })
    }

    pub(super) fn checkpoint(
        &self,
        name: &str,
        message: &str,
        spare: &[Uncommitted],
        record: &Record<'_, AgentFact>,
    ) -> Result<AgentFact, AgentFault> {
        let message = short(&record.folder().redactor().redact(message));
        let checkpoint = match commit(self.repository(name)?, &message, spare) {
            Ok(Some(commit)) => Checkpoint::Made { commit },
            Ok(None) => Checkpoint::Nothing,
            Err(error) => Checkpoint::Failed { error: error.to_string() },
        };
        Ok(AgentFact::Checkpointed { repository: name.to_owned(), message, checkpoint })
    }
}

/// The commit that is checked out, if it has this message and there is nothing more to commit: a run that was killed between a
/// commit and its fact finds it made.
pub(super) fn made(repository: &Repository, message: &str) -> Result<Option<String>, GitError> {
    let git = &repository.git;
    let head = git.commit_of("HEAD")?;
    let same = git.commit_of(&format!("HEAD^{{/^{message}[[:space:]]}}"))?;
    if head.is_none() || head != same {
        return Ok(None);
    }
    let is_left = dirty(git)?.iter().any(|path| !is_excluded(repository, path));
    Ok(head.filter(|_| !is_left))
}

/// Commits everything but what git cannot add; gives the commit and the folders that were left out.
pub(super) fn commit_all(repository: &Repository, message: &str) -> Result<(String, Vec<String>), GitError> {
    let commit = |more: &[String]| {
        let exclude: Vec<&str> = repository.exclude.iter().chain(more).map(String::as_str).collect();
        repository.git.commit_all(&exclude, message, Some(IDENTITY))
    };
    match commit(&[]) {
        Ok(made) => Ok((made, Vec::new())),
        Err(error) => {
            let left_out = without_commits(repository);
            if left_out.is_empty() { Err(error) } else { Ok((commit(&left_out)?, left_out)) }
        }
    }
}

/// Folders with a repository of their own that has no commit: git can add neither them nor what is in them.
fn without_commits(repository: &Repository) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![String::new()];
    while let Some(prefix) = open.pop() {
        let entries = fs::read_dir(repository.git.top().join(&prefix)).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        for name in folders.filter_map(|entry| entry.file_name().into_string().ok()) {
            let folder = format!("{prefix}{name}");
            let place = repository.git.top().join(&folder);
            if name == ".git" || is_excluded(repository, &folder) {
                continue;
            }
            match place.join(".git").symlink_metadata() {
                Err(_) => open.push(folder + "/"),
                Ok(_) if matches!(repository.git.at(&place).commit_of("HEAD"), Ok(Some(_))) => {}
                Ok(_) => found.push(folder),
            }
        }
    }
    found
}

fn is_excluded(repository: &Repository, path: &str) -> bool {
    repository.exclude.iter().any(|folder| Path::new(path).starts_with(folder))
}

/// A message that fits on a command line: an agent may write as much as it likes, the whole of it is in the record.
fn short(message: &str) -> String {
    let (head, rest) = message.split_at(message.floor_char_boundary(LONGEST_MESSAGE));
    let more = if rest.is_empty() { "" } else { "…" };
    format!("{head}{more}").replace('\0', "\u{fffd}")
}

fn commit(repository: &Repository, message: &str, spare: &[Uncommitted]) -> Result<Option<String>, GitError> {
    let git = &repository.git;
    let is_spared = |path: &String| {
        let known = spare.iter().find(|one| one.path == *path);
        known.is_some_and(|one| fingerprint(&git.top().join(path)).is_ok_and(|now| now == one.sha256))
    };
    let mut paths = dirty(git)?;
    paths.retain(|path| !is_excluded(repository, path) && !is_spared(path));
    if paths.is_empty() {
        return Ok(None);
    }
    git.commit_paths(&paths, message, Some(IDENTITY)).map(Some)
}

/// What is not committed below the folder of `git`, relative to it; that folder need not be the top of its work tree.
fn dirty(git: &Git) -> Result<Vec<String>, GitError> {
    let prefix = WorkTree::at(git.top()).ok().and_then(|tree| {
        let below = tree.root().strip_prefix(tree.top()).ok()?.to_str()?.to_owned();
        Some(if below.is_empty() { below } else { below + "/" })
    });
    let prefix = prefix.unwrap_or_default();
    let mut paths: Vec<String> =
        git.dirty()?.into_iter().filter_map(|path| Some(path.strip_prefix(&prefix)?.to_owned())).collect();
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

/// What a file holds; `None` when it is not there.
fn fingerprint(path: &Path) -> io::Result<Option<String>> {
    let data = match fs::symlink_metadata(path) {
        Ok(data) => data,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let bytes = if data.is_symlink() {
        fs::read_link(path)?.as_os_str().as_bytes().to_vec()
    } else if data.is_file() {
        fs::read(path)?
    } else {
        // A repository within the repository.
        Vec::new()
    };
    Ok(Some(sha256_hex(&bytes)))
}
