//! The summary at the end of a run, also stored as `summary.json`.

use std::collections::BTreeSet;
use std::time::Duration;

use code_commit_engine::{GRADER, HoldsFor, Line, Outcome, Problem, Usage};
use code_commit_logging::millis;
use code_commit_timeline::{Lost, Steps, What};
use serde::Serialize;

use crate::output::{BAD, GOOD, Output, STRONG, WARN, printable, printable_name};
use crate::phrases;

/// Its file in the run folder.
pub const SUMMARY: &str = "summary.json";

/// This many warnings are repeated on the terminal; the record has all of them.
const MOST_WARNINGS: usize = 5;

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
    /// The cost of the answers.
    #[serde(skip)]
    answers_usd: Option<f64>,
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
    /// Whether any reply could be used.
    #[serde(skip)]
    has_built: bool,
}

impl Summary {
    /// Sums up the record of a run.
    pub fn of(
        lines: &[Line],
        outcome: Outcome,
        files: Vec<FileStat>,
        elapsed: Duration,
        log: String,
    ) -> Self {
        let steps = Steps::untimed(lines);
        let lost = Some(steps.lost()).filter(|lost| lost.calls > 0);
        let answers_usd = steps.answers_usd();
        let mut summary = Self {
            outcome,
            rounds: steps.rounds_asked(),
            files,
            warnings: Vec::new(),
            usage: steps.usage(),
            cost_usd: steps.cost_usd(),
            lost,
            answers_usd,
            elapsed_ms: millis(elapsed),
            commit: steps.commit().map(str::to_owned),
            holds_for: steps.holds_for.clone(),
            log,
            has_built: false,
        };
        let (mut by_reply, mut by_build, mut others) =
            (BTreeSet::new(), BTreeSet::new(), Vec::new());
        for step in &steps.all {
            match &step.what {
                What::Change(change) if !change.is_refused => {
                    let written = change
                        .changes
                        .iter()
                        .filter(|change| change.letter().is_some());
                    by_reply.extend(written.map(|change| change.path.as_str()));
                    summary.warn(&change.problems);
                }
                What::Command(command) if command.is_build() => {
                    by_build.extend(command.changes.iter().map(|change| change.path.as_str()));
                    summary.has_built = true;
                }
                What::Event(event) if event.is_restore => summary.warnings.clear(),
                // A build that fails again for the same reason repeats its warning.
                What::Event(event) => {
                    others.extend(
                        event
                            .warning
                            .clone()
                            .filter(|warning| !others.contains(warning)),
                    );
                }
                What::Call(_) | What::Change(_) | What::Command(_) => {}
            }
        }
        // A later round may have restored a file.
        let Self {
            warnings, files, ..
        } = &mut summary;
        files.iter_mut().for_each(|file| {
            file.by_build =
                by_build.contains(file.path.as_str()) && !by_reply.contains(file.path.as_str());
            file.named_by_build = warnings
                .iter()
                .any(|one| is_grader(one) && one.path.as_ref() == Some(&file.path));
        });
        warnings.retain(|one| !is_grader(one));
        let changed: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        warnings.retain(|warning| {
            warning
                .path
                .as_deref()
                .is_none_or(|path| changed.contains(path))
        });
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

    /// Prints the summary on standard output, for a person.
    pub fn print(&self, output: &Output) {
        output.report(&self.headline(output));
        for file in &self.files {
            output.report(&file_line(file, output));
        }
        if self.files.is_empty() {
            output.report("  no file was changed");
        }
        for warning in self.warnings.iter().take(MOST_WARNINGS) {
            let head = output.paint(WARN, "  warning:");
            output.report_prose(&format!("{head} {}", printable_name(&warning.message)));
        }
        if let Some(more) = phrases::rest(self.warnings.len(), MOST_WARNINGS) {
            output.report(&format!("  {more}: code-commit show"));
        }
        if let Some(commit) = &self.commit {
            output.report(&format!("committed as {commit}"));
        }
        output.report(&self.figures());
        output.report(&format!("log: {}", printable_name(&self.log)));
    }

    fn headline(&self, output: &Output) -> String {
        let rounds = |count: u32| phrases::count(count.into(), "round");
        match &self.outcome {
            Outcome::Done { rounds: took } => output.paint(
                GOOD,
                &format!("Done after {}: the build passes.", rounds(*took)),
            ),
            Outcome::AttemptsUsedUp { rounds: took } if !self.has_built => {
                let text = format!(
                    "Failed: no reply could be used in {}, so nothing was built.",
                    rounds(*took)
                );
                output.paint(BAD, &text)
            }
            Outcome::AttemptsUsedUp { rounds: took } => output.paint(
                BAD,
                &format!("Failed: the build does not pass after {}.", rounds(*took)),
            ),
            Outcome::Unfit { cause, .. } => {
                let text = format!("Unfit: {}", printable(&cause.message));
                let remedy = cause
                    .remedy
                    .as_deref()
                    .map(|r| format!("\nhelp: {}", printable(r)));
                format!("{}{}", output.paint(BAD, &text), remedy.unwrap_or_default())
            }
            Outcome::NeedsPerson { round, cause } | Outcome::ModelUnavailable { round, cause } => {
                let text = format!("Failed in round {round}: {}", printable(&cause.message));
                let remedy = cause
                    .remedy
                    .as_deref()
                    .map(|r| format!("\nhelp: {}", printable(r)));
                format!("{}{}", output.paint(BAD, &text), remedy.unwrap_or_default())
            }
        }
    }

    fn figures(&self) -> String {
        let cost = phrases::cost_and_lost(self.answers_usd, self.lost);
        let took = phrases::seconds(Duration::from_millis(self.elapsed_ms));
        format!(
            "rounds {}{}, {cost}, {took}",
            self.rounds,
            phrases::tokens(&self.usage)
        )
    }
}

fn is_grader(warning: &Problem) -> bool {
    warning.code == GRADER
}

/// `  M src/a.rs  +3 −1`.
pub fn file_line(file: &FileStat, output: &Output) -> String {
    let counts = match (file.added, file.removed) {
        (Some(added), Some(removed)) => {
            let added = output.paint(GOOD, &format!("+{added}"));
            format!("{added} {}", output.paint(BAD, &format!("−{removed}")))
        }
        _ => "binary".to_owned(),
    };
    let by = match (file.by_build, file.named_by_build) {
        (true, _) => "  (by the build)",
        (false, true) => "  (named by the build)",
        (false, false) => "",
    };
    format!(
        "  {} {}  {counts}{by}",
        output.paint(STRONG, &file.status.to_string()),
        printable_name(&file.path)
    )
}
