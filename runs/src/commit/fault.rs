//! Why a run was stopped from the outside, and what to do about it.

use std::path::Path;

use code_commit_apply::ApplyError;
use code_commit_changes::BACKUP;
use code_commit_logging::RunFolder;
use code_commit_perform::Fault;

use crate::changes::{self, FileChange};
use crate::exit::{Exit, Failure};
use crate::records;
use code_commit_report::{FileStat, phrases};

/// Changed files of an interrupted run named in a message.
const NAMED_FILES: usize = 5;

/// Why the run was stopped from the outside.
pub(crate) fn fault(error: Fault, root: &Path, folder: &RunFolder) -> Failure {
    let name = records::name(folder.path());
    if matches!(error, Fault::KeyInPrompt { .. }) {
        return Failure::refused(
            error,
            "take the key out of the query and of the code roll-up",
        );
    }
    if matches!(error, Fault::Interrupted) {
        return Failure::new(Exit::Interrupted, error).help(after_interruption(root, folder));
    }
    if matches!(error, Fault::Seal { .. }) {
        let help =
            "see what stands there now and put it right by hand; nothing was built after that";
        return Failure::new(Exit::TreeNotRestored, error).help(help);
    }
    if matches!(error, Fault::Restore(_)) || leaves_tree_changed(&error) {
        let kept = folder.path().join(BACKUP);
        let help = format!(
            "the old contents are in {}; what happened: code-commit show {name}",
            kept.display()
        );
        return Failure::new(Exit::TreeNotRestored, error).help(help);
    }
    let go_on = format!("then continue: code-commit resume {name}");
    if matches!(error, Fault::Apply(ApplyError::Changed { .. })) {
        return Failure::refused(
            error,
            format!("nothing of the reply was written; look at the file, {go_on}"),
        );
    }
    Failure::new(Exit::Fault, error).help(format!("fix that, {go_on}"))
}

/// Whether a transaction failed and could not be reverted.
pub fn leaves_tree_changed(fault: &Fault) -> bool {
    matches!(fault, Fault::Apply(error) if error.leaves_tree_changed())
}

/// What has changed, and what to do.
fn after_interruption(root: &Path, folder: &RunFolder) -> String {
    let name = records::name(folder.path());
    let go_on = format!("go on with: code-commit resume {name}");
    let stats: Vec<FileStat> = changes::of_run(root, folder.path())
        .unwrap_or_default()
        .iter()
        .map(FileChange::stat)
        .collect();
    if stats.is_empty() {
        return go_on;
    }
    let files: Vec<String> = stats
        .iter()
        .map(|file| format!("{} {}", file.status, file.path))
        .collect();
    let files = phrases::first(&files, NAMED_FILES);
    format!("changed so far: {files}; {go_on}; put them back with: code-commit undo {name}")
}
