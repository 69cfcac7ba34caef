//! The summary of a run in numbers, as a file of its folder.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use code_commit_logging::RunFolder;
use code_commit_perform::{JOURNAL, Past};
use code_commit_report::{SUMMARY, Summary};
use code_commit_timeline::RunView;

use crate::changes::{self, FileChange};
use crate::kind::LoopKind;
use crate::project::Project;
use crate::records;

/// None for a run that has not ended.
pub(super) fn summary(
    root: &Path,
    run: &RunFolder,
    kind: &LoopKind,
    steps: &RunView,
    changes: &[FileChange],
) -> Option<Summary> {
    let files = changes.iter().map(FileChange::stat).collect();
    // The path of a loop's own summary is printed (S2 §3).
    let log = match kind.own_summary {
        Some(file) => run.path().join(file).display().to_string(),
        None => short_log(run, root),
    };
    let outcome = steps.outcome.clone()?;
    Some(Summary::of(steps, kind.step, outcome, files, log))
}

/// The folder of a run as a person is shown it.
fn short_log(run: &RunFolder, root: &Path) -> String {
    run.path()
        .strip_prefix(root)
        .unwrap_or(run.path())
        .display()
        .to_string()
}

/// Writes the summaries of runs that were killed after their end and before their summary. The caller holds the
/// lock, so no run is about to write its own.
pub(crate) fn missing_summaries(project: &Project<'_>) -> anyhow::Result<()> {
    let Ok(all) = project.registry().all() else {
        return Ok(());
    };
    for known in all.iter().filter(|known| known.has_plan()) {
        let run = records::open(&known.path(&project.root));
        let Some(kind) = project
            .kind(known)
            .filter(|kind| kind.own_summary.is_none())
        else {
            continue;
        };
        if is_current(run.path()) {
            continue;
        }
        // An unreadable one is reported by the command that asks for it.
        let Ok(past) = Past::read(run.path()) else {
            continue;
        };
        let changes = changes::of_run(&project.root, run.path())?;
        let steps = past.steps();
        let summary = summary(&project.root, &run, kind, &steps, &changes);
        if let Some(summary) = summary {
            run.store_json(SUMMARY, &summary)
                .with_context(|| format!("cannot write {SUMMARY} of {}", run.path().display()))?;
        }
    }
    Ok(())
}

/// Whether the summary exists and is newer than the journal: a run may have ended and then been resumed.
fn is_current(run: &Path) -> bool {
    let written = |name| fs::metadata(run.join(name)).and_then(|found| found.modified());
    match (written(SUMMARY), written(JOURNAL)) {
        (Ok(summary), Ok(journal)) => summary >= journal,
        (_, journal) => journal.is_err(),
    }
}
