//! The summary of a run in numbers, as a file of its folder.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use code_commit_logging::RunFolder;
use code_commit_perform::{JOURNAL, Past};
use code_commit_report::{SUMMARY, Summary};
use jiff::Timestamp;

use crate::changes::{self, FileChange};
use crate::records;
use crate::site::Site;

/// None for a run that has not ended.
pub(super) fn summary(
    root: &Path,
    run: &RunFolder,
    past: &Past,
    changes: &[FileChange],
    took: Duration,
) -> Option<Summary> {
    let files = changes.iter().map(FileChange::stat).collect();
    Some(Summary::of(
        &past.lines,
        past.outcome()?.clone(),
        files,
        took,
        short_log(run, root),
    ))
}

/// The folder of a run as a person is shown it.
pub(crate) fn short_log(run: &RunFolder, root: &Path) -> String {
    run.path()
        .strip_prefix(root)
        .unwrap_or(run.path())
        .display()
        .to_string()
}

/// From the first line of a journal to the last: nothing more precise is known of a run that is over.
pub(super) fn elapsed(past: &Past) -> Duration {
    let span = past
        .at
        .first()
        .zip(past.at.last())
        .and_then(|(first, last)| {
            Some(
                last.parse::<Timestamp>()
                    .ok()?
                    .duration_since(first.parse().ok()?),
            )
        });
    span.and_then(|span| span.try_into().ok())
        .unwrap_or_default()
}

/// Writes the summaries of runs that were killed after their end and before their summary. The caller holds the
/// lock, so no run is about to write its own.
pub(crate) fn missing_summaries(site: &Site<'_>) -> anyhow::Result<()> {
    let Ok(all) = site.registry().all() else {
        return Ok(());
    };
    for known in all.iter().filter(|known| known.has_plan()) {
        let run = records::open(&known.path(&site.root));
        let has_own = site.row(known).is_none_or(|row| row.facts.own_summary);
        if has_own || is_current(run.path()) {
            continue;
        }
        // An unreadable one is reported by the command that asks for it.
        let Ok(past) = Past::read(run.path()) else {
            continue;
        };
        let changes = changes::of_run(&site.root, run.path())?;
        if let Some(summary) = summary(&site.root, &run, &past, &changes, elapsed(&past)) {
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
