//! The state that the tree is restored to, and how.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use code_commit_apply::Lock;
use code_commit_repo::{EmptyFolder, Git, Head};

use code_commit_engine::Problem;

use crate::attic::Attic;
use crate::fault::Fault;
use crate::kept::{checked, sha256_on_disk, undo_folders};
use crate::order::ignored::Ignored;
use crate::order::world::unreadable;
use crate::record::UNDO;
use crate::restore;

/// The tree before the first attempt.
#[derive(Debug)]
pub struct Baseline {
    /// The git program for the tree.
    pub git: Git,
    /// The commit that was checked out; the tree was clean.
    pub commit: String,
    /// Where `HEAD` pointed.
    pub head: Head,
    /// Folders unknown to git.
    pub empty_folders: Vec<EmptyFolder>,
    /// Ignored files.
    pub ignored: Ignored,
}

impl Baseline {
    /// Restores the tree at `root` to its state before the run in the given folder: first the files that the
    /// run wrote, ignored ones included, then what git tracks, then the folders unknown to git. Whatever the run
    /// did not write is moved to that folder: it may be from commands or from the user. Gives warnings for the
    /// user.
    pub fn restore(&self, lock: &Lock, root: &Path, run: &Path) -> Result<Vec<Problem>, Fault> {
        self.restore_into(lock, root, run, Attic::of(run).or_in(lock.state()))
    }

    /// Restores it, with an attic that may have taken something in before.
    pub(super) fn restore_into(
        &self,
        lock: &Lock,
        root: &Path,
        run: &Path,
        mut attic: Attic<'_>,
    ) -> Result<Vec<Problem>, Fault> {
        let mut warnings = self.commits_left_out()?;
        let own = written(run)?;
        let mut foreign = differing(&self.git)?;
        foreign.extend(own.keys().map(PathBuf::from));
        foreign.extend(self.ignored.differing(root));
        foreign.retain(|path| !is_as_written(root, path, &own));
        for path in &foreign {
            attic
                .take_from(root, path)
                .map_err(Fault::file("move aside", path))?;
        }
        checked(run)?;
        restore::undo(lock, root, &undo_folders(run)?, &mut attic)?;
        let aside =
            &mut |path: &Path| attic.take_from(root, path.strip_prefix(root).unwrap_or(path));
        self.git
            .roll_back(&self.head, &self.commit, aside)
            .map_err(Fault::RollBack)?;
        self.restore_folders(root)?;
        let undo = run.join(UNDO);
        code_commit_dir::remove(&undo).map_err(Fault::file("remove", &undo))?;
        let ignored = self
            .ignored
            .restore(root, &mut attic, &own.into_keys().collect());
        warnings.extend(attic.warning());
        warnings.extend(ignored);
        Ok(warnings)
    }

    /// Git knows no empty folders.
    fn restore_folders(&self, root: &Path) -> Result<(), Fault> {
        let (now, new) = (
            code_commit_repo::empty_folders(root).map_err(unreadable)?,
            self.git.untracked().map_err(Fault::Git)?,
        );
        let is_new = |folder: &&EmptyFolder| {
            self.empty_folders.iter().all(|was| was.path != folder.path)
                && new.iter().any(|new| folder.path.starts_with(new))
        };
        // The innermost first. Only empty ones can be removed like that.
        now.iter()
            .rev()
            .filter(is_new)
            .for_each(|folder| drop(fs::remove_dir(root.join(&folder.path))));
        code_commit_repo::restore_empty_folders(root, &self.empty_folders).map_err(unreadable)
    }

    /// A commit made meanwhile is no longer on the branch after the rollback; git still has it.
    fn commits_left_out(&self) -> Result<Vec<Problem>, Fault> {
        let now = self.git.commit_of("HEAD").map_err(Fault::Git)?;
        let made = now.filter(|now| *now != self.commit);
        let warning = made.map(|made| Problem {
            code: "commit".to_owned(),
            path: None,
            line: None,
            message: format!("the commit {made} was made while the run was under way; it is not checked out any more, git show {made} has it"),
        });
        Ok(warning.into_iter().collect())
    }
}

/// The hash of each file as the run last wrote it; `None` if the run deleted it.
type Written = BTreeMap<String, Option<String>>;

/// Everything that differs from the commit that is checked out, including in submodules.
fn differing(git: &Git) -> Result<BTreeSet<PathBuf>, Fault> {
    let mut found = BTreeSet::new();
    let submodules = git.submodules().map_err(Fault::Git)?;
    found.extend(
        git.dirty_paths()
            .map_err(Fault::Git)?
            .into_iter()
            .filter(|path| !submodules.contains(path)),
    );
    for path in &submodules {
        let inside = git.folder().join(path);
        // In an empty folder git would find the enclosing repository.
        if inside.join(".git").symlink_metadata().is_ok() {
            found.extend(
                differing(&git.at(inside))?
                    .into_iter()
                    .map(|below| path.join(below)),
            );
        }
    }
    Ok(found)
}

/// The files that the run in this folder has written.
fn written(run: &Path) -> Result<Written, Fault> {
    let mut written = Written::new();
    for undo in undo_folders(run)? {
        let applied = code_commit_apply::read_applied(&undo).map_err(Fault::Undo)?;
        let changes = applied.into_iter().flat_map(|applied| applied.changes);
        written.extend(changes.map(|change| (change.path, change.after_sha256)));
    }
    Ok(written)
}

fn is_as_written(root: &Path, path: &Path, own: &Written) -> bool {
    let Some(Some(sha256)) = path.to_str().and_then(|path| own.get(path)) else {
        return false;
    };
    sha256_on_disk(&root.join(path)).as_ref() == Some(sha256)
}
