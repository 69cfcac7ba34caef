//! The state that the tree is restored to, and how.

use std::fs;
use std::path::{Path, PathBuf};

use code_commit_apply::Lock;
use code_commit_repo::{EmptyFolder, Git, Head};

use code_commit_engine::Problem;

use crate::fault::Fault;
use crate::kept::{checked, undo_folders};
use crate::order::foreign::{self, Left, Written};
use crate::order::ignored::Ignored;
use crate::order::world::unreadable;
use crate::record::UNDO;

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
        let mut warnings = self.commits_left_out()?;
        let own = foreign::written(run)?;
        let mut left = Left::new(root, run, lock.state());
        let mut foreign = foreign::differing(&self.git)?;
        foreign.extend(own.keys().map(PathBuf::from));
        foreign.extend(self.ignored.differing(root));
        foreign.retain(|path| !foreign::is_as_written(root, path, &own));
        for path in &foreign {
            left.take(path).map_err(Fault::file("move aside", path))?;
        }
        undo(lock, root, run, &own, &mut left)?;
        let aside = &mut |path: &Path| left.take(path.strip_prefix(root).unwrap_or(path));
        self.git.roll_back(&self.head, &self.commit, aside).map_err(Fault::RollBack)?;
        self.restore_folders(root)?;
        let undo = run.join(UNDO);
        code_commit_dir::remove(&undo).map_err(Fault::file("remove", &undo))?;
        warnings.extend(left.warning());
        warnings.extend(self.ignored.restore(root, run, &own.into_keys().collect()));
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
        now.iter().rev().filter(is_new).for_each(|folder| drop(fs::remove_dir(root.join(&folder.path))));
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

/// Restores what the run wrote. What somebody saved there meanwhile is kept.
fn undo(lock: &Lock, root: &Path, run: &Path, own: &Written, left: &mut Left<'_>) -> Result<(), Fault> {
    checked(run)?;
    let written = undo_folders(run)?;
    if written.is_empty() {
        return Ok(());
    }
    let undone = code_commit_apply::undo(lock, root, &written, code_commit_apply::Force::Yes)
        .map_err(Fault::Restore)?;
    for image in code_commit_apply::pre_images(&undone.replaced).map_err(Fault::Undo)? {
        if own.get(&image.path) == Some(&image.sha256) {
            continue;
        }
        if let Some(content) = image.content(u64::MAX).map_err(Fault::Undo)? {
            left.keep(&image.path, &content).map_err(Fault::file("keep", Path::new(&image.path)))?;
        }
    }
    Ok(())
}
