//! The state that the tree is restored to, and how.

use std::fs;
use std::io;
use std::path::Path;

use apply::Lock;
use repo::{EmptyFolder, Git, Head};

use engine::Problem;

use crate::fault::Fault;
use crate::kept::{UNDO, checked, undo_folders};
use crate::order::ignored::Ignored;
use crate::order::left::{self, Left};
use crate::order::world::unreadable;

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
    /// Restores the tree at `root` to its state before the run in the given folder. Content that the run did
    /// not write is first copied to that folder: it may be from commands or from the user. Gives warnings for
    /// the user.
    pub fn restore(&self, lock: &Lock, root: &Path, run: &Path) -> Result<Vec<Problem>, Fault> {
        let mut warnings = self.commits_left_out()?;
        let own = left::written(run)?;
        let left = Left::keep(&self.git, root, run, &own, self.ignored.differing(root))?;
        self.put_back(lock, root, run)?;
        warnings.extend(left.map(|left| left.warning()));
        warnings.extend(self.ignored.restore(root, &own.into_keys().collect()));
        Ok(warnings)
    }

    /// Restores first the files that the run wrote, ignored ones included, then what git tracks, then the
    /// folders unknown to git. Makes no copies.
    ///
    /// If that fails, untracked files are removed first, because commands may have filled the disk; so is
    /// anything that commands put in place of a file that the run wrote.
    pub fn put_back(&self, lock: &Lock, root: &Path, run: &Path) -> Result<(), Fault> {
        match self.put_back_once(lock, root, run) {
            Err(_) if self.git.clean().is_ok() => {
                for path in left::written(run)?.keys() {
                    // If it cannot be removed, the next line reports the obstacle.
                    let _ = dir::obstacle::remove(root, path);
                }
                self.put_back_once(lock, root, run)
            }
            done => done,
        }
    }

    fn put_back_once(&self, lock: &Lock, root: &Path, run: &Path) -> Result<(), Fault> {
        checked(run)?;
        let written = undo_folders(run)?;
        if !written.is_empty() {
            apply::undo(lock, root, &written, apply::Force::Yes).map_err(Fault::Restore)?;
        }
        self.git.roll_back(&self.head, &self.commit).map_err(Fault::RollBack)?;
        repo::restore_empty_folders(root, &self.empty_folders).map_err(unreadable)?;
        let undo = run.join(UNDO);
        match fs::remove_dir_all(&undo) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Fault::file("remove", &undo)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
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
