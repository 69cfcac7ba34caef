//! The end of a run: its summary, for a file, for programs and for a person.

use std::time::Duration;

use anyhow::Context as _;
use code_commit_logging::RunFolder;
use code_commit_perform::Past;
use code_commit_report::SUMMARY;
use serde_json::json;

use super::Life;
use super::loop_trait::{Finished, Loop, Over};
use super::summary::{elapsed, summary};
use crate::changes;
use crate::exit::Failure;

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
