#![doc = include_str!("../README.md")]

mod adopt;
mod change;
mod durable;
mod error;
mod finish;
mod journal;
mod location;
mod lock;
mod place;
mod recover;
mod report;
mod set;
mod transaction;
mod trust;
mod undo;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_dir::Folder;

pub use adopt::{Found, OldFile, adopt, disown};
pub use code_commit_model::{Action, Changed};
pub use error::{ApplyError, RecoverError, RolledBack, UndoError};
pub use journal::{MANIFEST, TXN_FOLDER, kept_name};
pub use lock::{LOCK, Lock, LockError};
pub use recover::{Recovery, recover};
pub use report::{Applied, Warning};
pub use set::{ChangeSet, dry_run};
pub use undo::{
    Force, Part, PreImage, UNDONE, Undone, changed_anything, free_name, hashes_after,
    hashes_before, pre_images, read_applied, undo, undo_part,
};

/// Applies the whole set or nothing of it.
///
/// The old files and `manifest.json` are put into `undo`, which must be empty or must not exist.
/// When this returns, everything is on disk. After an error the tree is unchanged, except after
/// [`ApplyError::NotRolledBack`] and [`ApplyError::PartlyRolledBack`].
pub fn apply(
    lock: &Lock,
    root: &Path,
    set: ChangeSet<'_>,
    undo: &Path,
) -> Result<Applied, ApplyError> {
    seam::apply(lock, root, set, undo, &mut |_| {})
}

/// The operations of this crate with a hook before each step, so that tests can kill the process there.
#[doc(hidden)]
pub mod seam {
    use super::{
        Applied, ApplyError, Arc, ChangeSet, Folder, Force, Lock, Path, PathBuf, RecoverError,
        Recovery, UndoError, Undone,
    };
    use crate::journal::Steps;

    pub fn apply(
        lock: &Lock,
        root: &Path,
        set: ChangeSet<'_>,
        undo: &Path,
        steps: Steps<'_>,
    ) -> Result<Applied, ApplyError> {
        let root_path = absolute(root)?;
        let undo = absolute(undo)?;
        let root = Arc::new(Folder::open(&root_path).map_err(ApplyError::io("open", &root_path))?);
        set.check(&root)?;
        let site = super::transaction::Site {
            lock,
            root,
            root_path: &root_path,
            undo: &undo,
        };
        let changes = set.into_changes();
        let emptied = super::change::emptied_folders(&site.root, &changes);
        super::transaction::run(&site, &changes, (emptied, Vec::new()), steps)
    }

    pub fn recover(lock: &Lock, root: &Path, steps: Steps<'_>) -> Result<Recovery, RecoverError> {
        super::recover::recover_with(lock, root, steps)
    }

    pub fn undo(
        lock: &Lock,
        root: &Path,
        undo_folders: &[PathBuf],
        force: Force,
        steps: Steps<'_>,
    ) -> Result<Undone, UndoError> {
        super::undo::undo_with(
            lock,
            root,
            undo_folders,
            super::undo::Part::All,
            force,
            steps,
        )
    }

    fn absolute(path: &Path) -> Result<PathBuf, ApplyError> {
        std::path::absolute(path).map_err(ApplyError::io("find", path))
    }
}
