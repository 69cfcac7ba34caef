//! Copies, in the run's folder, of files that a rollback would remove although the run did not write them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use logging::{Redactor, RunFolder, Stamp, name_as_text};
use repo::Git;

use engine::Problem;

use crate::account::named;
use crate::fault::Fault;
use crate::kept::undo_folders;

/// Bytes to keep at most: commands may have made far more than a user would miss.
const MOST_BYTES: u64 = 64 << 20;
/// Files to keep at most.
const MOST_FILES: usize = 2000;

/// The hash of each file as the run last wrote it; `None` if the run deleted it.
pub(super) type Written = BTreeMap<String, Option<String>>;

/// Copies of files, and where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Where they are, by their paths below the root.
    pub folder: PathBuf,
    /// Relative to the root, as given by [`name_as_text`].
    pub kept: Vec<String>,
    /// Files without a copy.
    pub lost: Vec<String>,
}

impl Left {
    /// Copies what differs from the commit, and these other files, into the run's folder, except files with
    /// just the content that the run wrote. Small files first, as far as there is room. `None` if there is
    /// nothing to copy.
    pub(super) fn keep(
        git: &Git,
        root: &Path,
        run: &Path,
        own: &Written,
        others: Vec<PathBuf>,
    ) -> Result<Option<Self>, Fault> {
        let mut files = differing(git)?;
        files.extend(own.keys().map(PathBuf::from));
        files.extend(others);
        files.retain(|path| !is_as_written(root, path, own));
        Ok(Self::copy(root, run, files, MOST_BYTES, MOST_FILES))
    }

    /// The same for everything that differs from the commit, whatever its size: used after a kill, when the
    /// run's own files are unknown.
    pub fn keep_all(git: &Git, root: &Path, run: &Path) -> Result<Option<Self>, Fault> {
        Ok(Self::copy(root, run, differing(git)?, u64::MAX, usize::MAX))
    }

    fn copy(root: &Path, run: &Path, files: BTreeSet<PathBuf>, bytes: u64, count: usize) -> Option<Self> {
        let mut found: Vec<(u64, PathBuf)> =
            files.into_iter().filter_map(|path| Some((size(&root.join(&path))?, path))).collect();
        if found.is_empty() {
            return None;
        }
        found.sort_unstable();
        let name = format!("left-{}", Stamp::now().folder_name());
        // The tree is restored even if there is no room for a copy.
        let made = RunFolder::create(run, &name, Redactor::default());
        let folder = made.map_or_else(|_| run.join(&name), |made| made.path().to_owned());
        let mut left = Self { folder, kept: Vec::new(), lost: Vec::new() };
        let mut room = bytes;
        for (size, path) in found {
            let fits = size <= room && left.kept.len() < count;
            if fits && dir::copy(&root.join(&path), &left.folder.join(&path)).is_ok() {
                room -= size;
                left.kept.push(name_as_text(&path).into_owned());
            } else {
                left.lost.push(name_as_text(&path).into_owned());
            }
        }
        left.kept.sort_unstable();
        Some(left)
    }

    /// For the user.
    pub fn warning(&self) -> Problem {
        let mut message = "while the run was under way, its commands or somebody else".to_owned();
        if !self.kept.is_empty() {
            let kept = named(&self.kept);
            message += &format!(" wrote {kept}; copies are in {}", self.folder.display());
        }
        if !self.lost.is_empty() {
            let joint = if self.kept.is_empty() { "" } else { ";" };
            message += &format!("{joint} wrote {}, of which no copy could be kept", named(&self.lost));
        }
        Problem { code: "left".to_owned(), path: None, line: None, message }
    }
}

/// Everything that differs from the commit that is checked out, including in submodules.
fn differing(git: &Git) -> Result<BTreeSet<PathBuf>, Fault> {
    let mut found = BTreeSet::new();
    let submodules = git.submodules().map_err(Fault::Git)?;
    found
        .extend(git.dirty_paths().map_err(Fault::Git)?.into_iter().filter(|path| !submodules.contains(path)));
    for path in &submodules {
        let inside = git.folder().join(path);
        // In an empty folder git would find the enclosing repository.
        if inside.join(".git").symlink_metadata().is_ok() {
            found.extend(differing(&git.at(inside))?.into_iter().map(|below| path.join(below)));
        }
    }
    Ok(found)
}

/// The files that the run in this folder has written.
pub(super) fn written(run: &Path) -> Result<Written, Fault> {
    let mut written = Written::new();
    for undo in undo_folders(run)? {
        let applied = apply::read_applied(&undo).map_err(Fault::Undo)?;
        let changes = applied.into_iter().flat_map(|applied| applied.changes);
        written.extend(changes.map(|change| (change.path, change.after_sha256)));
    }
    Ok(written)
}

fn is_as_written(root: &Path, path: &Path, own: &Written) -> bool {
    let Some(Some(sha256)) = path.to_str().and_then(|path| own.get(path)) else { return false };
    let now = dir::open_regular(&root.join(path));
    now.ok().flatten().and_then(|mut file| logging::sha256_of(&mut file).ok()).as_ref() == Some(sha256)
}

/// The size of a file, symlink or repository that a rollback removes; `None` if nothing is there.
fn size(path: &Path) -> Option<u64> {
    let found = fs::symlink_metadata(path).ok()?;
    Some(if found.is_file() || found.is_symlink() { found.len() } else { u64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::io::Write as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_whose_name_is_not_utf8_is_kept_too() {
        let (tree, run) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        repo::init(tree.path()).unwrap();
        let name = OsStr::from_bytes(b"odd\xff");
        fs::File::create(tree.path().join(name)).unwrap().write_all(b"theirs").unwrap();
        let git = Git::new(tree.path(), "git", [("PATH".into(), "/usr/bin:/bin".into())]);
        let left = Left::keep_all(&git, tree.path(), run.path()).unwrap().unwrap();
        assert_eq!((left.kept.as_slice(), left.lost.len()), (["odd\\xff".to_owned()].as_slice(), 0));
        assert_eq!(fs::read(left.folder.join(name)).unwrap(), b"theirs");
    }

    #[test]
    fn a_fifo_in_the_place_of_a_file_is_lost_and_keeps_nothing_waiting() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("run")).unwrap();
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        fs::File::create(at("file")).unwrap();
        symlink("/nowhere", at("link")).unwrap();
        let files = ["fifo", "file", "link"].map(PathBuf::from).into();
        let left = Left::copy(folder.path(), &at("run"), files, u64::MAX, usize::MAX).unwrap();
        assert_eq!(
            (left.kept, left.lost),
            (vec!["file".to_owned(), "link".to_owned()], vec!["fifo".to_owned()])
        );
    }
}
