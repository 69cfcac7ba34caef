//! Makes a repository.

use std::fs;
use std::io;
use std::path::Path;

use crate::{Git, GitError, RepoError};

impl Git {
    /// Creates a repository without commits in the folder if it has none of its own, or completes one whose creation was
    /// interrupted. Refuses a damaged one, which may hold commits.
    pub fn init(&self) -> Result<(), GitError> {
        let git_dir = self.folder().join(".git");
        if is_repository(&git_dir) {
            return Ok(());
        }
        let damaged = || RepoError::Damaged {
            path: git_dir.clone(),
        };
        let failed = |source| RepoError::Io {
            path: git_dir.clone(),
            source,
        };
        if !has_no_history(&git_dir).map_err(failed)? {
            return Err(damaged().into());
        }
        // Git completes what is there, but not a file that a power cut left empty.
        if is_empty(&git_dir.join(HEAD)) {
            fs::remove_file(git_dir.join(HEAD)).map_err(failed)?;
        }
        self.make(&git_dir)?;
        is_repository(&git_dir)
            .then_some(())
            .ok_or_else(|| damaged().into())
    }
}

const HEAD: &str = "HEAD";

fn is_repository(git_dir: &Path) -> bool {
    gix_discover::is_git(git_dir).is_ok() && !is_empty(&git_dir.join(HEAD))
}

fn is_empty(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.len() == 0)
}

fn has_no_history(git_dir: &Path) -> io::Result<bool> {
    let is_folder = match git_dir.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        found => found?.is_dir(),
    };
    Ok(is_folder
        && !git_dir.join("packed-refs").exists()
        && has_no_file(&git_dir.join("objects"))?
        && has_no_file(&git_dir.join("refs"))?)
}

fn has_no_file(folder: &Path) -> io::Result<bool> {
    let entries = match code_commit_dir::list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if !entry.file_type()?.is_dir() || !has_no_file(&entry.path())? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests make files")]
mod tests {
    use super::*;
    use crate::{Git, WorkTree};

    /// `.git` with these files; a name that ends with `/` is a folder.
    fn half_made(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(".git").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let made = if name.ends_with('/') {
                fs::create_dir_all(&path)
            } else {
                fs::write(&path, "")
            };
            made.unwrap();
        }
        folder
    }

    #[test]
    fn a_repository_that_was_cut_off_while_it_was_made_is_completed() {
        for names in [
            &[][..],
            &["hooks/pre-commit.sample", "hooks/mine"],
            &["objects/info/", "objects/pack/", "refs/heads/", "HEAD"],
            &["objects/info/", "refs/", "config"],
        ] {
            let folder = half_made(names);
            let git = Git::new(folder.path(), "git", []);
            git.init().unwrap();
            let tree = WorkTree::at(folder.path()).unwrap();
            assert_eq!(
                tree.top(),
                folder.path().canonicalize().unwrap(),
                "{names:?}"
            );
            let is_kept = |name: &str| folder.path().join(".git").join(name).exists();
            assert!(names.iter().all(|name| is_kept(name)), "{names:?}");
            git.dirty_paths().unwrap();
        }
    }

    #[test]
    fn a_damaged_repository_is_refused_and_left_as_it_is() {
        for names in [
            &["objects/ab/cdef"][..],
            &["refs/heads/main", "hooks/"],
            &["packed-refs"],
        ] {
            let folder = half_made(names);
            let refused = Git::new(folder.path(), "git", []).init().unwrap_err();
            assert!(
                matches!(refused, GitError::Look(RepoError::Damaged { .. })),
                "{names:?}: {refused}"
            );
            assert!(!folder.path().join(".git/HEAD").exists());
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".git"), "gitdir: /nowhere\n").unwrap();
        assert!(Git::new(folder.path(), "git", []).init().is_err());
    }
}
