//! The user's uncommitted changes when a run began. An agent may change or remove them, and git cannot
//! restore them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use code_commit_repo::GitError;

use crate::agents::checkpoint::{dirty, fingerprint, is_excluded};
use crate::agents::role::Repository;

/// Bytes and files to keep at most, small files first.
const MOST_BYTES: u64 = 64 << 20;
const MOST_FILES: usize = 2000;

/// Copies in the run folder, by their paths below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncommittedCopies {
    root: PathBuf,
    folder: PathBuf,
}

impl UncommittedCopies {
    /// The copies for the repository with this name. Makes nothing yet.
    pub fn of(repository: &Repository, name: &str, run: &Path) -> Self {
        let root = repository.git.folder().to_owned();
        Self {
            root,
            folder: run.join("uncommitted").join(name),
        }
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Copies everything but what is never committed; gives the files without a copy, for lack of room or
    /// because they cannot be read. Nested repositories are skipped.
    pub fn make(&self, repository: &Repository) -> Result<Vec<PathBuf>, GitError> {
        let files = dirty(&repository.git)?
            .files
            .into_iter()
            .filter(|path| !is_excluded(repository, path));
        let sized =
            |path: PathBuf| Some((self.root.join(&path).symlink_metadata().ok()?.len(), path));
        let mut files: Vec<(u64, PathBuf)> = files.filter_map(sized).collect();
        files.sort_unstable();
        let (mut room, mut count, mut without) = (MOST_BYTES, 0, Vec::new());
        for (size, path) in files {
            let (fits, copy) = (size <= room && count < MOST_FILES, self.folder.join(&path));
            // A run that was killed here makes the remaining copies.
            let is_there = copy.symlink_metadata().is_ok();
            if fits && (is_there || code_commit_dir::copy(&self.root.join(&path), &copy).is_ok()) {
                room -= size;
                count += 1;
            } else {
                without.push(path);
            }
        }
        Ok(without)
    }

    /// Removes copies of unchanged files; gives the others, relative to the root, sorted. Both can be
    /// repeated. An unreadable file counts as changed.
    pub fn settle(&self) -> io::Result<Vec<PathBuf>> {
        let mut left = Vec::new();
        self.settle_below(Path::new(""), &mut left)?;
        left.sort_unstable();
        Ok(left)
    }

    fn settle_below(&self, below: &Path, left: &mut Vec<PathBuf>) -> io::Result<()> {
        let here = self.folder.join(below);
        let entries = match code_commit_dir::list(&here) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let before = left.len();
        for entry in entries {
            let entry = entry?;
            let path = below.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.settle_below(&path, left)?;
            } else if fingerprint(&self.root.join(&path))
                .is_ok_and(|now| fingerprint(&entry.path()).is_ok_and(|then| now == then))
            {
                fs::remove_file(entry.path())?;
            } else {
                left.push(path);
            }
        }
        if left.len() == before {
            fs::remove_dir(&here)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use code_commit_repo::Git;
    use std::fs::File;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    #[test]
    fn copies_of_what_has_changed_stay_and_no_others() {
        let (tree, run) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        code_commit_repo::init(tree.path()).unwrap();
        let at = |name: &str| tree.path().join(name);
        fs::create_dir_all(at("deep/er")).unwrap();
        for name in ["same", "changed", "deep/er/gone", "never"] {
            File::create(at(name))
                .unwrap()
                .write_all(name.as_bytes())
                .unwrap();
        }
        symlink("same", at("link")).unwrap();
        File::create(at("large"))
            .unwrap()
            .set_len(MOST_BYTES + 1)
            .unwrap();
        let git = Git::new(tree.path(), "git", []);
        let repository = Repository {
            git,
            exclude: vec!["never".to_owned()],
        };
        let copies = UncommittedCopies::of(&repository, "project", run.path());
        assert_eq!(copies.make(&repository).unwrap(), [PathBuf::from("large")]);
        File::create(at("changed"))
            .unwrap()
            .write_all(b"otherwise")
            .unwrap();
        fs::remove_dir_all(at("deep")).unwrap();
        fs::remove_file(at("link")).unwrap();
        for _ in 0..2 {
            let left = copies.settle().unwrap();
            assert_eq!(left, ["changed", "deep/er/gone", "link"].map(PathBuf::from));
        }
        assert_eq!(
            fs::read(copies.folder().join("deep/er/gone")).unwrap(),
            b"deep/er/gone"
        );
        assert!(!copies.folder().join("same").exists() && !copies.folder().join("never").exists());
        File::create(at("changed"))
            .unwrap()
            .write_all(b"changed")
            .unwrap();
        symlink("same", at("link")).unwrap();
        assert_eq!(copies.settle().unwrap(), [PathBuf::from("deep/er/gone")]);
    }

    #[test]
    fn where_all_is_as_it_was_no_folder_stays() {
        let (tree, run) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        code_commit_repo::init(tree.path()).unwrap();
        File::create(tree.path().join("same")).unwrap();
        let repository = Repository {
            git: Git::new(tree.path(), "git", []),
            exclude: Vec::new(),
        };
        let copies = UncommittedCopies::of(&repository, "project", run.path());
        assert_eq!(copies.make(&repository).unwrap(), Vec::<PathBuf>::new());
        assert_eq!(copies.settle().unwrap(), Vec::<PathBuf>::new());
        assert!(!copies.folder().exists());
    }
}
