//! What a bundle says about its run: taken from the record when it is packed, and compared with it wherever
//! it is opened.

use anyhow::{Context as _, ensure};
use code_commit_logging::{Journal, RunFolder};
use code_commit_loop_order::Verdict;
use code_commit_perform::{JOURNAL, Past};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::order;
use crate::records::Head;
use crate::registry::RUN_JSON;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    /// The name of its folder.
    pub run: String,
    /// `commit`, `implement`, `order`, `phase` or `spec`.
    #[serde(rename = "loop")]
    pub kind: String,
    pub version: String,
    /// The commit that was checked out when it began, as far as it is recorded.
    pub tree: Option<String>,
    /// How it ended; null if it has not.
    pub outcome: Option<String>,
    /// The verdict of an order.
    pub verdict: Option<String>,
    /// The SHA-256 of the journal's last line, to which the whole chain leads.
    pub journal_sha256: String,
}

impl About {
    /// Reads the whole journal and checks its chain, every file that it names, and every pre-image.
    pub(super) fn of(folder: &RunFolder, run: &str) -> anyhow::Result<Self> {
        let Head {
            kind,
            version,
            commit: tree,
            ..
        } = Head::of(folder)
            .with_context(|| format!("{RUN_JSON} is missing or cannot be understood"))?;
        let past = Past::read(folder.path())?;
        past.intact(folder)?;
        code_commit_apply::intact(&code_commit_perform::undo_folders(folder.path())?)?;
        let verdict = |verdict| match verdict {
            Verdict::Pass => "PASS".to_owned(),
            Verdict::Fail => "FAIL".to_owned(),
        };
        let summary = order::summary(folder, &past);
        Ok(Self {
            run: run.to_owned(),
            kind,
            version,
            tree,
            outcome: past.outcome().map(|outcome| outcome.code().to_owned()),
            verdict: summary.map(|summary| verdict(summary.verdict)),
            journal_sha256: Journal::last_hash(&folder.path().join(JOURNAL))?,
        })
    }

    pub(super) fn read(about: &Value) -> anyhow::Result<Self> {
        let about: Self =
            serde_json::from_value(about.clone()).context("its manifest is not of a run")?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = about.run.chars().all(is_plain)
            && !about.run.starts_with('.')
            && about.run.len() <= 100;
        ensure!(
            is_name && !about.run.is_empty(),
            "its run has no name that a folder could have"
        );
        Ok(about)
    }

    /// `2026-11-23-04-05-06-commit (commit), tree 1a2b3c4, done`.
    pub(super) fn line(&self) -> String {
        let short = |commit: &String| format!(", tree {}", commit.get(..12).unwrap_or(commit));
        let ended = self
            .verdict
            .as_deref()
            .or(self.outcome.as_deref())
            .unwrap_or("not finished");
        let tree = self.tree.as_ref().map(short).unwrap_or_default();
        format!("{} ({}){tree}, {ended}", self.run, self.kind)
    }
}
