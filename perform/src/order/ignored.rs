//! Ignored files, which git does not restore: small ones are remembered and restored, and of the others we
//! detect changes.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use code_commit_repo::Git;

use code_commit_engine::Problem;

use crate::attic::Attic;
use crate::fault::Fault;
use crate::paths::named;
use crate::seal::{Restored, Seal};

/// Larger files are not remembered.
const SMALL_BYTES: u64 = 64 << 10;
/// Small files to remember at most.
const MOST_SMALL: usize = 200;

/// Ignored files as they were.
#[derive(Debug, Default)]
pub struct Ignored {
    /// Small files ignored by name. The content of a folder that is ignored as a whole is left out: restoring
    /// only part of a build's products would be worse than restoring all or none.
    small: Option<Seal>,
    others: Vec<Group>,
}

/// A large file, or the content of a folder.
#[derive(Debug)]
struct Group {
    /// The name that git uses.
    name: String,
    /// Relative to the root.
    files: Vec<(PathBuf, Mark)>,
}

/// Length, time of the last change, inode.
type Mark = (u64, i64, i64, u64);

impl Ignored {
    /// Records the ignored files of a tree.
    pub fn look(git: &Git, root: &Path) -> Result<Self, Fault> {
        let (mut small, mut others) = (Vec::new(), Vec::new());
        for name in git.ignored().map_err(Fault::Git)? {
            // The harness writes there during the run.
            if name.split('/').next() == Some(code_commit_names::ours::STATE) {
                continue;
            }
            let path = PathBuf::from(&name);
            let Ok(found) = fs::symlink_metadata(root.join(&path)) else {
                continue;
            };
            if found.is_file() && found.len() <= SMALL_BYTES && small.len() < MOST_SMALL {
                small.push(path);
                continue;
            }
            let mut files = Vec::new();
            look_into(root, path, &mut files);
            others.push(Group { name, files });
        }
        let seal = Seal::take(root, &small);
        let seal = seal.map_err(Fault::file("look at", root))?;
        Ok(Self {
            small: Some(seal),
            others,
        })
    }

    /// The remembered files whose content differs: restoring overwrites them.
    pub(super) fn differing(&self, root: &Path) -> Vec<PathBuf> {
        let differing = self.small.iter().flat_map(Seal::differing);
        let there = differing.filter(|path| fs::symlink_metadata(root.join(path)).is_ok());
        there.map(Path::to_owned).collect()
    }

    /// Restores the remembered files, and says which of the others differ; the run's own files are handled
    /// elsewhere.
    pub(super) fn restore(
        &self,
        root: &Path,
        attic: &mut Attic<'_>,
        own: &BTreeSet<String>,
    ) -> Option<Problem> {
        let Restored {
            lost: mut differ,
            unseen,
            ..
        } = self
            .small
            .as_ref()
            .map(|seal| seal.put_all_back(attic))
            .unwrap_or_default();
        differ.extend(
            unseen
                .into_iter()
                .map(|(path, _)| path.display().to_string()),
        );
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
            named(&differ)
        );
        Some(Problem {
            code: code_commit_engine::IGNORED_FILES.to_owned(),
            path: None,
            line: None,
            message,
        })
    }
}

/// Marks a file, or the files below a folder; follows no symlink. Skips what cannot be read and what the
/// tree's hash does not include.
fn look_into(root: &Path, path: PathBuf, files: &mut Vec<(PathBuf, Mark)>) {
    let mut todo = vec![path];
    while let Some(path) = todo.pop() {
        let Ok(found) = fs::symlink_metadata(root.join(&path)) else {
            continue;
        };
        if found.is_file() {
            files.push((path, mark(&found)));
        } else if found.is_dir() && !path.file_name().is_some_and(code_commit_repo::is_left_out) {
            let entries = code_commit_dir::list(root.join(&path))
                .into_iter()
                .flatten()
                .flatten();
            todo.extend(entries.map(|entry| path.join(entry.file_name())));
        }
    }
}

fn mark(found: &fs::Metadata) -> Mark {
    (found.len(), found.mtime(), found.mtime_nsec(), found.ino())
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests make trees with plain writes"
)]
mod tests {
    use super::*;

    #[test]
    fn no_ignored_file_is_one_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        code_commit_repo::init(root).unwrap();
        let write = |path: &str, text: &[u8]| fs::write(root.join(path), text).unwrap();
        write(".gitignore", b"/a/\n/z/\n");
        fs::create_dir(root.join("a")).unwrap();
        fs::create_dir(root.join("z")).unwrap();
        (0..20_000).for_each(|number| write(&format!("a/{number}"), b""));
        write("z/data", b"rows");
        let seen = Ignored::look(&Git::new(root, "git", []), root).unwrap();
        write("z/data", b"none at all");
        let mut attic = Attic::of(root);
        let told = seen.restore(root, &mut attic, &BTreeSet::new()).unwrap();
        assert!(told.message.ends_with(": z/"), "{}", told.message);
    }

    #[test]
    fn a_tree_that_git_cannot_be_asked_about_is_not_said_to_be_beyond_repair() {
        let folder = tempfile::tempdir().unwrap();
        let fault = Ignored::look(&Git::new(folder.path(), "git", []), folder.path()).unwrap_err();
        assert_eq!(fault.to_string(), "cannot ask git about the tree");
    }
}
