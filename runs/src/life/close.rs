//! The end of a run: its summary, for a file, for programs and for a person.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use code_commit_engine::{HoldsFor, Outcome};
use code_commit_logging::RunFolder;
use code_commit_perform::{JOURNAL, Past};
use code_commit_report::{Output, SUMMARY, Summary};
use jiff::Timestamp;
use serde_json::json;

use super::{Life, Loop};
use crate::changes::{self, FileChange};
use crate::exit::{Exit, Failure};
use crate::records;
use crate::site::Site;

/// A run that is over, for its last words.
#[derive(Debug)]
#[expect(missing_docs, reason = "those without are what their types say")]
pub struct Over<'o> {
    pub run: &'o RunFolder,
    pub past: &'o Past,
    pub outcome: &'o Outcome,
    pub holds_for: &'o HoldsFor,
    /// What it changed.
    pub changes: &'o [FileChange],
    pub summary: &'o Summary,
    pub output: &'o Output,
}

/// A run that is over and was told of.
#[derive(Debug)]
#[expect(missing_docs, reason = "those without are what their types say")]
pub struct Finished {
    pub exit: Exit,
    /// What it changed.
    pub changes: Vec<FileChange>,
    pub run: RunFolder,
    /// What its journal holds.
    pub past: Past,
    /// Whether it was over before: nobody was asked.
    pub from_record: bool,
}

impl<L: Loop> Life<'_, L> {
    /// Stores the summary of a run and tells it. A run that was over before, and so took no time now, is answered
    /// from its record.
    pub(crate) fn close(
        &self,
        plan: &L::Plan,
        run: &RunFolder,
        took: Option<Duration>,
    ) -> Result<Finished, Failure> {
        let (root, output) = (&self.site.root, self.site.host.output);
        let changes = changes::of_run(root, run.path())?;
        let past = Past::read(run.path()).map_err(anyhow::Error::from)?;
        let (outcome, holds_for) = past.end().context("the record of a finished run has no end")?;
        let summary = summary(root, run, &past, &changes, took.unwrap_or_else(|| elapsed(&past)));
        let summary = summary.context("the record of a finished run has no end")?;
        if took.is_some() && !L::FACTS.own_summary {
            run.store_json(SUMMARY, &summary).map_err(anyhow::Error::from)?;
        }
        let over =
            Over { run, past: &past, outcome, holds_for, changes: &changes, summary: &summary, output };
        let mut line = self.of.tell(plan, &over)?;
        let exit = self.of.exit(&over);
        line.insert("event".to_owned(), json!("summary"));
        line.entry("summary").or_insert_with(|| json!(summary));
        if took.is_none() {
            line.insert("from_record".to_owned(), json!(true));
        }
        output.object(&line.into());
        Ok(Finished { exit, run: run.clone(), changes, past, from_record: took.is_none() })
    }
}

fn summary(
    root: &Path,
    run: &RunFolder,
    past: &Past,
    changes: &[FileChange],
    took: Duration,
) -> Option<Summary> {
    let files = changes.iter().map(FileChange::stat).collect();
    Some(Summary::of(&past.lines, past.outcome()?.clone(), files, took, short_log(run, root)))
}

/// The folder of a run as a person is shown it.
pub(crate) fn short_log(run: &RunFolder, root: &Path) -> String {
    run.path().strip_prefix(root).unwrap_or(run.path()).display().to_string()
}

/// From the first line of a journal to the last: nothing more precise is known of a run that is over.
fn elapsed(past: &Past) -> Duration {
    let span =
        past.at.first().zip(past.at.last()).and_then(|(first, last)| {
            Some(last.parse::<Timestamp>().ok()?.duration_since(first.parse().ok()?))
        });
    span.and_then(|span| span.try_into().ok()).unwrap_or_default()
}

/// Writes the summaries of runs that were killed after their end and before their summary. The caller holds the
/// lock, so no run is about to write its own.
pub(crate) fn missing_summaries(site: &Site<'_>) -> anyhow::Result<()> {
    let Ok(all) = site.registry().all() else { return Ok(()) };
    for known in all.iter().filter(|known| known.has_plan()) {
        let run = records::open(&known.path(&site.root));
        let has_own = site.row(known).is_none_or(|row| row.facts.own_summary);
        if has_own || is_current(run.path()) {
            continue;
        }
        // An unreadable one is reported by the command that asks for it.
        let Ok(past) = Past::read(run.path()) else { continue };
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
