//! The files that git tracks.

use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_commit_repo::Committed;

/// The files that git tracks, sorted by the bytes of their paths: no rule makes one ignored. Whatever replaces one
/// counts, too.
#[derive(Debug, Clone, Default)]
pub(crate) enum Tracked {
    #[default]
    None,
    Index(Arc<Committed>),
    Listed(Vec<PathBuf>),
}

impl Tracked {
    /// These paths, in any order.
    pub(crate) fn listed(mut paths: Vec<PathBuf>) -> Self {
        paths.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        Self::Listed(paths)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Index(index) => index.len(),
            Self::Listed(paths) => paths.len(),
        }
    }

    fn path(&self, at: usize) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Index(index) => index.path(at),
            Self::Listed(paths) => paths
                .get(at)
                .map_or(&[], |path| path.as_os_str().as_bytes()),
        }
    }

    /// How many of a range come before those for which this holds no more.
    fn partition(&self, range: &Range<usize>, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.path(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The number of the file at this path, if it is in a range.
    pub(crate) fn find(&self, range: &Range<usize>, path: &Path) -> Option<usize> {
        let wanted = path.as_os_str().as_bytes();
        let at = self.partition(range, |one| one < wanted);
        (at < range.end && self.path(at) == wanted).then_some(at)
    }

    /// Those of a range that are below a folder.
    pub(crate) fn below(&self, range: &Range<usize>, folder: &Path) -> Range<usize> {
        let mut top = folder.as_os_str().as_bytes().to_vec();
        top.push(b'/');
        let start = self.partition(range, |one| one < &*top);
        let end = self.partition(&(start..range.end), |one| one.starts_with(&top));
        start..end
    }
}
