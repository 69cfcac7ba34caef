//! The harness's own state folder, and whether an existing one can be trusted.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use code_commit_names::ours::{STATE, STATE_IN_GIT};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::io::Errno;

use crate::{RepoError, WorkTree};

/// Below the state folder: the state of roots below the top.
const OF_ROOTS: &str = "below";
/// In [`STATE_IN_GIT`]: one file for each state folder in the tree that was created here, named
/// after its inode.
const MADE_HERE: &str = "in-tree";

impl WorkTree {
    /// The folder for the lock, transactions and other state: `code-commit/` in the git directory or, if that
    /// is on another disk or mount than the tree, `.code-commit/` at the root, which ignores itself. Created
    /// if necessary.
    pub fn state_dir(&self) -> Result<PathBuf, RepoError> {
        if let Some(known) = self.known.state.get() {
            return Ok(known.clone());
        }
        let made = self.make_state_dir()?;
        Ok(self.known.state.get_or_init(|| made).clone())
    }

    fn make_state_dir(&self) -> Result<PathBuf, RepoError> {
        let state = self.state_place()?;
        if state.starts_with(self.git_dir()) {
            fs::create_dir_all(&state).map_err(io_error(&state))?;
            return Ok(state);
        }
        let inode =
            make(&state)
                .map_err(io_error(&state))?
                .ok_or_else(|| RepoError::NotMadeHere {
                    path: state.clone(),
                })?;
        let mark = self.mark(inode);
        if let Some(marks) = mark.parent().filter(|_| !mark.is_file()) {
            fs::create_dir_all(marks).map_err(io_error(marks))?;
            fs::File::create(&mark).map_err(io_error(&mark))?;
        }
        hide_from_git(&state)?;
        Ok(state)
    }

    /// Where that folder is, or will be; creates nothing.
    ///
    /// A folder in the tree is trusted only if the git directory, which no clone can fill, records that it
    /// was created here, and if git tracks nothing in it: an unfinished transaction or a list of runs could
    /// be planted.
    pub fn state_place(&self) -> Result<PathBuf, RepoError> {
        let own = self.git_dir().join(STATE_IN_GIT);
        // A container may have mounted only this folder.
        if same_disk(self.git_dir(), self.root())?
            && (!own.exists() || same_disk(&own, self.root())?)
        {
            return Ok(own);
        }
        let state = self.root().join(STATE);
        let is_ours = match fs::symlink_metadata(&state) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(io_error(&state)(error)),
            // An empty folder contains nothing that could be trusted; it is left by a start that was killed.
            Ok(found) => {
                found.is_dir()
                    && (self.mark(found.ino()).is_file()
                        || is_empty(&state).map_err(io_error(&state))?)
            }
        };
        if !is_ours || self.tracks_state()? {
            return Err(RepoError::NotMadeHere { path: state });
        }
        Ok(state)
    }

    /// The file that says that the folder with this inode was created here.
    fn mark(&self, inode: u64) -> PathBuf {
        let marks = self.git_dir().join(STATE_IN_GIT).join(MADE_HERE);
        marks.join(inode.to_string())
    }

    /// The part of the state folder for this root alone, such as its runs. Projects in different
    /// folders of one work tree share the rest. Need not exist yet.
    pub fn state_of_root(&self) -> Result<PathBuf, RepoError> {
        let known = self.known.state.get().cloned();
        let state = known.map_or_else(|| self.state_place(), Ok)?;
        let below = self
            .root()
            .strip_prefix(self.top())
            .unwrap_or(Path::new(""));
        Ok(if below.as_os_str().is_empty() {
            state
        } else {
            state.join(OF_ROOTS).join(below)
        })
    }

    fn tracks_state(&self) -> Result<bool, RepoError> {
        let index = self.index()?;
        Ok(index.iter().any(|entry| entry.path.starts_with(STATE)))
    }
}

/// `.code-commit/` at `root`, with a `.gitignore` that hides it from git; created if necessary. For
/// a folder without a repository, where nothing can tell who created it.
pub fn state_dir_in_tree(root: &Path) -> Result<PathBuf, RepoError> {
    let state = root.join(STATE);
    if make(&state).map_err(io_error(&state))?.is_none() {
        return Err(RepoError::NotMadeHere { path: state });
    }
    hide_from_git(&state)?;
    Ok(state)
}

/// Whether the state folder of `folder` may contain `name`, as a folder or a non-empty file. Opens
/// and creates nothing; returns false only if that is certain.
pub fn may_hold_state(folder: &Path, name: &str) -> bool {
    let folder = match fs::canonicalize(folder) {
        Ok(folder) => folder,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    let is_there = |path: &Path| {
        path.is_dir()
            || path
                .symlink_metadata()
                .is_ok_and(|found| found.is_file() && found.len() > 0)
    };
    if is_there(&folder.join(STATE).join(name)) {
        return true;
    }
    let git = folder
        .ancestors()
        .map(|above| above.join(".git"))
        .find(|git| git.symlink_metadata().is_ok());
    // A `.git` that is a file or a symlink points elsewhere.
    git.is_some_and(|git| {
        !git.symlink_metadata().is_ok_and(|found| found.is_dir())
            || is_there(&git.join(STATE_IN_GIT).join(name))
    })
}

/// Its inode; `None` if it is a symlink or a file, which would lead elsewhere.
fn make(state: &Path) -> io::Result<Option<u64>> {
    match fs::create_dir(state) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let found = fs::symlink_metadata(state)?;
    Ok(found.is_dir().then(|| found.ino()))
}

fn is_empty(folder: &Path) -> io::Result<bool> {
    Ok(code_commit_dir::list(folder)?.next().is_none())
}

/// Puts a `.gitignore` into a folder that ignores everything in it, including itself. An existing
/// one is kept.
pub fn hide_from_git(folder: &Path) -> Result<(), RepoError> {
    let ignore = folder.join(".gitignore");
    match fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&ignore)
    {
        // An empty one would hide nothing, and the next start would not recognize it as ours.
        Ok(mut file) => {
            io::Write::write_all(&mut file, b"*\n").inspect_err(|_| drop(fs::remove_file(&ignore)))
        }
        Err(there) if there.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(other) => Err(other),
    }
    .map_err(io_error(&ignore))
}

/// Whether files can be renamed from one to the other. It is not enough that both are on the same
/// disk: it may be mounted twice, as containers do with a `.git`.
fn same_disk(one: &Path, other: &Path) -> Result<bool, RepoError> {
    let place = |path: &Path| place(path).map_err(io_error(path));
    Ok(place(one)? == place(other)?)
}

/// The device and, if the kernel reports it (Linux 5.8), the mount.
fn place(path: &Path) -> io::Result<(u64, Option<u64>)> {
    let device = fs::metadata(path)?.dev();
    let mount = match statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID) {
        // Older kernels, and containers that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => None,
        found => Some(found?).filter(|found| found.stx_mask & StatxFlags::MNT_ID.bits() != 0),
    };
    Ok((device, mount.map(|found| found.stx_mnt_id)))
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> RepoError {
    let path = path.to_owned();
    move |source| RepoError::Io { path, source }
}

#[cfg(test)]
mod tests;
