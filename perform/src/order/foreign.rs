//! What a rollback finds in the tree although the run did not write it: moved to the run's folder, never deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use code_commit_logging::{Redactor, RunFolder, Stamp, name_as_text};
use code_commit_repo::Git;

use code_commit_engine::Problem;

use crate::account::named;
use crate::fault::Fault;
use crate::kept::{sha256_on_disk, undo_folders};

/// The hash of each file as the run last wrote it; `None` if the run deleted it.
pub(super) type Written = BTreeMap<String, Option<String>>;

/// What a rollback has moved out of its way.
#[derive(Debug)]
pub(super) struct Left<'l> {
    root: &'l Path,
    run: &'l Path,
    /// Always on the disk of the tree.
    state: &'l Path,
    folders: Vec<PathBuf>,
    paths: BTreeSet<String>,
}

impl<'l> Left<'l> {
    pub(super) fn new(root: &'l Path, run: &'l Path, state: &'l Path) -> Self {
        Self { root, run, state, folders: Vec::new(), paths: BTreeSet::new() }
    }

    /// Moves what is at a path below the root, or the non-folder on the way to it, to the same place below a
    /// folder of the run. If that is on another disk, it is copied there only after it was moved: somebody may
    /// save it at any moment.
    pub(super) fn take(&mut self, path: &Path) -> io::Result<()> {
        let Some(place) = code_commit_dir::obstacle::place(self.root, path)? else { return Ok(()) };
        let from = self.root.join(&place);
        let is_free = |folder: &&PathBuf| {
            let to = folder.join(&place);
            fs::create_dir_all(to.parent().unwrap_or(&to)).is_ok() && to.symlink_metadata().is_err()
        };
        let to = match self.folders.last().filter(is_free) {
            Some(folder) => folder.join(&place),
            None => self.make(self.run)?.join(&place),
        };
        fs::create_dir_all(to.parent().unwrap_or(&to))?;
        match fs::rename(&from, &to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                self.take_through_state(&from, &to)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            moved => moved?,
        }
        disarm(&to)?;
        self.paths.insert(name_as_text(&place).into_owned());
        Ok(())
    }

    fn take_through_state(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let folder = self.make(self.state)?;
        let staged = folder.join(from.file_name().unwrap_or_default());
        fs::rename(from, &staged)?;
        // What cannot be copied, such as a folder, stays.
        if code_commit_dir::copy(&staged, to).is_ok() {
            fs::remove_file(&staged)?;
            fs::remove_dir(&folder)?;
            self.folders.retain(|known| *known != folder);
        }
        Ok(())
    }

    /// Keeps the content of a file that was replaced by an undo.
    pub(super) fn keep(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        let to = self.make(self.run)?.join(path);
        fs::create_dir_all(to.parent().unwrap_or(&to))?;
        code_commit_dir::replace(&to, content)?;
        self.paths.insert(path.to_owned());
        Ok(())
    }

    fn make(&mut self, base: &Path) -> io::Result<PathBuf> {
        let name = format!("left-{}", Stamp::now().folder_name());
        let made = RunFolder::create(base, &name, Redactor::default()).map_err(io::Error::other)?;
        self.folders.insert(0, made.path().to_owned());
        Ok(made.path().to_owned())
    }

    /// For the user.
    pub(super) fn warning(&self) -> Option<Problem> {
        let paths: Vec<String> = self.paths.iter().cloned().collect();
        let folders: Vec<String> =
            self.folders.iter().rev().map(|folder| folder.display().to_string()).collect();
        let message = format!(
            "while the run was under way, its commands or somebody else wrote {}; what was there is in {}",
            named(&paths),
            named(&folders)
        );
        (!paths.is_empty()).then(|| Problem { code: "left".to_owned(), path: None, line: None, message })
    }
}

/// Renames what would make a folder of kept files a repository: git runs programs that its configuration names.
fn disarm(kept: &Path) -> io::Result<()> {
    let head = Some(kept).filter(|kept| kept.ends_with("HEAD") && kept.symlink_metadata().is_ok());
    let git = Some(kept.join(".git")).filter(|git| git.symlink_metadata().is_ok());
    for part in head.map(Path::to_owned).into_iter().chain(git) {
        let mut name = part.clone().into_os_string();
        name.push(".kept");
        fs::rename(&part, name)?;
    }
    Ok(())
}

/// Everything that differs from the commit that is checked out, including in submodules.
pub(super) fn differing(git: &Git) -> Result<BTreeSet<PathBuf>, Fault> {
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
        let applied = code_commit_apply::read_applied(&undo).map_err(Fault::Undo)?;
        let changes = applied.into_iter().flat_map(|applied| applied.changes);
        written.extend(changes.map(|change| (change.path, change.after_sha256)));
    }
    Ok(written)
}

pub(super) fn is_as_written(root: &Path, path: &Path, own: &Written) -> bool {
    let Some(Some(sha256)) = path.to_str().and_then(|path| own.get(path)) else { return false };
    sha256_on_disk(&root.join(path)).as_ref() == Some(sha256)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::io::Write as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    #[test]
    fn whatever_is_in_the_way_is_moved_and_nothing_that_was_moved_is_replaced() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        ["tree", "run", "state"].iter().for_each(|name| fs::create_dir(at(name)).unwrap());
        let tree = at("tree");
        let odd = Path::new(OsStr::from_bytes(b"odd\xff"));
        let write = |path: &Path, text: &str| {
            fs::File::create(tree.join(path)).unwrap().write_all(text.as_bytes()).unwrap();
        };
        write(odd, "theirs");
        write(Path::new("file"), "first");
        mknodat(CWD, tree.join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        symlink("/nowhere", tree.join("link")).unwrap();
        let (run, state) = (at("run"), at("state"));
        let mut left = Left::new(&tree, &run, &state);
        for path in [odd, Path::new("file"), Path::new("fifo/below"), Path::new("link"), Path::new("gone")] {
            left.take(path).unwrap();
        }
        fs::create_dir_all(tree.join("nested/.git")).unwrap();
        left.take(Path::new("nested")).unwrap();
        assert!(!left.folders[0].join("nested/.git").exists());
        write(Path::new("file"), "second");
        left.take(Path::new("file")).unwrap();
        assert_eq!(fs::read_dir(&tree).unwrap().count(), 0);
        let read = |folder: usize, path: &Path| fs::read_to_string(left.folders[folder].join(path)).unwrap();
        assert_eq!((read(1, odd), read(1, Path::new("file"))), ("theirs".to_owned(), "first".to_owned()));
        assert_eq!(read(0, Path::new("file")), "second");
        assert_eq!(
            left.paths.into_iter().collect::<Vec<_>>(),
            ["fifo", "file", "link", "nested", "odd\\xff"]
        );
    }
}
