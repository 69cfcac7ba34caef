//! Restores what a command may not change.

use std::path::Path;

use code_commit_dir::{Attributes, Folder, Inode};
use code_commit_guard::{Difference, Survey};

use super::source::Source;
use crate::attic::Attic;
use crate::fault::Fault;
use crate::restore::{Restore, Was};

/// How often a path is restored: somebody may save it at that moment.
const TRIES: usize = 3;

/// Restores these paths; what is there now goes to the attic, new folders with all their content. Gives the paths whose
/// old content is not available; they are left as they are. Fails if any other was not restored.
pub(super) fn put_back(
    root: &Path,
    before: &Survey,
    source: &Source,
    differences: &[&Difference],
    attic: &mut Attic<'_>,
) -> Result<Vec<String>, Fault> {
    let root = &Folder::open(root).map_err(Fault::file("open", root))?;
    let mode_of = &|path: &Path| before.get(path).map(|was| was.mode & 0o7777);
    let mut restore = Restore {
        root,
        mode_of,
        attic,
    };
    let (mut gone, mut lost) = (Vec::new(), Vec::new());
    for one in differences {
        match (0..TRIES).find_map(|_| try_one(&mut restore, source, one).ok()) {
            Some(true) => {}
            Some(false) => gone.push(one.path.display().to_string()),
            None => lost.push(one.path.display().to_string()),
        }
    }
    if lost.is_empty() {
        Ok(gone)
    } else {
        Err(Fault::Seal {
            paths: lost.join(", "),
        })
    }
}

/// Whether it could be restored: without the old content, removing the new one gains nothing.
fn try_one(
    restore: &mut Restore<'_, '_>,
    source: &Source,
    Difference { path, before, .. }: &Difference,
) -> std::io::Result<bool> {
    let (mut content, inode);
    let was = match before {
        None => Was::Nothing,
        Some(was) if was.kind().is_dir() => Was::Folder(was.mode & 0o7777),
        Some(was) if was.kind().is_fifo() => Was::Fifo(was.mode & 0o7777),
        Some(was) if was.kind().is_symlink() => match source.target(path) {
            Some(target) => Was::Link(target),
            None => return Ok(false),
        },
        Some(was) => {
            let Some(read) = source.read(path, was).filter(|_| was.kind().is_file()) else {
                return Ok(false);
            };
            let attributes = source
                .copy(path)
                .map(|copy| Attributes::of(&copy))
                .transpose()?;
            let (mode, owner, len, modified) = (was.mode & 0o7777, was.owner, was.len, was.mtime);
            inode = Inode {
                mode,
                owner,
                len,
                modified,
                attributes: attributes.unwrap_or_default(),
            };
            content = read;
            Was::File(&mut *content, &inode)
        }
    };
    restore.restore(path, was).map(|()| true)
}
