//! The identity of a tree: whether it is as somebody left it, committed or not.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gix::index::entry::Mode;
use sha2::{Digest as _, Sha256};

use crate::stable_hash::{hash_file, hex};
use crate::{RepoError, WorkTree};

impl WorkTree {
    /// SHA-256 in hex over every file below the root that git tracks or does not ignore: its path, whether it
    /// may be executed, and its bytes as they are on disk. Leaves out the harness's own state, submodules, and
    /// what `is_own` names. To commit files does not change it.
    pub fn identity(&self, is_own: impl Fn(&Path) -> bool) -> Result<String, RepoError> {
        let tracked = self.entries(|mode, _| mode != Mode::COMMIT && mode != Mode::DIR)?;
        let dirty = self.dirty_paths()?;
        let paths: BTreeSet<PathBuf> =
            tracked.into_iter().map(|(path, ..)| path).chain(dirty).filter(|path| !is_own(path)).collect();
        let mut hasher = Sha256::new();
        for path in &paths {
            let place = self.root().join(path);
            add(&place, path, &mut hasher).map_err(|source| RepoError::Io { path: place, source })?;
        }
        Ok(hex(&hasher.finalize()))
    }
}

/// Each part begins with what it is and its length, so that no two trees have the same sequence of bytes.
fn add(place: &Path, path: &Path, hasher: &mut Sha256) -> io::Result<()> {
    let found = match fs::symlink_metadata(place) {
        // A file that is tracked and deleted.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(());
        }
        found => found?,
    };
    let name = path.as_os_str().as_bytes();
    let mut head = |kind: u8, bytes: u64| {
        hasher.update([kind]);
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update(bytes.to_le_bytes());
    };
    if found.is_file() {
        head(if found.permissions().mode() & 0o111 == 0 { b'f' } else { b'x' }, found.len());
        hash_file(place, &mut vec![0; 64 * 1024], hasher)?;
    } else if found.is_symlink() {
        let target = fs::read_link(place)?;
        head(b'l', target.as_os_str().len() as u64);
        hasher.update(target.as_os_str().as_bytes());
    } else if !found.is_dir() {
        head(b'o', 0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_tree_is_the_same_until_a_file_that_counts_has_changed() {
        let scratch = Scratch::new();
        scratch.write("a.txt", "a");
        scratch.write(".gitignore", "target\n");
        scratch.commit();
        let is_own = |path: &Path| path == Path::new("own.txt");
        let identity = || WorkTree::at(scratch.path()).unwrap().identity(is_own).unwrap();
        let first = identity();
        scratch.write("target", "ignored");
        scratch.write("own.txt", "ours");
        assert_eq!(identity(), first);
        scratch.write("b.txt", "b");
        let with_b = identity();
        assert_ne!(with_b, first);
        scratch.commit();
        assert_eq!(identity(), with_b, "committed or not");
        let b = scratch.path().join("b.txt");
        fs::set_permissions(&b, fs::Permissions::from_mode(0o755)).unwrap();
        assert_ne!(identity(), with_b);
        fs::remove_file(&b).unwrap();
        assert_eq!(identity(), first, "deleted, though git tracks it");
        symlink("a.txt", &b).unwrap();
        assert!(identity() != first && identity() != with_b);
    }
}
