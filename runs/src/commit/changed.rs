//! Detects changes made to the tree since a run was stopped. Its prompts do not include them, and its next
//! change may revert them. Without its own changes it would go on from a state that it never saw.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use code_commit_logging::RunFolder;
use code_commit_perform::{sha256_on_disk, undo_folders};
use code_commit_repo::WorkTree;
use code_commit_report::phrases;
use code_commit_settings::Environment;

use crate::commit::plan::Plan;
use crate::exit::Failure;
use crate::order::preflight::git;
use crate::records;

/// Files named in a message.
const NAMED: usize = 5;

/// Refuses to resume if a file was committed since the run began, or written since it was stopped, unless it
/// is as the run left it; or if a file is no longer as the run left it.
pub(crate) fn refuse(
    tree: &WorkTree,
    plan: &Plan,
    run: &RunFolder,
    environment: &Environment,
) -> Result<(), Failure> {
    let cannot = |error: anyhow::Error| {
        Failure::refused(
            error,
            "make sure that git works here, or continue with --force",
        )
    };
    let root = tree.root();
    let left = || {
        let rounds = undo_folders(run.path())?;
        // A run that was killed right after it had restored the tree restores it again.
        let restored = plan.restore_on_failure && code_commit_changes::were_undone(&rounds);
        anyhow::Ok(if restored {
            code_commit_apply::hashes_before(&rounds)
        } else {
            code_commit_apply::hashes_after(&rounds)
        }?)
    };
    let left = left().map_err(cannot)?;
    let stopped = last_sign(run.path());
    let own = plan.task.which.said_log(root);
    let git = git(tree, &plan.settings, environment)?;
    let mut changed = tree.status(&git)?.dirty;
    changed.retain(|path| is_newer(&root.join(path), stopped));
    if let (Some(then), Some(now)) = (&plan.head, tree.head()?)
        && *then != now
    {
        let below = root.strip_prefix(tree.top()).unwrap_or(Path::new(""));
        let committed = git.differing_between(then, &now)?;
        changed.extend(
            committed
                .iter()
                .filter_map(|path| path.strip_prefix(below).ok())
                .map(Path::to_owned),
        );
    }
    let is_as_left =
        |(path, hash): (&String, &Option<String>)| *hash == sha256_on_disk(&root.join(path));
    let is_own = |path: &Path| path.to_str().is_some_and(|path| left.contains_key(path));
    changed.retain(|path| !is_own(path) && own.as_ref() != Some(&root.join(path)));
    // Whatever git and the times say: the run's changes may have been stashed, or undone by an undo that was killed.
    changed.extend(
        left.iter()
            .filter(|one| !is_as_left(*one))
            .map(|(path, _)| PathBuf::from(path)),
    );
    changed.sort();
    changed.dedup();
    if changed.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = changed
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let name = records::name(run.path());
    let error = anyhow!(
        "the tree has changed since {name} was stopped: {}",
        phrases::first(&names, NAMED)
    );
    Err(Failure::refused(
        error,
        format!("to continue anyway: code-commit resume {name} --force; or begin a new run"),
    ))
}

/// When the run last wrote to its record, by the file system's clock.
fn last_sign(run: &Path) -> (i64, i64) {
    let entries = code_commit_dir::list(run).into_iter().flatten().flatten();
    // Folders in it also change when a killed run is settled.
    let files = entries
        .filter_map(|entry| entry.metadata().ok())
        .filter(std::fs::Metadata::is_file);
    let written = files.map(|found| (found.mtime(), found.mtime_nsec()));
    written.max().unwrap_or_default()
}

/// Whether a file was made, changed or removed since then. Uses the change time, which cannot be set.
fn is_newer(path: &Path, stopped: (i64, i64)) -> bool {
    let there = path
        .ancestors()
        .find_map(|path| fs::symlink_metadata(path).ok());
    there.is_some_and(|found| (found.ctime(), found.ctime_nsec()) >= stopped)
}
