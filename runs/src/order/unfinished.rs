//! The run in progress in a work tree: noted in the harness's own state, so that the next command knows what
//! to restore.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use code_commit_apply::Lock;
use code_commit_perform::{Baseline, Fault, JOURNAL, Past};
use code_commit_repo::{Git, Head};
use serde::{Deserialize, Serialize};

use crate::driver::InTree;
use crate::exit::{Exit, Failure};
use crate::order::plan::{self, OrderPlan};
use crate::project::Project;
use crate::records;
use crate::registry::Known;

/// Its name in the state folder.
const FILE: &str = "order.json";

/// Everything needed to restore the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unfinished {
    /// The run folder.
    pub run: PathBuf,
    /// The commit that was checked out.
    pub commit: String,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// Whether the tree was restored before the run ended.
    pub restored: bool,
}

impl Unfinished {
    /// The tree is in the middle of the run in this folder, or was restored since.
    pub(crate) fn of(run: &Path, baseline: &Baseline, restored: bool) -> Self {
        Self {
            run: run.to_owned(),
            commit: baseline.commit.clone(),
            branch: branch(baseline.head.clone()),
            restored,
        }
    }

    pub(crate) fn read(state: &Path) -> anyhow::Result<Option<Self>> {
        let path = state.join(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        serde_json::from_slice(&text)
            .map(Some)
            .with_context(|| format!("cannot understand {}", path.display()))
    }

    /// Stores the run atomically.
    pub(crate) fn write(&self, state: &Path) -> anyhow::Result<()> {
        let path = state.join(FILE);
        let write = || code_commit_dir::replace(&path, &serde_json::to_vec_pretty(self)?);
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// Whether it made its commit: then the same command ends it.
    fn is_committed(&self, project: &Project<'_>, git: &Git) -> Result<bool, Failure> {
        let all = project.registry().all()?;
        let known = all
            .iter()
            .find(|known| known.path(&project.root) == self.run);
        let plan = known.and_then(|known| plan::load(known, &records::open(&self.run)).ok());
        plan.map_or(Ok(false), |(plan, _)| has_committed(&plan, git))
    }

    pub(crate) fn forget(state: &Path) -> anyhow::Result<()> {
        let path = state.join(FILE);
        code_commit_dir::remove(&path).with_context(|| format!("cannot remove {}", path.display()))
    }
}

/// `None` for a detached head.
pub(crate) fn branch(head: Head) -> Option<String> {
    match head {
        Head::Branch(name) => Some(name),
        Head::Detached => None,
    }
}

/// The state to restore.
pub(crate) fn baseline(git: Git, commit: &str, branch: Option<&str>) -> Baseline {
    let head = branch.map_or(Head::Detached, |name| Head::Branch(name.to_owned()));
    Baseline::of(git, commit.to_owned(), head)
}

/// What the tree holds of a run that was stopped; `None` if that cannot be read.
pub(crate) fn in_tree(known: &Known, project: &Project<'_>) -> Option<InTree> {
    let run = known.path(&project.root);
    let noted = Unfinished::read(&project.state().ok()?)
        .ok()?
        .filter(|unfinished| unfinished.run == run);
    Some(match noted {
        None => InTree::AsRecorded,
        Some(noted) if noted.restored => InTree::Restored,
        Some(_) => InTree::Unfinished,
    })
}

/// Whether the run made its commit, even if it was killed before its journal said so.
pub(super) fn has_committed(plan: &OrderPlan, git: &Git) -> Result<bool, Failure> {
    let made = git.commit_since(Some(&plan.repo_baseline_commit), &plan.last_line())?;
    Ok(plan.terms.commit && made.is_some())
}

/// Whether the run with this journal is over.
pub(super) fn is_finished(run: &Path) -> Result<bool, Failure> {
    let past = Past::read(run)
        .with_context(|| format!("cannot continue {}", run.display()))
        .map_err(|error| Failure::refused(error, "move that folder away to start a new run"))?;
    Ok(plan::is_over(&past))
}

/// A tree that could not be restored to its state before this run.
pub(super) fn not_restored(fault: Fault, run: &Path) -> Failure {
    let help = format!(
        "look at git status; what the run has done is in {}",
        run.display()
    );
    Failure::new(Exit::TreeNotRestored, fault).help(help)
}

/// Cleans up after a killed run: restores the tree to its state before that run. What was there is kept in
/// its folder. Gives the run if it can be resumed.
pub(super) fn clear_up(
    project: &Project<'_>,
    git: &Git,
    lock: &Lock,
) -> Result<Option<PathBuf>, Failure> {
    let (root, state, output) = (&project.root, &project.state()?, project.host.output);
    let Some(mut run) = Unfinished::read(state)? else {
        return Ok(None);
    };
    // Another clone may have moved it aside and put a run of its own there.
    let is_ours = project.registry().knows(&run.run)?;
    let has_journal = is_ours && run.run.join(JOURNAL).is_file();
    let into = if is_ours { &run.run } else { state };
    let has_written = !code_commit_perform::undo_folders(into)
        .map_err(|error| not_restored(error, into))?
        .is_empty();
    // A git that was committing when its harness was killed finishes its commit.
    git.index_lock()?;
    let is_at_baseline = git.commit_of("HEAD")?.as_deref() == Some(run.commit.as_str());
    let is_nothing = is_ours && !has_journal && !has_written;
    let is_over = || {
        Ok::<_, Failure>(
            has_journal
                && (is_finished(&run.run)?
                    || (!is_at_baseline && run.is_committed(project, git)?)),
        )
    };
    if is_nothing || is_over()? {
        Unfinished::forget(state)?;
        return Ok(None);
    }
    if !is_at_baseline {
        output.warn(&format!(
            "the run {} was not finished; since something was committed after it, it is not rolled back{}",
            run.run.display(),
            if code_commit_changes::has_taken_in(&run.run) {
                "; what it had moved aside is in `backup/left…` there"
            } else {
                ""
            },
        ));
        Unfinished::forget(state)?;
        return Ok(None);
    }
    if !run.restored {
        let mut baseline = baseline(git.clone(), &run.commit, run.branch.as_deref());
        let warnings = baseline
            .reopen(root, into)
            .and_then(|()| baseline.restore(lock, root, into))
            .map_err(|error| not_restored(error, into))?;
        if has_written || !warnings.is_empty() {
            output.warn("a run was killed here; the tree is restored to its state before it");
        }
        warnings
            .iter()
            .for_each(|warning| output.warn(&warning.message));
        // From here on changes in the tree are the user's.
        run.restored = true;
        run.write(state)?;
    }
    Ok(Some(run.run).filter(|_| has_journal))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_written_through_a_link_in_the_place_of_the_note() {
        let state = tempfile::tempdir().unwrap();
        let other = state.path().join("other");
        fs::File::create(&other).unwrap();
        for name in [FILE, "order.json.new", ".order.json.new"] {
            symlink(&other, state.path().join(name)).unwrap();
        }
        let run = Unfinished {
            run: "/out/run".into(),
            commit: String::new(),
            branch: None,
            restored: false,
        };
        run.write(state.path()).unwrap();
        assert_eq!(fs::metadata(&other).unwrap().len(), 0);
        assert_eq!(Unfinished::read(state.path()).unwrap(), Some(run));
    }
}
