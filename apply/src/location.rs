//! Where the transaction in progress works: two symlinks in the state folder. The journal names no path,
//! since it becomes the manifest of the pre-images, which can be carried to another machine. A link is
//! synced with its folder. Where there are no symlinks, on vfat, they are files.

use std::ffi::{CString, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use code_commit_dir::Folder;

const ROOT: &str = "txn-root";
const UNDO: &str = "txn-undo";
/// The kernel accepts no longer path.
const MOST_BYTES: u64 = 4096;

/// The places that a transaction needs if it is interrupted.
#[derive(Debug, Default)]
pub(crate) struct Location {
    /// The root of the tree; `None` if unknown.
    pub(crate) root: Option<PathBuf>,
    /// Where the pre-images are moved after the commit.
    pub(crate) undo: Option<PathBuf>,
}

impl Location {
    /// Notes both; the caller syncs the folder.
    pub(crate) fn note(state: &Folder, root: &Path, undo: &Path) -> io::Result<()> {
        Self::forget(state);
        for (name, path) in [(ROOT, root), (UNDO, undo)] {
            let path = path.as_os_str().as_bytes();
            if state.make_link(name, &CString::new(path)?).is_err() {
                let mut file = state.create_file(name, 0o600)?;
                file.write_all(path)?;
                file.sync_all()?;
            }
        }
        Ok(())
    }

    pub(crate) fn read(state: &Folder) -> Self {
        let read = |name| {
            let read_file = || {
                let mut path = Vec::new();
                state
                    .open_file(name)
                    .ok()?
                    .take(MOST_BYTES)
                    .read_to_end(&mut path)
                    .ok()
                    .map(|_| path)
            };
            let path = state
                .read_link(name)
                .map_or_else(|_| read_file(), |path| Some(path.into_bytes()))?;
            Some(PathBuf::from(OsString::from_vec(path)))
        };
        Self {
            root: read(ROOT),
            undo: read(UNDO),
        }
    }

    /// Removes the note of a transaction that is over. What stays does no harm: without a transaction nobody
    /// reads it, and the next one fails to replace it.
    pub(crate) fn forget(state: &Folder) {
        for name in [ROOT, UNDO] {
            let _ = state.remove_file(name);
        }
    }
}
