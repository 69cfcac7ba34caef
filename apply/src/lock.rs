//! One writer at a time: an advisory lock that the system releases when its holder ends.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use code_commit_dir::Folder;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Name of the lock file, in the state folder. Empty unless a holder is active or was killed.
pub const LOCK: &str = "lock";

/// The right to change the tree. Released when dropped, or when the process ends for any reason.
#[derive(Debug)]
pub struct Lock {
    file: File,
    pub(crate) state: Folder,
    pub(crate) path: PathBuf,
    was_abandoned: bool,
}

/// Why the lock could not be acquired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another run holds it.
    #[error("another run is in progress here: `{what}`, process {pid}")]
    Held {
        /// The process ID; 0 if the holder has not written it yet.
        pid: u32,
        /// Its command line.
        what: String,
        /// When it acquired the lock.
        since: SystemTime,
    },
    /// The state folder cannot be created or used.
    #[error("cannot use {}", path.display())]
    Io {
        /// Which path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A symlink, or something else that points elsewhere; it may have come with an archive.
    #[error("{} is a symlink, or something else that no run created", path.display())]
    NotMadeHere {
        /// The state folder, or the lock file in it.
        path: PathBuf,
    },
}

impl LockError {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Held { .. } => "wait until it has ended, or end that process",
            Self::Io { .. } => "make sure that you own the folder and that the disk has space",
            Self::NotMadeHere { .. } => "inspect it and move it away",
        }
    }
}

/// What the holder writes into the lock file, for others to show.
#[derive(Serialize, Deserialize)]
struct Holder {
    pid: u32,
    what: String,
}

impl Lock {
    /// Acquires the lock in `state_dir`, which is created if necessary. `what` describes the run to
    /// others.
    ///
    /// Does not wait. A state folder in the work tree (`.code-commit`) gets its own `.gitignore`,
    /// so that git never sees it. Neither the folder nor the lock file may be a symlink.
    pub fn acquire(state_dir: &Path, what: &str) -> Result<Lock, LockError> {
        let failed = |path: &Path, source| LockError::Io {
            path: path.to_owned(),
            source,
        };
        let not_made_here = |path: &Path| LockError::NotMadeHere {
            path: path.to_owned(),
        };
        let state = open_state(state_dir).map_err(|source| failed(state_dir, source))?;
        let state = state.ok_or_else(|| not_made_here(state_dir))?;
        if is_in_tree(state_dir) {
            let path = state_dir.join(".gitignore");
            hide(&path).map_err(|source| failed(&path, source))?;
        }
        let path = state_dir.join(LOCK);
        let file = open(&state).map_err(|source| failed(&path, source))?;
        let mut file = file.ok_or_else(|| not_made_here(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(&mut file)),
            Err(TryLockError::Error(source)) => return Err(failed(&path, source)),
        }
        let was_abandoned = file.metadata().is_ok_and(|signed| signed.len() > 0);
        sign(&mut file, what).map_err(|source| failed(&path, source))?;
        Ok(Lock {
            file,
            state,
            path: state_dir.to_owned(),
            was_abandoned,
        })
    }

    /// The state folder that it is in.
    pub fn state(&self) -> &Path {
        &self.path
    }

    /// Whether the last holder was killed: its entry is still there, and perhaps some of its
    /// processes.
    pub fn was_abandoned(&self) -> bool {
        self.was_abandoned
    }

    /// Whether the state folder is in the work tree, so that a clone could have brought it along.
    pub(crate) fn is_in_tree(&self) -> bool {
        is_in_tree(&self.path)
    }
}

impl Drop for Lock {
    /// Removes the holder's entry. Closing the file is not enough if another thread is starting a
    /// process, which holds a copy of the descriptor until its `exec`.
    fn drop(&mut self) {
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}

fn is_in_tree(state_dir: &Path) -> bool {
    state_dir.file_name() == Some(OsStr::new(code_commit_names::ours::STATE))
}

/// Creates the folder if necessary; `None` if it is a symlink.
fn open_state(path: &Path) -> io::Result<Option<Folder>> {
    std::fs::create_dir_all(path)?;
    let state = Folder::open(path)?;
    let there = path.symlink_metadata()?;
    Ok(Some(state).filter(|state| state.id() == (there.dev(), there.ino())))
}

/// Creates the lock file if necessary; `None` if it is not a regular file with exactly one name.
/// Writing the entry truncates the file, and a planted link would let that happen to any other
/// file.
fn open(state: &Folder) -> io::Result<Option<File>> {
    let own = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(
        state,
        LOCK,
        OFlags::RDWR | OFlags::CREATE | own,
        Mode::from_raw_mode(0o666),
    );
    let file = match opened {
        // A symlink, or a socket.
        Err(Errno::LOOP | Errno::NXIO) => return Ok(None),
        opened => File::from(opened?),
    };
    let found = file.metadata()?;
    Ok(Some(file).filter(|_| found.is_file() && found.nlink() == 1))
}

fn hide(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(b"*\n"),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn sign(file: &mut File, what: &str) -> io::Result<()> {
    let holder = Holder {
        pid: std::process::id(),
        what: what.to_owned(),
    };
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(serde_json::to_string(&holder)?.as_bytes())
}

fn held(file: &mut File) -> LockError {
    let mut text = String::new();
    // The holder may be about to write its entry.
    let _ = file.read_to_string(&mut text);
    let unsigned = || Holder {
        pid: 0,
        what: "a run that has just begun".to_owned(),
    };
    let Holder { pid, what } = serde_json::from_str(&text).unwrap_or_else(|_| unsigned());
    let since = file
        .metadata()
        .and_then(|metadata| metadata.modified())
        .unwrap_or(SystemTime::UNIX_EPOCH);
    LockError::Held { pid, what, since }
}
