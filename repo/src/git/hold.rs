//! The index, locked by us during a rollback.
//!
//! Git's index lock is an empty or half-written file that does not name its owner: one left by a killed git
//! looks like one held by the user's git, which may be waiting for an editor. So a rollback takes that lock
//! itself, with our own text in it, and lets git work on a copy of the index, whose lock nobody else knows.
//! What a killed rollback leaves is then certainly ours, and dead, because only the holder of the harness's
//! lock on the tree rolls back. A lock without our text is waited for, and never removed.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

use code_commit_dir::OwnChild;

use super::{Git, GitError};

/// The content of a lock of ours, followed by the process ID of the git that works for it.
const WORDS: &str =
    "code-commit is rolling back; what it leaves here is removed when it is next started\n";
/// How the names of what we put beside an index begin.
const OURS: &str = "index.code-commit";
/// How often we check again whether a foreign lock, or a git of ours that outlived us, is gone.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

impl Git {
    /// Resets the index and the current branch to `commit`. The caller must hold the harness's lock on the
    /// tree, because leftovers of a killed rollback in place of the index are removed. A foreign lock is
    /// waited for and never removed.
    pub(super) fn reset(&self, commit: &str) -> Result<(), GitError> {
        // A commit ID cannot be mistaken for a flag. `--end-of-options` would ensure that, too, but
        // git 2.39 rejects it here.
        let none = || self.failed("reset", format!("there is no commit `{commit}`"));
        let id = self.commit_of(commit)?.ok_or_else(none)?;
        self.work_held(&["reset", "--quiet", "--mixed", &id])
    }

    /// Writes the tracked files that are missing. Replaces none: that needs `--force`. So it fails if somebody
    /// has created one meanwhile.
    pub(super) fn check_out(&self) -> Result<(), GitError> {
        self.work_held(&["checkout-index", "--all", "--index"])
    }

    fn work_held(&self, words: &[&str]) -> Result<(), GitError> {
        let held = Held::take(self.index()?)?;
        let done = self.work_on(&held, words)?;
        held.replace()?;
        if done.status.success() {
            Ok(())
        } else {
            Err(self.refused(words, &done))
        }
    }

    /// Lets git work on the copy, and records its process ID.
    fn work_on(&self, held: &Held, words: &[&str]) -> Result<Output, GitError> {
        let mut git = self.command(words)?;
        git.env("GIT_INDEX_FILE", held.copy())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let child = OwnChild::start(&mut git).map_err(|source| self.no_start(source))?;
        // Without the record, nobody waits for a git that outlives us, but its work is repeated
        // anyway.
        let _ = held.note(child.id());
        child.wait().map_err(|source| self.no_start(source))
    }

    /// The lock that another git process holds on the index, if it is still there after a few
    /// seconds.
    pub fn index_lock(&self) -> Result<Option<PathBuf>, GitError> {
        Ok(is_locked(&self.index()?))
    }

    fn index(&self) -> Result<PathBuf, GitError> {
        let index = self.run(&["rev-parse", "--path-format=absolute", "--git-path", "index"])?;
        Ok(PathBuf::from(index.trim_end_matches('\n')))
    }
}

/// `index.lock`, held.
#[derive(Debug)]
struct Held {
    index: PathBuf,
    lock: PathBuf,
    copy: PathBuf,
}

impl Held {
    /// Takes the lock of this index. Removes a lock left by a killed rollback.
    fn take(index: PathBuf) -> Result<Self, GitError> {
        let lock = beside(&index, ".lock");
        let failed = |source| GitError::Index {
            path: lock.clone(),
            source,
        };
        // The lock file appears with its content: an empty one would look like another git's.
        let mut words = tempfile::Builder::new()
            .prefix(OURS)
            .tempfile_in(index.parent().unwrap_or(Path::new(".")))
            .map_err(failed)?;
        words.write_all(WORDS.as_bytes()).map_err(failed)?;
        for look in 0.. {
            match words.persist_noclobber(&lock) {
                Ok(_) => {
                    // Only now is it ours; from here on it is always removed again.
                    let held = Self {
                        lock: lock.clone(),
                        copy: beside(&index, ".code-commit"),
                        index,
                    };
                    held.copy_index().map_err(failed)?;
                    return Ok(held);
                }
                Err(refused) if refused.error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(refused.error));
                }
                Err(refused) => words = refused.file,
            }
            if is_left_behind(&lock) {
                remove(&lock).map_err(failed)?;
            } else if look < LOOKS {
                thread::sleep(BETWEEN_LOOKS);
            } else {
                break;
            }
        }
        Err(GitError::Locked { path: lock })
    }

    fn copy(&self) -> &Path {
        &self.copy
    }

    /// Records which git works on it, replacing the previous one.
    fn note(&self, pid: u32) -> io::Result<()> {
        let mut lock = OpenOptions::new().append(true).open(&self.lock)?;
        lock.set_len(WORDS.len() as u64)?;
        lock.write_all(pid.to_string().as_bytes())
    }

    /// Replaces the index with the copy.
    fn replace(self) -> Result<(), GitError> {
        fs::rename(&self.copy, &self.index).map_err(|source| GitError::Index {
            path: self.index.clone(),
            source,
        })
    }

    /// With its time: git reads files that are no older than the index, whatever their size and times
    /// say (gitformat-index(5), "racily clean").
    fn copy_index(&self) -> io::Result<()> {
        remove(&beside(&self.copy, ".lock"))?;
        match fs::copy(&self.index, &self.copy) {
            Err(none) if none.kind() == io::ErrorKind::NotFound => return remove(&self.copy),
            copied => copied?,
        };
        let copy = OpenOptions::new().write(true).open(&self.copy)?;
        copy.set_modified(fs::metadata(&self.index)?.modified()?)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // What cannot be removed now is removed when the lock is taken again.
        let _ = remove(&beside(&self.copy, ".lock")).and_then(|()| remove(&self.copy));
        let _ = remove(&self.lock);
    }
}

/// Removes what a killed rollback has left beside the index in this folder. The caller holds the harness's lock.
pub fn sweep_index(folder: &Path) {
    let lock = folder.join("index.lock");
    if is_left_behind(&lock) {
        let _ = remove(&lock);
    }
    // Otherwise a git of ours may still work on the copy.
    if fs::symlink_metadata(&lock).is_err() {
        let entries = code_commit_dir::list(folder)
            .into_iter()
            .flatten()
            .flatten();
        let is_ours = |name: &OsString| name.as_encoded_bytes().starts_with(OURS.as_bytes());
        entries
            .filter(|entry| is_ours(&entry.file_name()))
            .for_each(|entry| drop(remove(&entry.path())));
    }
}

/// Whether a killed rollback left it and its git, which may outlive the rollback, is gone too.
fn is_left_behind(lock: &Path) -> bool {
    let Ok(text) = fs::read_to_string(lock) else {
        return false;
    };
    let Some(pid) = text.strip_prefix(WORDS) else {
        return false;
    };
    // A zombie keeps its name until its parent has read its exit status, which may never happen.
    let is_git_at_work = |stat: String| {
        stat.split_once(" (git) ")
            .is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
    };
    pid.is_empty() || !fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(is_git_at_work)
}

/// The lock of this index if another process still holds it after a while.
fn is_locked(index: &Path) -> Option<PathBuf> {
    let lock = beside(index, ".lock");
    for _ in 0..LOOKS {
        if fs::symlink_metadata(&lock).is_err() {
            return None;
        }
        // Only the next rollback will remove it.
        if is_left_behind(&lock) {
            break;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
    Some(lock)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
