//! A hash over a whole tree, and empty folders, which git does not see.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use code_commit_names::By;
use code_commit_names::ours::STATE;
use sha2::{Digest as _, Sha256};

/// Why a tree could not be read to its end.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
#[non_exhaustive]
pub struct TreeError {
    /// The path concerned.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

/// SHA-256 in hex over every regular file below `root`, sorted by relative path, each as path, NUL, bytes,
/// NUL (S2 §5).
///
/// Leaves out symlinks, `.git` folders, the folder to which the root's `.git` leads, `.git` files (as in linked work
/// trees and submodules), and the harness's own state. A file or folder that may not be read counts by its name alone: a
/// command may leave one among what git ignores, and the data of a service is often one. `interrupt` is called between
/// the steps; its error ends the work.
pub fn stable_hash(
    root: &Path,
    interrupt: &dyn Fn() -> io::Result<()>,
) -> Result<String, TreeError> {
    let mut files = files(root)?;
    files.sort_unstable();
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    for (name, path) in &files {
        let failed = |source| error(path, source);
        let Some(content) = unless_gone(open(path)).map_err(failed)? else {
            continue;
        };
        hasher.update(name);
        hasher.update([0]);
        hash_content(content, &mut buffer, &mut hasher, interrupt).map_err(failed)?;
        hasher.update([0]);
    }
    let digest = hasher.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether folders of this name are left out of the hash.
pub fn is_left_out(name: &OsStr) -> bool {
    code_commit_names::left_out(By::Hash).any(|folder| name == folder)
}

/// What counts: the bytes of each path from the root, and the path.
fn files(root: &Path) -> Result<Vec<(Vec<u8>, PathBuf)>, TreeError> {
    let git =
        crate::WorkTree::at(root).map_or_else(|_| Vec::new(), |tree| tree.git_below(tree.root()));
    let is_entered = |path: &Path, name: &OsStr| {
        let below = path.strip_prefix(root).unwrap_or(path);
        !is_left_out(name) && below != Path::new(STATE) && !git.iter().any(|git| git == below)
    };
    let mut found = Vec::new();
    let mut take = |path: PathBuf| {
        let name = path.strip_prefix(root).unwrap_or(&path);
        found.push((name.as_os_str().as_bytes().to_vec(), path));
    };
    let mut todo = vec![root.to_owned()];
    while let Some(folder) = todo.pop() {
        let entries = match code_commit_dir::list(&folder) {
            Err(source) if folder == root => return Err(error(root, source)),
            Err(closed) if closed.kind() == io::ErrorKind::PermissionDenied => {
                take(folder);
                continue;
            }
            entries => unless_gone(entries).map_err(|source| error(&folder, source))?,
        };
        for entry in entries.into_iter().flatten() {
            let entry = entry.map_err(|source| error(&folder, source))?;
            let (path, name) = (entry.path(), entry.file_name());
            let kind = unless_gone(entry.file_type()).map_err(|source| error(&path, source))?;
            match kind {
                Some(kind) if kind.is_dir() && is_entered(&path, &name) => todo.push(path),
                Some(kind) if kind.is_file() && name != ".git" => take(path),
                Some(_) | None => (),
            }
        }
    }
    Ok(found)
}

/// Somebody may remove what was listed.
fn unless_gone<T>(looked: io::Result<T>) -> io::Result<Option<T>> {
    match looked {
        Err(error) if code_commit_dir::reach::is_gone(&error) => Ok(None),
        looked => looked.map(Some),
    }
}

/// One NUL stands for what may not be read.
fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    match File::open(path) {
        Err(closed) if closed.kind() == io::ErrorKind::PermissionDenied => Ok(Box::new(&b"\0"[..])),
        opened => Ok(Box::new(opened?)),
    }
}

fn hash_content(
    mut content: Box<dyn Read>,
    buffer: &mut [u8],
    hasher: &mut Sha256,
    interrupt: &dyn Fn() -> io::Result<()>,
) -> io::Result<()> {
    loop {
        interrupt()?;
        let read = content.read(buffer)?;
        if read == 0 {
            return Ok(());
        }
        hasher.update(buffer.get(..read).unwrap_or_default());
    }
}

fn error(path: &Path, source: io::Error) -> TreeError {
    TreeError {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
