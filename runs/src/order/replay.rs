//! `code-commit replay` for the run of an order: repeats its decisions from the record alone.

use anyhow::anyhow;
use code_commit_engine::{Journaled, Stop};
use code_commit_loop_order::{Finished, SUMMARY};
use code_commit_perform::{RecordOnly, ReplayFault};
use code_commit_repo::WorkTree;
use code_commit_report::Output;
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::order::recorded::Recorded;
use crate::records;
use crate::registry::Known;
use crate::replay::{Request, other_end};

/// Reports whether the run would take the same course: the same prompts, commands, artifacts and verdict.
/// Answers, command results and file contents come from the record; no command runs and nothing is written.
pub(crate) fn run(args: &Request, known: &Known, tree: &WorkTree, output: &Output) -> Result<Exit, Failure> {
    if args.other.is_some() {
        let error = anyhow!("the run of an order has no other answer to be tried");
        return Err(Failure::refused(
            error,
            "code-commit order run with --llm-model scripted/FILE tries one",
        ));
    }
    let folder = records::open(&known.path(tree.root()));
    let unreadable = |error| Failure::refused(error, "name a finished run");
    let recorded = Recorded::load(known, folder).map_err(unreadable)?;
    let past = records::intact(&recorded.folder).map_err(|error| unreadable(anyhow::Error::from(error)))?;
    let inputs = recorded.inputs(tree.root(), &past).map_err(unreadable)?;
    let mut harness = Journaled::new(RecordOnly::new(recorded.folder, &past), past.answers.clone());
    match harness.run(|harness| code_commit_loop_order::order(harness, &inputs)) {
        Ok(Finished { outcome, summary, .. }) => {
            output.object(&json!({ "same": true, "outcome": outcome, "summary": summary }));
            output.report("the same prompts, the same commands, the same artifacts, the same verdict");
            output.report(&format!(
                "{} ({}), {SUMMARY} is what it was",
                summary.verdict.as_str(),
                summary.ended_stage
            ));
            Ok(Exit::Done)
        }
        Err(Stop::Fault(ReplayFault::RecordEnds { round })) => Err(Failure::refused(
            anyhow!("the record ends in attempt {round}"),
            "only a finished run can be replayed; code-commit resume continues it",
        )),
        Err(stop) => other_end(stop, "attempt", output),
    }
}
