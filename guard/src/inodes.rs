//! Which inodes are protected, by whatever name they are written.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::folder::Folder;
use crate::lexical::is_too_long;
use crate::policy::Policy;

/// Device and inode.
pub(crate) type Inodes = HashSet<(u64, u64)>;

/// A folder that is looked into.
struct Level {
    folder: Arc<Folder>,
    /// From the root. None where everything counts as protected: below a protected folder, and deeper than any path that is judged.
    path: Option<String>,
}

/// Those of every protected file below the root, whatever git ignores.
///
/// A folder is opened when its turn comes, so that a wide tree does not use up the descriptors.
pub(crate) fn protected(root: &Arc<Folder>, policy: &Policy) -> io::Result<Inodes> {
    let mut inodes = HashSet::new();
    let top = Arc::new(Level { folder: Arc::clone(root), path: Some(String::new()) });
    let mut todo = look_into(&top, policy, &mut inodes)?;
    drop(top);
    while let Some((parent, name, path)) = todo.pop() {
        let folder = match parent.folder.open_in(&name) {
            Ok(folder) => Arc::new(folder),
            // What may not be read cannot be compared, its names are protected all the same; another disk has other inodes.
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::ACCESS | Errno::XDEV)) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        drop(parent);
        todo.extend(look_into(&Arc::new(Level { folder, path }), policy, &mut inodes)?);
    }
    Ok(inodes)
}

type Inner = (Arc<Level>, String, Option<String>);

/// Notes the inodes of one folder; returns the folders in it.
fn look_into(level: &Arc<Level>, policy: &Policy, inodes: &mut Inodes) -> io::Result<Vec<Inner>> {
    let mut inner = Vec::new();
    for (name, _) in level.folder.entries()? {
        let Ok(name) = String::from_utf8(name) else { continue };
        let Some(stat) = level.folder.stat(&name)? else { continue };
        let path = level.path.as_ref().map(|path| join(path, &name));
        let path = path.filter(|path| !is_too_long(path) && policy.protects(path).is_none());
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
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
