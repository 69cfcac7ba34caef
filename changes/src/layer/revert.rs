//! Takes a change back in the layer, so that the tree shows again.

use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use super::{Belongs, Layer, is_folder, stat_below, unless_closed};

impl Layer<'_> {
    /// Makes a path, below which nothing counts, what it is in the tree; whether it was anything else. A folder
    /// above it that the command removed, replaced or closed comes back whole.
    pub(crate) fn revert(&self, path: &Path) -> io::Result<bool> {
        // What cannot be looked at is not proved unchanged.
        if unless_closed(self.differs(path))? == Some(false) {
            return Ok(false);
        }
        let (mut level, mut place) = (self.top()?, None);
        for name in path {
            let Some(entry) = unless_closed(self.entry(&level, name.to_owned()))?.flatten() else {
                break;
            };
            place = Some((level.upper.try_clone()?, name));
            if !is_folder(&entry.upper) || entry.covers_folder(&level) {
                break;
            }
            let Some(inner) = unless_closed(level.enter(name, Belongs::Accounted))? else {
                break;
            };
            level = inner;
        }
        let (folder, name) = place.ok_or(io::ErrorKind::PermissionDenied)?;
        code_commit_dir::reach::remove(&folder.as_fd().try_clone_to_owned()?, name)?;
        Ok(true)
    }

    /// Whether a path is not what it is in the tree.
    fn differs(&self, path: &Path) -> io::Result<bool> {
        let mut level = self.top()?;
        let mut is_hidden = false;
        let exists = || stat_below(&self.tree, path).is_ok_and(|found| found.is_some());
        let mut names = path.iter().peekable();
        while let Some(name) = names.next() {
            let Some(entry) = self.entry(&level, name.to_owned())? else {
                return Ok(is_hidden && exists());
            };
            if names.peek().is_none() {
                return Ok(!entry.is_unchanged(&level, code_commit_dir::NEVER));
            }
            if !is_folder(&entry.upper) {
                return Ok(exists());
            }
            is_hidden |= entry.covers_folder(&level);
            level = level.enter(&entry.name, Belongs::Accounted)?;
        }
        Ok(false)
    }
}
