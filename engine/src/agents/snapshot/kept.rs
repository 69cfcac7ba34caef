//! Copies of files as they were before a turn. What has not changed since an earlier turn is not copied again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::agents::snapshot::tree::{Found, Stamp, Tree};

/// The copies of one shop, removed with it.
#[derive(Debug)]
pub struct Kept {
    root: PathBuf,
    folder: Option<PathBuf>,
    files: BTreeMap<String, Stamp>,
    /// Seconds since 1970.
    pub(super) clock: fn() -> i64,
}

impl Default for Kept {
    fn default() -> Self {
        Self { root: PathBuf::new(), folder: None, files: BTreeMap::new(), clock: now }
    }
}

impl Kept {
    /// The files of a folder, and the second before which whatever had changed is in the list.
    pub(super) fn look(&self, root: &Path, skip: &[String]) -> io::Result<(Tree, i64)> {
        let since = (self.clock)();
        Ok((Tree::of(root, skip)?, since))
    }

    /// Copies those files of `tree`, which was looked at `since` this second, that are `wanted` and not kept as they are now.
    pub(super) fn keep(
        &mut self,
        root: &Path,
        folder: &Path,
        (tree, since): (&Tree, i64),
        wanted: impl Fn(&str, &Found) -> bool,
    ) -> io::Result<()> {
        if self.folder.as_deref() != Some(folder) || self.root != root {
            self.forget()?;
            // What a run that was killed has left.
            clear(folder)?;
            (self.folder, self.root) = (Some(folder.to_owned()), root.to_owned());
        }
        self.files.retain(|path, stamp| tree.files.get(path).is_some_and(|found| found.stamp == *stamp));
        for (path, found) in tree.files.iter().filter(|(path, found)| wanted(path, found)) {
            if self.files.contains_key(path) {
                continue;
            }
            copy(&root.join(&found.place), folder, &found.place)?;
            // A change later in the same second may leave the same time: such a file is copied once more the next time.
            if found.stamp.is_older_than(since) {
                self.files.insert(path.clone(), found.stamp);
            }
        }
        Ok(())
    }

    fn forget(&mut self) -> io::Result<()> {
        self.files.clear();
        self.folder.take().map_or(Ok(()), |folder| clear(&folder))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // What is left is of no harm: the next run of the same folder clears it.
        let _ = self.forget();
    }
}

#[expect(clippy::disallowed_methods, reason = "file systems stamp their files by this clock")]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// A file with its mode, or a link, in place of whatever is at `relative` below `root`. Other kinds are not kept.
pub(super) fn copy(from: &Path, root: &Path, relative: &Path) -> io::Result<()> {
    let data = fs::symlink_metadata(from)?;
    make_folders(root, relative)?;
    let to = root.join(relative);
    clear(&to)?;
    if data.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if !data.is_file() {
        return Ok(());
    }
    fs::copy(from, &to)?;
    fs::set_permissions(&to, fs::Permissions::from_mode(data.mode()))
}

/// Removes what is there, if anything is.
pub(super) fn clear(place: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(place) {
        Ok(data) if data.is_dir() => fs::remove_dir_all(place),
        Ok(_) => fs::remove_file(place),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes the folders on the way, from the root down. A file or a link that the role has put in the place of one is removed: what is
/// written below must not come out elsewhere.
pub(super) fn make_folders(root: &Path, relative: &Path) -> io::Result<()> {
    fs::create_dir_all(root)?;
    let mut folder = root.to_owned();
    for name in relative.parent().into_iter().flat_map(Path::components) {
        folder.push(name);
        match fs::symlink_metadata(&folder) {
            Ok(data) if data.is_dir() => continue,
            Ok(_) => fs::remove_file(&folder)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        fs::create_dir(&folder)?;
    }
    Ok(())
}
