//! The last block of a run, the same for every loop: how it ended and why, what it changed, what it used, what can be done next.

use code_commit_engine::Outcome;
use code_commit_timeline::Reason;

use crate::output::{BAD, GOOD, Output, printable_name};
use crate::phrases;
use crate::summary::Summary;

/// Lines of a contract, a review or a reply that are shown.
const MOST_LINES: usize = 20;

/// The command that goes on from a finished run.
pub const AGAIN: &str = "code-commit again -m \"…\"";

/// How a run ended, in words.
#[derive(Debug, Clone, Default)]
pub struct LastWords {
    /// Whether it reached its goal.
    pub is_good: bool,
    /// One line: `done after 2 rounds: the build passes`.
    pub verdict: String,
    /// What stands below it: a contract that fails, a review.
    pub detail: String,
    /// What can be done next: commands, or a sentence.
    pub next: Vec<String>,
}

impl LastWords {
    /// Of a run that ended like this, and why. `step` is the loop's word for a round, `goal` what it has reached.
    pub fn of(outcome: &Outcome, reason: Option<Reason>, step: &str, goal: &str) -> Self {
        let steps = |count: u32| phrases::count(count.into(), step);
        let reason = reason.unwrap_or_default();
        let text = &reason.text;
        let verdict = match outcome {
            Outcome::Done { rounds } => format!("done after {}: {goal}", steps(*rounds)),
            Outcome::AttemptsUsedUp { rounds } => {
                format!("failed after {}: {text}", steps(*rounds))
            }
            Outcome::Unfit { .. } => format!("unfit: {text}"),
            Outcome::NeedsPerson { round, .. } | Outcome::ModelUnavailable { round, .. } => {
                format!("failed in {step} {round}: {text}")
            }
        };
        let remedy = outcome.cause().and_then(|cause| cause.remedy.clone());
        let answer = reason.is_question.then(|| AGAIN.to_owned());
        Self {
            is_good: matches!(outcome, Outcome::Done { .. }),
            verdict,
            detail: reason.detail,
            next: remedy.into_iter().chain(answer).collect(),
        }
    }

    /// Prints the block on standard output; without a summary for a run of before.
    pub fn print(&self, summary: Option<&Summary>, output: &Output) {
        let (style, sign) = if self.is_good {
            (GOOD, '✓')
        } else {
            (BAD, '✗')
        };
        let verdict = format!("{sign} {}", printable_name(&self.verdict));
        output.report_below(&output.paint(style, &verdict), 2);
        phrases::first_lines(&self.detail, MOST_LINES, "the log")
            .iter()
            .for_each(|line| output.report_below(&format!("  {line}"), 2));
        if let Some(summary) = summary {
            summary.print(output);
        }
        if !self.next.is_empty() {
            let next = self.next.join(" · ");
            output.report_below(&format!("  next: {}", printable_name(&next)), 8);
        }
    }
}
