//! Makes a repository that git sees whole or not at all.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::RepoError;

/// Where a repository is made, inside the `.git` that it becomes.
const BEING_MADE: &str = "code-commit-init";
/// Git recognizes no repository without it, so it comes last.
const LAST: &str = "HEAD";
/// Its name until then.
const READY: &str = "code-commit-HEAD";

/// Creates a repository without commits in `folder` if it has none of its own, or completes one whose
/// creation was interrupted. Refuses a damaged one, which may hold commits.
pub fn init(folder: &Path) -> Result<(), RepoError> {
    let git_dir = folder.join(".git");
    if is_repository(&git_dir) {
        return Ok(());
    }
    let failed = |source| RepoError::Io {
        path: git_dir.clone(),
        source,
    };
    match fs::create_dir(&git_dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made.map_err(failed)?,
    }
    if !holds_no_history(&git_dir).map_err(failed)? {
        return Err(RepoError::Damaged { path: git_dir });
    }
    // Another run may make it at the same time, or was killed while it did.
    let held = File::open(&git_dir).map_err(failed)?;
    held.lock().map_err(failed)?;
    if !is_repository(&git_dir) {
        make(folder, &git_dir)?;
    }
    Ok(())
}

fn make(folder: &Path, git_dir: &Path) -> Result<(), RepoError> {
    let failed = |source| RepoError::Io {
        path: git_dir.to_owned(),
        source,
    };
    let aside = git_dir.join(BEING_MADE);
    code_commit_dir::remove(&aside).map_err(failed)?;
    fs::create_dir(&aside).map_err(failed)?;
    gix::init(&aside).map_err(|error| RepoError::git("make a repository", folder, &error))?;
    move_into(&aside.join(".git"), git_dir)
        .and_then(|()| code_commit_dir::remove(&aside))
        .and_then(|()| fs::rename(git_dir.join(READY), git_dir.join(LAST)))
        .map_err(failed)?;
    if is_repository(git_dir) {
        Ok(())
    } else {
        Err(RepoError::Damaged {
            path: git_dir.to_owned(),
        })
    }
}

/// As git sees it. gix also accepts an empty `HEAD`, which an interrupted write leaves.
fn is_repository(git_dir: &Path) -> bool {
    let is_cut_off = git_dir
        .join(LAST)
        .metadata()
        .is_ok_and(|head| head.len() == 0);
    gix::discover::is_git(git_dir).is_ok() && !is_cut_off
}

/// Moves what the folder does not have yet, and `HEAD` under another name.
fn move_into(made: &Path, git_dir: &Path) -> io::Result<()> {
    for entry in code_commit_dir::list(made)? {
        let name = entry?.file_name();
        let to = git_dir.join(if name == LAST {
            OsStr::new(READY)
        } else {
            &name
        });
        if name == LAST || to.symlink_metadata().is_err() {
            fs::rename(made.join(&name), to)?;
        }
    }
    Ok(())
}

/// Whether no object and no reference would be lost if this were no repository. A symlink or a file may lead
/// to any.
fn holds_no_history(git_dir: &Path) -> io::Result<bool> {
    let is_empty = !git_dir.join("packed-refs").exists()
        && holds_no_file(&git_dir.join("objects"))?
        && holds_no_file(&git_dir.join("refs"))?;
    Ok(is_empty && git_dir.symlink_metadata()?.is_dir())
}

fn holds_no_file(folder: &Path) -> io::Result<bool> {
    let entries = match code_commit_dir::list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if !entry.file_type()?.is_dir() || !holds_no_file(&entry.path())? {
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
            &[
                "objects/info/",
                "refs/",
                "config",
                "code-commit-init/.git/objects/pack/x",
                "code-commit-init/.git/HEAD",
            ],
        ] {
            let folder = half_made(names);
            init(folder.path()).unwrap();
            let tree = WorkTree::at(folder.path()).unwrap();
            assert_eq!(
                tree.top(),
                folder.path().canonicalize().unwrap(),
                "{names:?}"
            );
            let is_kept = |name: &str| folder.path().join(".git").join(name).exists();
            assert!(
                names
                    .iter()
                    .all(|name| name.starts_with(BEING_MADE) != is_kept(name)),
                "{names:?}"
            );
            Git::new(folder.path(), "git", []).dirty_paths().unwrap();
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
            let refused = init(folder.path()).unwrap_err();
            assert!(
                matches!(refused, RepoError::Damaged { .. }),
                "{names:?}: {refused}"
            );
            assert!(!folder.path().join(".git/HEAD").exists());
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".git"), "gitdir: /nowhere\n").unwrap();
        assert!(init(folder.path()).is_err());
    }
}
