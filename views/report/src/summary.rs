//! The summary at the end of a run, also stored as `summary.json`.

use std::collections::BTreeSet;
use std::time::Duration;

use code_commit_engine::{GRADER, HoldsFor, Outcome, Problem, Usage};
use code_commit_timeline::{Lost, RunView, What};
use serde::Serialize;

use crate::output::{BAD, GOOD, Output, STRONG, WARN, printable_name};
use crate::phrases;

/// Its file in the run folder.
pub const SUMMARY: &str = "summary.json";

/// This many warnings are repeated on the terminal; the record has all of them.
const MOST_WARNINGS: usize = 5;

/// Files that fit into this many columns are named on one line.
const WIDTH: usize = 80;

/// A file in the summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileStat {
    /// Relative to the root.
    pub path: String,
    /// `A` added, `M` modified, `D` deleted, as in git.
    pub status: char,
    /// Lines added; `None` for a binary file.
    pub added: Option<usize>,
    /// Lines removed.
    pub removed: Option<usize>,
    /// Whether a reply changed it and the build names it: it may decide whether the work is done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub named_by_build: bool,
    /// Whether a build changed it, and no reply did.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_build: bool,
}

/// A run in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The rounds in which the model was asked.
    #[serde(rename = "rounds_asked")]
    pub rounds: u32,
    /// Files that differ from before the run.
    pub files: Vec<FileStat>,
    /// Warnings about these files, from when they were written, followed by all others: what a
    /// build changed although it may not, what a sandbox denied it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Problem>,
    /// Tokens of all calls.
    pub usage: Usage,
    /// The cost of all calls in US dollars; `None` if a price is unknown, or if a call was lost.
    pub cost_usd: Option<f64>,
    /// Calls that may have been paid for, but whose answers are not on record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// From start to end.
    pub elapsed_ms: u64,
    /// The commit that holds these files, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What the verdict holds for.
    #[serde(skip_serializing_if = "HoldsFor::is_empty")]
    pub holds_for: HoldsFor,
    /// The run folder, relative to the root if it is below it.
    pub log: String,
    /// What it used, on one line.
    #[serde(skip)]
    figures: String,
}

impl Summary {
    /// Sums up a run of a loop whose word for a round is `step`.
    pub fn of(
        steps: &RunView,
        step: &'static str,
        outcome: Outcome,
        files: Vec<FileStat>,
        log: String,
    ) -> Self {
        let figures = figures(steps, step, &log);
        let mut summary = Self {
            outcome,
            rounds: steps.rounds_asked(),
            files,
            warnings: Vec::new(),
            usage: steps.usage(),
            cost_usd: steps.cost_usd(),
            lost: Some(steps.lost()).filter(|lost| lost.calls > 0),
            elapsed_ms: steps.elapsed_ms(),
            commit: steps.commit().map(str::to_owned),
            holds_for: steps.holds_for.clone(),
            log,
            figures,
        };
        let (mut by_reply, mut by_build, mut others) =
            (BTreeSet::new(), BTreeSet::new(), Vec::new());
        for step in &steps.all {
            match &step.what {
                What::Change(change) if !change.is_refused => {
                    let written = change.changes.iter().filter(|one| one.letter().is_some());
                    by_reply.extend(written.map(|one| one.path.as_str()));
                    summary.warn(&change.problems);
                }
                What::Command(command) if command.is_build => {
                    by_build.extend(command.changes.iter().map(|change| change.path.as_str()));
                }
                What::Remark(remark) if remark.is_restore => summary.warnings.clear(),
                // A build that fails again for the same reason repeats its warning.
                What::Remark(remark) => {
                    let new = remark.warning.clone();
                    others.extend(new.filter(|warning| !others.contains(warning)));
                }
                What::Call(_) | What::Change(_) | What::Command(_) => {}
            }
        }
        // A later round may have restored a file.
        let Self {
            warnings, files, ..
        } = &mut summary;
        for file in files.iter_mut() {
            let path = file.path.as_str();
            let names_it = |one: &Problem| one.path.as_deref() == Some(path);
            file.by_build = by_build.contains(path) && !by_reply.contains(path);
            file.named_by_build = warnings.iter().any(|one| is_grader(one) && names_it(one));
        }
        let is_changed = |path: &str| files.iter().any(|file| file.path == path);
        let applies = |one: &Problem| one.path.as_deref().is_none_or(is_changed);
        warnings.retain(|one| !is_grader(one) && applies(one));
        warnings.extend(others);
        summary
    }

    /// Adds the warnings of one round. A repeated warning replaces the earlier one.
    fn warn(&mut self, more: &[Problem]) {
        let key = |of: &Problem| (of.code.clone(), of.path.clone());
        let said_again: BTreeSet<_> = more.iter().map(key).collect();
        self.warnings.retain(|old| !said_again.contains(&key(old)));
        self.warnings.extend_from_slice(more);
    }

    /// Prints what the run changed and used, on standard output.
    pub(crate) fn print(&self, output: &Output) {
        let files = self.files.iter().map(|file| file_line(file, output));
        let files: Vec<String> = files.collect();
        let line = files.join(" ");
        let fits = !files.is_empty() && textwrap::core::display_width(&line) <= WIDTH;
        let lines = if fits { vec![line] } else { files };
        lines.iter().for_each(|line| output.report(line));
        for warning in self.warnings.iter().take(MOST_WARNINGS) {
            let head = output.paint(WARN, "  warning:");
            output.report_prose(&format!("{head} {}", printable_name(&warning.message)));
        }
        if let Some(more) = phrases::rest(self.warnings.len(), MOST_WARNINGS) {
            output.report(&format!("  {more}: code-commit show"));
        }
        if let Some(commit) = &self.commit {
            output.report(&format!("  committed as {commit}"));
        }
        output.report(&format!("  {}", self.figures));
    }
}

/// `4 rounds · 2,710 tokens in, 175 out · $0.0042 · 12 s · agent-config/logs/a-run`: what a run used that is recorded in
/// `log`. `step` is its loop's word for a round.
pub fn figures(steps: &RunView, step: &str, log: &str) -> String {
    let tokens = phrases::tokens(&steps.usage());
    let parts = [
        phrases::count(steps.rounds_asked().into(), step),
        tokens.trim_start_matches(", ").to_owned(),
        phrases::cost_and_lost(steps.answers_usd(), steps.lost()),
        phrases::seconds(Duration::from_millis(steps.elapsed_ms())),
        printable_name(log),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" · ")
}

fn is_grader(warning: &Problem) -> bool {
    warning.code == GRADER
}

/// `  M src/a.rs +3 −1`, `  A README.md +3`.
pub fn file_line(file: &FileStat, output: &Output) -> String {
    let some = |count: usize| Some(count).filter(|count| *count > 0);
    let added = file.added.and_then(some);
    let added = added.map(|added| output.paint(GOOD, &format!(" +{added}")));
    let removed = file.removed.and_then(some);
    let removed = removed.map(|removed| output.paint(BAD, &format!(" −{removed}")));
    let binary = file.added.is_none().then(|| " binary".to_owned());
    let counts: String = [added, removed, binary].into_iter().flatten().collect();
    let by = match (file.by_build, file.named_by_build) {
        (true, _) => " (by the build)",
        (false, true) => " (named by the build)",
        (false, false) => "",
    };
    format!(
        "  {} {}{counts}{by}",
        output.paint(STRONG, &file.status.to_string()),
        printable_name(&file.path)
    )
}
