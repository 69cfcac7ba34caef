//! Files that git ignores, which it neither resets nor knows: the small ones are remembered and put back, of the others it is known
//! whether they are still what they were.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use repo::Git;

use engine::Problem;

use crate::fault::Fault;
use crate::order::left::names;
use crate::seal::{Restored, Seal};

/// A file up to this length is remembered.
const SMALL_BYTES: u64 = 64 << 10;
/// So many of them.
const MOST_SMALL: usize = 200;
/// So many files are looked at in all: ignored folders hold what builds make.
const MOST_FILES: usize = 20_000;

/// Ignored files as they were.
#[derive(Debug, Default)]
pub struct Ignored {
    /// The small files that a pattern names, not what lies in a folder that is ignored as a whole: part of a build's products would be
    /// worse than all or none of them.
    small: Option<Seal>,
    /// All others.
    others: Vec<Group>,
}

/// A large file, or what lies in a folder.
#[derive(Debug)]
struct Group {
    /// As git names it.
    name: String,
    /// Relative to the root.
    files: Vec<(PathBuf, Mark)>,
}

/// Length, time of the last change, inode.
type Mark = (u64, i64, i64, u64);

impl Ignored {
    /// Looks at the ignored files of a tree, as far as the bounds reach.
    pub fn look(git: &Git, root: &Path) -> Result<Self, Fault> {
        let (mut small, mut others, mut room) = (Vec::new(), Vec::new(), MOST_FILES);
        for name in git.ignored().map_err(Fault::Git)? {
            // The harness writes there while the run is under way.
            if name.split('/').next() == Some(names::ours::STATE) {
                continue;
            }
            let path = PathBuf::from(&name);
            let Ok(found) = fs::symlink_metadata(root.join(&path)) else { continue };
            if found.is_file() && found.len() <= SMALL_BYTES && small.len() < MOST_SMALL {
                small.push(path);
                continue;
            }
            let mut files = Vec::new();
            look_into(root, path, room, &mut files);
            room -= files.len().min(room);
            others.push(Group { name, files });
        }
        let seal = Seal::take(root, &small);
        let seal = seal.map_err(Fault::file("look at", root))?;
        Ok(Self { small: Some(seal), others })
    }

    /// Those of the remembered files that are there with another content: putting them back takes that away.
    pub(super) fn differing(&self, root: &Path) -> Vec<PathBuf> {
        let differing = self.small.iter().flat_map(Seal::differing);
        let there = differing.filter(|path| fs::symlink_metadata(root.join(path)).is_ok());
        there.map(Path::to_owned).collect()
    }

    /// Puts the remembered files back, and says which of the others differ; of the run's own ones others take care.
    pub(super) fn restore(&self, root: &Path, own: &BTreeSet<String>) -> Option<Problem> {
        let Restored { lost: mut differ, unseen, .. } =
            self.small.as_ref().map(Seal::put_all_back).unwrap_or_default();
        differ.extend(unseen.into_iter().map(|(path, _)| path.display().to_string()));
        for Group { name, files } in &self.others {
            let differs = |(path, before): &&(PathBuf, Mark)| {
                fs::symlink_metadata(root.join(path)).map_or(true, |now| mark(&now) != *before)
                    && path.to_str().is_none_or(|path| !own.contains(path))
            };
            match files.iter().filter(differs).count() {
                0 => {}
                1 => differ.push(name.clone()),
                count => differ.push(format!("{name} ({count} files)")),
            }
        }
        if differ.is_empty() {
            return None;
        }
        let message = format!(
            "ignored files were changed or removed while the run was under way and are not restored: {}",
            names(&differ)
        );
        Some(Problem { code: engine::IGNORED_FILES.to_owned(), path: None, line: None, message })
    }
}

/// Marks a file, or the files below a folder, through no link. What cannot be read cannot be compared; what does not count in the tree's
/// hash does not count here.
fn look_into(root: &Path, path: PathBuf, most: usize, files: &mut Vec<(PathBuf, Mark)>) {
    let mut todo = vec![path];
    while let Some(path) = todo.pop().filter(|_| files.len() < most) {
        let Ok(found) = fs::symlink_metadata(root.join(&path)) else { continue };
        if found.is_file() {
            files.push((path, mark(&found)));
        } else if found.is_dir() && !path.file_name().is_some_and(repo::is_left_out) {
            let entries = fs::read_dir(root.join(&path)).into_iter().flatten().flatten();
            todo.extend(entries.map(|entry| path.join(entry.file_name())));
        }
    }
}

fn mark(found: &fs::Metadata) -> Mark {
    (found.len(), found.mtime(), found.mtime_nsec(), found.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_that_git_cannot_be_asked_about_is_not_said_to_be_beyond_repair() {
        let folder = tempfile::tempdir().unwrap();
        let fault = Ignored::look(&Git::new(folder.path(), []), folder.path()).unwrap_err();
        assert_eq!(fault.to_string(), "cannot ask git about the tree");
    }
}
