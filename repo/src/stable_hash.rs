//! A hash over a whole tree, and empty folders, which git does not see.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
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

/// A folder that contains nothing but such folders. Git does not track them, so a clean removes
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmptyFolder {
    /// Relative to the root.
    pub path: PathBuf,
    /// Its permission bits.
    pub mode: u32,
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
    let mut files = Vec::new();
    walk(root, &mut |entry| match entry {
        Entry::File(path) | Entry::Closed(path) if counts(root, entry) => {
            files.push(path.clone());
            Descend::No
        }
        Entry::Folder(_) if counts(root, entry) => Descend::Yes,
        Entry::File(_) | Entry::Folder(_) | Entry::Other(_) | Entry::Closed(_) => Descend::No,
    })?;
    let mut files: Vec<(Vec<u8>, PathBuf)> = files
        .into_iter()
        .map(|file| {
            (
                file.strip_prefix(root)
                    .unwrap_or(&file)
                    .as_os_str()
                    .as_bytes()
                    .to_vec(),
                file,
            )
        })
        .collect();
    files.sort_unstable();
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    for (name, path) in &files {
        let Some(content) = unless_gone(open(path)).map_err(|source| error(path, source))? else {
            continue;
        };
        hasher.update(name);
        hasher.update([0]);
        hash_content(content, &mut buffer, &mut hasher, interrupt)
            .map_err(|source| error(path, source))?;
        hasher.update([0]);
    }
    Ok(hex(&hasher.finalize()))
}

/// Whether folders of this name are left out of the hash.
pub fn is_left_out(name: &OsStr) -> bool {
    code_commit_names::left_out(By::Hash).any(|folder| name == folder)
}

/// Every folder below `root` that git does not know about, because there is no file in it;
/// outermost first.
pub fn empty_folders(root: &Path) -> Result<Vec<EmptyFolder>, TreeError> {
    let (mut folders, mut filled) = (Vec::new(), Vec::new());
    walk(root, &mut |entry| match entry {
        Entry::Folder(path) if path.file_name().is_some_and(|name| name == ".git") => {
            filled.push(path.clone());
            Descend::No
        }
        Entry::Folder(path) => {
            folders.push(path.clone());
            Descend::Yes
        }
        Entry::File(path) | Entry::Other(path) => {
            filled.push(path.clone());
            Descend::No
        }
        Entry::Closed(path) => {
            filled.push(path.join("whatever is in it"));
            Descend::No
        }
    })?;
    let parents: std::collections::BTreeSet<&Path> = filled
        .iter()
        .flat_map(|path| path.ancestors().skip(1))
        .collect();
    folders.retain(|folder| !parents.contains(folder.as_path()));
    folders.sort_unstable();
    folders
        .into_iter()
        .map(|folder| {
            let mode = fs::metadata(&folder)
                .map_err(|source| error(&folder, source))?
                .permissions()
                .mode();
            Ok(EmptyFolder {
                path: folder.strip_prefix(root).unwrap_or(&folder).to_owned(),
                mode: mode & 0o7777,
            })
        })
        .collect()
}

/// Creates those of `folders` that no longer exist, and never through a symlink.
pub fn restore_empty_folders(root: &Path, folders: &[EmptyFolder]) -> Result<(), TreeError> {
    for folder in folders {
        let path = root.join(&folder.path);
        let above = folder
            .path
            .ancestors()
            .skip(1)
            .map(|above| root.join(above));
        let is_folder = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_dir());
        if let Some(other) = above
            .filter(|above| above != root)
            .find(|above| !is_folder(above))
        {
            return Err(error(&other, io::ErrorKind::NotADirectory.into()));
        }
        match fs::create_dir(&path) {
            Ok(()) => fs::set_permissions(&path, fs::Permissions::from_mode(folder.mode)),
            Err(there) if there.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(other) => Err(other),
        }
        .map_err(|source| error(&path, source))?;
    }
    Ok(())
}

enum Entry {
    File(PathBuf),
    Folder(PathBuf),
    /// A symlink, a FIFO, a socket, a device.
    Other(PathBuf),
    /// A folder that cannot be read, after it was seen; an error if it must be.
    Closed(PathBuf),
}

enum Descend {
    Yes,
    No,
}

fn walk(root: &Path, see: &mut dyn FnMut(&Entry) -> Descend) -> Result<(), TreeError> {
    let git =
        crate::WorkTree::at(root).map_or_else(|_| Vec::new(), |tree| tree.git_below(tree.root()));
    let is_git = |path: &Path| git.iter().any(|git| path.strip_prefix(root) == Ok(git));
    let mut todo = vec![root.to_owned()];
    while let Some(folder) = todo.pop() {
        let entries = match code_commit_dir::list(&folder) {
            Err(source) if folder == root => return Err(error(root, source)),
            Err(closed)
                if closed.kind() == io::ErrorKind::PermissionDenied
                    && matches!(see(&Entry::Closed(folder.clone())), Descend::No) =>
            {
                continue;
            }
            entries => unless_gone(entries).map_err(|source| error(&folder, source))?,
        };
        for entry in entries.into_iter().flatten() {
            let entry = entry.map_err(|source| error(&folder, source))?;
            let path = entry.path();
            let kind = unless_gone(entry.file_type()).map_err(|source| error(&path, source))?;
            let Some(kind) = kind else { continue };
            if kind.is_dir() {
                if !is_git(&path)
                    && let Descend::Yes = see(&Entry::Folder(path.clone()))
                {
                    todo.push(path);
                }
            } else {
                see(&if kind.is_file() {
                    Entry::File(path)
                } else {
                    Entry::Other(path)
                });
            }
        }
    }
    Ok(())
}

fn counts(root: &Path, entry: &Entry) -> bool {
    match entry {
        Entry::Folder(path) => {
            let named = |name: &str| path.file_name().is_some_and(|last| last == name);
            !(path.file_name().is_some_and(is_left_out)
                || (named(STATE) && path.parent() == Some(root)))
        }
        Entry::File(path) => path.file_name().is_none_or(|name| name != ".git"),
        Entry::Other(_) => false,
        Entry::Closed(_) => true,
    }
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

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits
        .map(|digit| char::from_digit(digit.into(), 16).unwrap_or_default())
        .collect()
}

fn error(path: &Path, source: io::Error) -> TreeError {
    TreeError {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
