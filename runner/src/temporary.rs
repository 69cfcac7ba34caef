//! Temporary folders of a harness. Their names identify their owner, so that a later harness can
//! remove those of one that was killed.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tempfile::Builder;

use crate::owner::{is_gone, next_marker};

/// How their names begin; a marker and a random suffix follow, separated by a full stop.
pub(crate) const PREFIX: &str = "code-commit-";

/// A folder that is removed with its content when it is dropped.
#[derive(Debug)]
pub struct TemporaryFolder(PathBuf);

/// Creates a folder in `parent` that only its owner can access. It is removed when dropped or, if
/// the harness is killed, when the next one creates a folder there, or by
/// [`remove_orphans`](crate::remove_orphans) if `parent` is the temporary folder or `/tmp`.
///
/// # Errors
///
/// Those of `mkdir`.
pub fn temporary_folder(parent: &Path) -> io::Result<TemporaryFolder> {
    remove_left(parent);
    let made = Builder::new()
        .prefix(&format!("{PREFIX}{}.", next_marker()))
        .tempdir_in(parent)?;
    Ok(TemporaryFolder(made.keep()))
}

impl TemporaryFolder {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Removes it, and tells whether that succeeded.
    pub fn close(self) -> io::Result<()> {
        code_commit_dir::remove(&self.0)
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = code_commit_dir::remove(&self.0);
    }
}

/// Creates something in `TMPDIR`, or in `/tmp` if that fails: a sandbox must not depend on that
/// folder.
pub(crate) fn in_temporary<T>(
    folder: PathBuf,
    make: impl Fn(PathBuf) -> io::Result<T>,
) -> io::Result<T> {
    make(folder).or_else(|_| make(PathBuf::from("/tmp")))
}

/// Removes what dead harnesses left in `parent`. What cannot be removed stays; nothing depends on it.
pub fn remove_left(parent: &Path) {
    let Ok(folder) = code_commit_dir::reach::root(parent, code_commit_dir::reach::LOOK) else {
        return;
    };
    let user = rustix::process::geteuid().as_raw();
    for entry in code_commit_dir::list(parent)
        .into_iter()
        .flatten()
        .flatten()
    {
        let is_left = entry.file_name().to_str().is_some_and(is_of_one_gone);
        if is_left
            && entry
                .metadata()
                .is_ok_and(|found| found.is_dir() && found.uid() == user)
        {
            let _ = code_commit_dir::reach::remove(&folder, &entry.file_name());
        }
    }
}

fn is_of_one_gone(name: &str) -> bool {
    let marker = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.rsplit_once('.'));
    marker.is_some_and(|(marker, _)| is_gone(marker))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::fs::symlink;

    use super::*;

    /// The name of a folder of a harness that had our process ID before us.
    fn name_of_one_gone() -> String {
        let mut gone: Vec<String> = next_marker().split('-').map(str::to_owned).collect();
        gone[1] = "1".to_owned();
        format!("{PREFIX}{}.a", gone.join("-"))
    }

    #[test]
    fn whoever_makes_a_folder_removes_those_of_a_harness_that_was_killed_in_every_state() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join(name_of_one_gone());
        fs::create_dir_all(left.join("closed/below")).unwrap();
        fs::set_permissions(left.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        let own = temporary_folder(parent.path()).unwrap();
        assert!(own.path().exists() && !left.exists());
    }

    #[test]
    fn only_folders_of_a_harness_that_is_gone_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        let own = temporary_folder(parent.path()).unwrap();
        let gone = name_of_one_gone();
        let gone = gone.strip_suffix(".a").unwrap();
        fs::create_dir_all(at(&format!("{gone}.a/below"))).unwrap();
        let stays = [
            gone.to_owned(),
            "code-commit-Ab12Cd".to_owned(),
            format!("other-{gone}.a"),
        ];
        stays
            .iter()
            .for_each(|name| fs::create_dir(at(name)).unwrap());
        symlink(at(&stays[1]), at(&format!("{gone}.link"))).unwrap();
        remove_left(parent.path());
        assert!(own.path().exists() && !at(&format!("{gone}.a")).exists());
        assert!(
            stays
                .iter()
                .chain([&format!("{gone}.link")])
                .all(|name| at(name).symlink_metadata().is_ok())
        );
    }
}
