//! Which files of the host are visible in the sandbox.

use std::path::{Path, PathBuf};

use super::{Access, caches, mounts};

/// A cache of what is visible, so that many files can be checked: computing it takes hundreds of
/// disk accesses.
pub(crate) struct Visible {
    shown: Vec<PathBuf>,
    masked: Vec<PathBuf>,
}

impl Visible {
    pub(crate) fn behind(access: &Access) -> Self {
        let own = mounts::SYSTEM.into_iter().chain(["/proc", "/dev"]).map(PathBuf::from);
        let given = [&access.tree].into_iter().chain(&access.readable).chain(&access.writable).cloned();
        let tools = mounts::tools(access).into_iter();
        let tools = tools.chain(caches::all(access).into_iter().map(|cache| cache.place));
        let shown = own.chain(mounts::etc(access)).chain(tools).chain(given).collect();
        Self { shown, masked: mounts::masked(access) }
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        let is_below = |roots: &[PathBuf]| roots.iter().any(|root| path.starts_with(root));
        !is_below(&self.masked) && is_below(&self.shown)
    }
}
