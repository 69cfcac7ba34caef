//! Which files of the host can be seen inside.

use std::path::{Path, PathBuf};

use super::{Access, mounts};

/// What was found to be seen, so that many files can be asked about: to find it takes hundreds of looks at the disk.
pub(crate) struct Visible {
    shown: Vec<PathBuf>,
    masked: Vec<PathBuf>,
}

impl Visible {
    /// As things are now.
    pub(crate) fn behind(access: &Access) -> Self {
        let own = mounts::SYSTEM.into_iter().chain(["/proc", "/dev"]).map(PathBuf::from);
        let given = [&access.tree].into_iter().chain(&access.readable).chain(&access.writable).cloned();
        let shown = own.chain(mounts::etc(access)).chain(mounts::tools(access)).chain(given).collect();
        Self { shown, masked: mounts::masked(access) }
    }

    /// Whether this one can be seen.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let is_below = |roots: &[PathBuf]| roots.iter().any(|root| path.starts_with(root));
        !is_below(&self.masked) && is_below(&self.shown)
    }
}
