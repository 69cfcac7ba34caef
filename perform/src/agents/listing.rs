//! The files of a folder, however deep it is.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use code_commit_dir::reach::{self, Descent, LOOK};
use rustix::fs::{FileType, Stat};

use crate::agents::role::Watched;

/// Visits every entry that is not skipped; our own folders are made readable. Follows no symlink.
fn walk(watched: &Watched, root: &Path, mut visit: impl FnMut(&Path, &Stat)) -> io::Result<()> {
    let mut way = match reach::root(root, LOOK) {
        Err(gone) if reach::is_gone(&gone) => return Ok(()),
        top => Descent::from(top?, LOOK),
    };
    let mut look = |way: &Descent, folder: &Path| {
        let mut folders = Vec::<OsString>::new();
        for name in reach::names(&way.here)? {
            let path = folder.join(&name);
            if watched.skips(&path) {
                continue;
            }
            // Gone since it was listed.
            let Some(found) = reach::look(&way.here, &name)? else {
                continue;
            };
            visit(&path, &found);
            folders.extend((reach::kind(&found) == FileType::Directory).then_some(name));
        }
        io::Result::Ok(folders)
    };
    let mut place = PathBuf::new();
    let mut left = vec![look(&way, &place)?];
    while let Some(folders) = left.last_mut() {
        let Some(name) = folders.pop() else {
            left.pop();
            way.leave()?;
            place.pop();
            continue;
        };
        match way.enter(&name) {
            Err(gone) if reach::is_gone(&gone) => continue,
            entered => entered?,
        }
        place.push(name);
        left.push(look(&way, &place)?);
    }
    Ok(())
}

/// The paths of all files and symlinks, sorted.
pub(super) fn files(watched: &Watched, root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    walk(watched, root, |path, data| {
        let is_folder = reach::kind(data) == FileType::Directory;
        found.extend((!is_folder).then(|| path.to_owned()));
    })?;
    found.sort_unstable();
    Ok(found)
}

/// Whether nothing below the folder was changed after this file was written last.
pub(super) fn is_untouched_since(watched: &Watched, file: &Path) -> bool {
    let time = |data: &Stat| (data.st_ctime, data.st_ctime_nsec);
    let Ok(written) = file.metadata() else {
        return false;
    };
    let written = (
        written.mtime(),
        u64::try_from(written.mtime_nsec()).unwrap_or_default(),
    );
    let mut last = (0, 0);
    let walked = walk(watched, &watched.root, |_, data| {
        last = last.max(time(data));
    });
    walked.is_ok() && last <= written
}
