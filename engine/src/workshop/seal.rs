//! The seal: what decides whether the work is done must not be changed by the work.
//!
//! `build.sh` and the protected files are looked at before and after each build. What a build changed is put back, and the build is
//! run once more; its exit code counts.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The sealed files as they were before a build.
#[derive(Debug)]
pub(super) struct Seal<'r> {
    root: &'r Path,
    files: Vec<Sealed>,
}

/// A sealed file; without a state if there was no regular file.
#[derive(Debug)]
struct Sealed {
    path: PathBuf,
    state: Option<State>,
}

#[derive(Debug, PartialEq, Eq)]
struct State {
    content: Vec<u8>,
    mode: u32,
}

impl<'r> Seal<'r> {
    /// Remembers these files; paths are relative to the root.
    pub(super) fn take(root: &'r Path, paths: &[PathBuf]) -> Self {
        let files = paths.iter().map(|path| Sealed { path: path.clone(), state: look(&root.join(path)) });
        Self { root, files: files.collect() }
    }

    /// Puts back what was changed and names it. Nothing was changed where the list is empty.
    pub(super) fn restore(&self) -> Result<Vec<String>, (PathBuf, io::Error)> {
        let mut broken = Vec::new();
        for file in &self.files {
            let path = self.root.join(&file.path);
            if look(&path) == file.state {
                continue;
            }
            put_back(self.root, &path, file.state.as_ref()).map_err(|error| (path, error))?;
            broken.push(file.path.display().to_string());
        }
        Ok(broken)
    }
}

fn look(path: &Path) -> Option<State> {
    let found = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(State { content: fs::read(path).ok()?, mode: found.permissions().mode() & 0o7777 })
}

/// No process of the build is left, so nobody swaps a folder now; but the build may have left a link where a folder was.
fn put_back(root: &Path, path: &Path, state: Option<&State>) -> io::Result<()> {
    let parent = path.parent().unwrap_or(root);
    if let Some(state) = state {
        fs::create_dir_all(parent)?;
        if !fs::canonicalize(parent)?.starts_with(fs::canonicalize(root)?) {
            return Err(io::Error::other("its folder leads out of the project now"));
        }
        remove(path)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(state.mode & 0o777).open(path)?;
        file.write_all(&state.content)?;
        return file.set_permissions(fs::Permissions::from_mode(state.mode));
    }
    remove(path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(gone) if gone.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("tests")).unwrap();
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(tree.path().join("build.sh"))
            .and_then(|mut file| file.write_all(b"exit 1\n"))
            .unwrap();
        tree
    }

    fn sealed() -> [PathBuf; 2] {
        ["build.sh".into(), "tests/new".into()]
    }

    #[test]
    fn an_untouched_tree_is_left_alone() {
        let tree = tree();
        assert!(Seal::take(tree.path(), &sealed()).restore().unwrap().is_empty());
    }

    #[test]
    fn a_changed_a_deleted_and_a_new_file_are_put_back_with_their_modes() {
        let tree = tree();
        let path = tree.path().join("build.sh");
        let seal = Seal::take(tree.path(), &sealed());
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/bin/true", &path).unwrap();
        File::create_new(tree.path().join("tests/new")).unwrap();
        assert_eq!(seal.restore().unwrap(), ["build.sh", "tests/new"]);
        assert_eq!(look(&path).unwrap(), State { content: b"exit 1\n".to_vec(), mode: 0o755 });
        assert!(!tree.path().join("tests/new").exists());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(seal.restore().unwrap(), ["build.sh"]);
    }

    #[test]
    fn a_folder_that_leads_out_of_the_project_now_is_not_written_through() {
        let tree = tree();
        let outside = tempfile::tempdir().unwrap();
        File::create_new(tree.path().join("tests/kept")).unwrap();
        let seal = Seal::take(tree.path(), &[PathBuf::from("tests/kept")]);
        fs::remove_dir_all(tree.path().join("tests")).unwrap();
        std::os::unix::fs::symlink(outside.path(), tree.path().join("tests")).unwrap();
        assert!(seal.restore().is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
