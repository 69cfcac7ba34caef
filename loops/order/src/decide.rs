//! The loop of a work order: software engineer, tool runner, judge (S2 §6, §8).

mod attempt;

use code_commit_engine::{
    Ask, Commit, CommitAnswer, Harness, Keep, Look, Measure, NotCommitted, Outcome, RollBack, Run,
    Stamp, Write,
};

use crate::artifacts::{AttemptRecord, RunSummary, Stage, Verdict};
use crate::brief;
use crate::inputs::Inputs;
use attempt::{Attempt, Halt, conditions, json};

pub use attempt::{VERIFY_SCRIPT, verification};

/// Name of the summary in the run folder.
pub const SUMMARY: &str = "run_summary.json";

/// How a run ended, and its summary.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// How it ended.
    pub outcome: Outcome,
    /// `run_summary.json`.
    pub summary: RunSummary,
    /// The stage of the last failure; `None` if the order passed.
    pub failed_stage: Option<Stage>,
    /// Why git did not commit the changes, if it failed to.
    pub not_committed: Option<NotCommitted>,
}

impl AsRef<Outcome> for Finished {
    fn as_ref(&self) -> &Outcome {
        &self.outcome
    }
}

/// S2: makes attempts until verification, acceptance commands and postconditions pass, or no
/// attempts are left. A failed attempt leaves the tree at the baseline.
///
/// # Errors
///
/// What stopped the harness. The run can be resumed.
pub fn order<H>(harness: &mut H, inputs: &Inputs) -> Result<Finished, H::Stop>
where
    H: Harness<Stamp> + Harness<Look> + Harness<Ask> + Harness<Write> + Harness<Run>,
    H: Harness<RollBack> + Harness<Keep> + Harness<Measure> + Harness<Commit>,
{
    let mut run = Report {
        inputs,
        started: harness.perform(Stamp)?.at,
        records: Vec::new(),
    };
    let order = &inputs.order;
    let brief = match conditions(harness, Stage::Preflight, &order.preconditions, order) {
        Ok(()) => None,
        Err(Halt::Stop(stop)) => return Err(stop),
        Err(halt) => halt.brief(order),
    };
    if let Some(brief) = brief {
        let file = "preflight/failure_brief.json".to_owned();
        harness.perform(Keep {
            file,
            text: json(&brief).into(),
        })?;
        let outcome = Outcome::AttemptsUsedUp { rounds: 0 };
        return run.close(harness, outcome, Some(brief.stage), None);
    }
    let mut number = 1;
    loop {
        let mut attempt = Attempt::number(number);
        let failure = run
            .records
            .last()
            .and_then(|record| record.failure_brief.as_ref());
        let prompt = inputs.prompt_of(number, failure);
        let (brief, outcome) = match attempt.make(harness, inputs, prompt) {
            Ok(tree_hash) => {
                attempt.keep(harness)?;
                run.records.push(attempt.record(&inputs.baseline_commit));
                return run.close(
                    harness,
                    Outcome::Done { rounds: number },
                    None,
                    Some(tree_hash),
                );
            }
            Err(Halt::Stop(stop)) => return Err(stop),
            Err(Halt::Failed(brief)) => (brief, Outcome::AttemptsUsedUp { rounds: number }),
            Err(Halt::Unavailable(cause)) => {
                let brief = brief::plain(Stage::Exception, &cause.message, &inputs.order);
                (
                    brief,
                    Outcome::ModelUnavailable {
                        round: number,
                        cause,
                    },
                )
            }
        };
        if attempt.has_written() {
            harness.perform(RollBack)?;
        }
        let stage = brief.stage;
        attempt.brief = Some(brief);
        attempt.keep(harness)?;
        run.records.push(attempt.record(&inputs.baseline_commit));
        if stage == Stage::Exception || number >= inputs.max_attempts {
            return run.close(harness, outcome, Some(stage), None);
        }
        number += 1;
    }
}

/// What a run leaves as its summary.
struct Report<'i> {
    inputs: &'i Inputs,
    started: String,
    records: Vec<AttemptRecord>,
}

impl Report<'_> {
    /// Stores the summary, then commits if asked to. The run ends only after the commit: if it was
    /// killed before, the commit still has to be made.
    fn close<H>(
        self,
        harness: &mut H,
        outcome: Outcome,
        failed_stage: Option<Stage>,
        tree_hash: Option<String>,
    ) -> Result<Finished, H::Stop>
    where
        H: Harness<Stamp> + Harness<Keep> + Harness<Commit>,
    {
        let ended = harness.perform(Stamp)?.at;
        let summary = self.summary(failed_stage, tree_hash, ended);
        harness.perform(Keep {
            file: SUMMARY.to_owned(),
            text: json(&summary).into(),
        })?;
        let mut not_committed = None;
        if self.inputs.commit && failed_stage.is_none() {
            match harness.perform(Commit {
                message: self.inputs.commit_message(),
            })? {
                CommitAnswer::Committed(_) => {}
                CommitAnswer::NotCommitted(why) => not_committed = Some(why),
            }
        }
        Ok(Finished {
            outcome,
            summary,
            failed_stage,
            not_committed,
        })
    }

    fn summary(
        &self,
        failed: Option<Stage>,
        tree_hash: Option<String>,
        ended: String,
    ) -> RunSummary {
        let inputs = self.inputs;
        RunSummary {
            run_id: inputs.run_id.clone(),
            repo_path: inputs.repo_path.clone(),
            work_order_path: inputs.work_order_path.clone(),
            work_order_hash: inputs.order.hash.clone(),
            repo_baseline_commit: inputs.baseline_commit.clone(),
            repo_tree_hash_before: inputs.tree_hash_before.clone(),
            repo_tree_hash_after: tree_hash,
            max_attempts: inputs.max_attempts,
            attempts: self.records.clone(),
            verdict: if failed.is_none() {
                Verdict::Pass
            } else {
                Verdict::Fail
            },
            ended_stage: failed.map_or("success", Stage::as_str).to_owned(),
            started_utc: self.started.clone(),
            ended_utc: ended,
        }
    }
}

#[cfg(test)]
mod tests;
