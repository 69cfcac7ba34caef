//! The state that the tree is restored to, and how.

use std::path::Path;

use code_commit_apply::Lock;
use code_commit_changes::{Backup, ChangeEngine, Scope};
use code_commit_engine::{IGNORED_FILES, Problem};
use code_commit_guard::Guard;
use code_commit_repo::{Git, Head};

use crate::fault::Fault;
use crate::sets::{checked, forget_sets, sha256_on_disk, undo_folders};

/// Its folder below the backup.
pub const BASELINE: &str = "baseline";

/// The tree before the first attempt.
#[derive(Debug)]
pub struct Baseline {
    pub(super) git: Git,
    /// The commit that was checked out; the tree was clean.
    pub commit: String,
    /// Where `HEAD` pointed.
    pub head: Head,
    /// Everything else: ignored files, folders, modes.
    tree: ChangeEngine,
}

impl Baseline {
    /// Of this commit. Looks at nothing yet.
    pub fn of(git: Git, commit: String, head: Head) -> Self {
        let tree = ChangeEngine::new(Scope {
            who: "the run".into(),
            before: Some(BASELINE),
            names_products: true,
            ..Scope::default()
        });
        Self {
            git,
            commit,
            head,
            tree,
        }
    }

    /// Looks at the tree, and copies what git could not restore; the run's own files, relative to the root, are left
    /// out. Warns of what there is no room for.
    pub fn begin(
        &mut self,
        guard: &Guard,
        run: &Path,
        own: impl IntoIterator<Item = std::path::PathBuf>,
    ) -> Result<Option<Problem>, Fault> {
        self.tree.scope.own.extend(own);
        Ok(self.tree.open(guard, run)?)
    }

    /// Goes on with what a killed run in this folder noted, if it did.
    pub fn reopen(&mut self, root: &Path, run: &Path) -> Result<(), Fault> {
        self.tree.reopen(root, run)?;
        Ok(())
    }

    /// The copies are not needed any more.
    pub(super) fn end(&mut self, run: &Path) -> Result<(), Fault> {
        Ok(self.tree.end(run)?)
    }

    /// Restores the tree at `root` to its state before the run in the given folder: first the files that the
    /// run wrote, then everything else that differs. Whatever the run did not write is moved to the backup: it may be
    /// from commands or from the user. The copies go then. Gives warnings for the user.
    pub fn restore(&mut self, lock: &Lock, root: &Path, run: &Path) -> Result<Vec<Problem>, Fault> {
        let warnings = self.restore_into(lock, root, run, Backup::of(run).or_in(lock.state()))?;
        self.end(run).map(|()| warnings)
    }

    /// Restores it, with a backup that may have taken something in before.
    pub(super) fn restore_into(
        &mut self,
        lock: &Lock,
        root: &Path,
        run: &Path,
        mut backup: Backup<'_>,
    ) -> Result<Vec<Problem>, Fault> {
        let mut warnings = self.commits_left_out()?;
        checked(run)?;
        let sets = undo_folders(run)?;
        for (path, left) in code_commit_apply::hashes_after(&sets).map_err(Fault::Undo)? {
            if sha256_on_disk(&root.join(&path)) != left {
                let taken = backup.take_from(root, path.as_ref());
                taken.map_err(Fault::file("move aside", path.as_ref()))?;
            }
        }
        code_commit_changes::undo(lock, root, &sets, &mut backup)?;
        let (_, mut gone) = self.tree.restore_all(root, &mut backup)?;
        let aside =
            &mut |path: &Path| backup.take_from(root, path.strip_prefix(root).unwrap_or(path));
        self.git
            .roll_back(&self.head, &self.commit, aside)
            .map_err(Fault::RollBack)?;
        forget_sets(run)?;
        // Git has those that it tracks.
        let index = self.git.tree().map_err(Fault::Git)?.index();
        let index = index.map_err(|error| Fault::Git(error.into()))?;
        gone.retain(|path| !index.iter().any(|one| one.path == Path::new(path)));
        warnings.extend(backup.warning());
        warnings.extend(not_restored(&gone));
        Ok(warnings)
    }

    /// A commit made meanwhile is no longer on the branch after the rollback; git still has it.
    fn commits_left_out(&self) -> Result<Vec<Problem>, Fault> {
        let now = self.git.commit_of("HEAD").map_err(Fault::Git)?;
        let made = now.filter(|now| *now != self.commit);
        let warning = made.map(|made| Problem {
            code: "commit".to_owned(),
            path: None,
            line: None,
            message: format!("the commit {made} was made while the run was under way; it is no longer checked out; git show {made} shows it"),
        });
        Ok(warning.into_iter().collect())
    }
}

fn not_restored(gone: &[String]) -> Option<Problem> {
    let message = format!(
        "ignored files were changed or removed while the run was under way and are not restored: {}",
        code_commit_changes::named(gone)
    );
    (!gone.is_empty()).then(|| Problem::new(IGNORED_FILES, message))
}
