//! The summary of a run that was killed after its end but before its summary.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use code_commit_perform::{JOURNAL, Past};
use code_commit_repo::WorkTree;
use code_commit_report::SUMMARY;

use crate::changes;
use crate::commit::rerun::elapsed;
use crate::commit::run::summarize;
use crate::order::recorded::Recorded;
use crate::records;
use crate::registry;

/// Writes the missing summaries. The caller holds the lock, so no run is about to write its own.
pub(crate) fn summaries(tree: &WorkTree) -> anyhow::Result<()> {
    let Ok(known) = registry::all(tree) else { return Ok(()) };
    for run in known.iter().filter(|run| run.has_plan()).map(|run| run.path(tree.root())) {
        if !Recorded::is_in(&run) && !is_current(&run) {
            summary(tree.root(), &run)
                .with_context(|| format!("cannot write {SUMMARY} of {}", run.display()))?;
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

fn summary(root: &Path, run: &Path) -> anyhow::Result<()> {
    // An unreadable one is reported by the command that asks for it.
    let Ok(past) = Past::read(run) else { return Ok(()) };
    let Some(outcome) = past.outcome().cloned() else { return Ok(()) };
    let changes = changes::of_run(root, run)?;
    let folder = records::open(run);
    summarize(root, &folder, &past.lines, &changes, outcome, elapsed(&past)).map(drop)
}
