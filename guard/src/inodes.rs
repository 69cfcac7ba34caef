//! The inodes of protected files, which no other name may reach.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use rustix::fs::FileType;

use crate::lexical::is_too_long;
use crate::policy::Policy;
use crate::rules::is_closed;
use crate::tree::JudgeError;
use code_commit_dir::Folder;

/// Device and inode.
pub(crate) type Inodes = HashSet<(u64, u64)>;

/// A folder to search.
struct Level {
    folder: Arc<Folder>,
    /// Relative to the root. Inside a folder in which everything is protected, the path of the
    /// nearest ancestor in which not everything is.
    path: String,
    /// Below a protected folder, and deeper than any path that the guard accepts.
    is_protected: bool,
}

/// The inodes of every protected file below the root, including files that git ignores.
pub(crate) fn protected(root: &Arc<Folder>, policy: &Policy) -> Result<Inodes, JudgeError> {
    let mut inodes = HashSet::new();
    let top = Arc::new(Level {
        folder: Arc::clone(root),
        path: String::new(),
        is_protected: false,
    });
    let inner = look_into(&top, policy, &mut inodes).map_err(|source| JudgeError {
        path: String::new(),
        source,
    })?;
    drop(top);
    look_below(inner, policy, &mut inodes)?;
    Ok(inodes)
}

/// Opens each folder only when it is its turn, so that a wide tree does not use up all descriptors.
fn look_below(
    mut todo: Vec<Inner>,
    policy: &Policy,
    inodes: &mut Inodes,
) -> Result<(), JudgeError> {
    while let Some((parent, name, path)) = todo.pop() {
        let opened = parent.folder.open_in(&name);
        let is_protected = path.is_none();
        let path = path.unwrap_or_else(|| parent.path.clone());
        drop(parent);
        let found = opened.and_then(|folder| {
            let level = Level {
                folder: Arc::new(folder),
                path: path.clone(),
                is_protected,
            };
            look_into(&Arc::new(level), policy, inodes)
        });
        match found {
            Ok(inner) => todo.extend(inner),
            // An unreadable file cannot be compared, but its name is protected anyway. Another file
            // system has other inodes.
            Err(error) if is_closed(&error) => {}
            Err(source) => return Err(JudgeError { path, source }),
        }
    }
    Ok(())
}

/// A subfolder, with its path from the root unless everything in it is protected.
type Inner = (Arc<Level>, String, Option<String>);

/// Records the inodes in one folder and returns its subfolders.
fn look_into(level: &Arc<Level>, policy: &Policy, inodes: &mut Inodes) -> io::Result<Vec<Inner>> {
    let mut inner = Vec::new();
    for (name, _) in level.folder.entries()? {
        let Ok(name) = String::from_utf8(name) else {
            continue;
        };
        let Some(stat) = level.folder.stat(&name)? else {
            continue;
        };
        let path = Some(join(&level.path, &name)).filter(|path| {
            !level.is_protected && !is_too_long(path) && policy.protects(path).is_none()
        });
        if name == ".git" || path.is_none() {
            inodes.insert((stat.st_dev, stat.st_ino));
        }
        if name != ".git" && FileType::from_raw_mode(stat.st_mode).is_dir() {
            inner.push((Arc::clone(level), name, path));
        }
    }
    Ok(inner)
}

pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_that_is_gone_or_a_link_since_it_was_listed_is_passed_over() {
        let scratch = tempfile::tempdir().unwrap();
        for name in ["gone", "moved", "there/agent-config"] {
            fs::create_dir_all(scratch.path().join(name)).unwrap();
        }
        let folder = Arc::new(Folder::open(scratch.path()).unwrap());
        let top = Arc::new(Level {
            folder,
            path: String::new(),
            is_protected: false,
        });
        let policy = Policy::new().protect(["agent-config"]);
        let mut inodes = HashSet::new();
        let listed = look_into(&top, &policy, &mut inodes).unwrap();
        fs::remove_dir(scratch.path().join("gone")).unwrap();
        fs::remove_dir(scratch.path().join("moved")).unwrap();
        std::os::unix::fs::symlink("there", scratch.path().join("moved")).unwrap();
        look_below(listed, &policy, &mut inodes).unwrap();
        assert_eq!(inodes.len(), 1, "what is still there is looked at");
    }
}
