//! `code-commit replay` for the run of an order: the decisions once more, from the record alone.

use anyhow::anyhow;
use logging::{Redactor, RunFolder};
use loop_order::{OrderLoop, SUMMARY};
use perform::{OrderFact, Outcome, ReplayFault, facts_of, replay_order};
use repo::WorkTree;
use serde_json::json;

use crate::args::ReplayArgs;
use crate::commands::order::recorded::Recorded;
use crate::commands::registry::Known;
use crate::exit::{Exit, Failure};
use crate::output::{Output, printable};

/// Says whether the run would be led the same way: the same prompts, commands, artifacts and verdict. What the model answered, what a
/// command did and what the disk held then is taken from the record; no command runs, nothing is written.
pub fn run(args: &ReplayArgs, known: &Known, tree: &WorkTree, output: &Output) -> Result<Exit, Failure> {
    if args.from_round.is_some() {
        let error = anyhow!("the run of an order has no other answer to be tried");
        return Err(Failure::refused(
            error,
            "code-commit order run with --llm-model scripted/FILE tries one",
        ));
    }
    let folder = RunFolder::open(known.path(tree.root()), Redactor::default());
    let unreadable = |error| Failure::refused(error, "name a finished run");
    let recorded = Recorded::load(known, folder).map_err(unreadable)?;
    let facts: Vec<OrderFact> =
        facts_of(&recorded.folder).map_err(|error| unreadable(anyhow::Error::from(error)))?;
    let mut decide = recorded.decide().map_err(unreadable)?;
    report(replay_order(&mut decide, facts), &decide, output)
}

fn report(
    replayed: Result<Outcome, ReplayFault>,
    decide: &OrderLoop,
    output: &Output,
) -> Result<Exit, Failure> {
    match replayed {
        Ok(outcome) => {
            let summary = decide.summary();
            output.object(&json!({ "same": true, "outcome": outcome, "summary": summary }));
            output.report("the same prompts, the same commands, the same artifacts, the same verdict");
            output.report(&format!(
                "{} ({}), {SUMMARY} is what it was",
                summary.verdict.as_str(),
                summary.ended_stage
            ));
            Ok(Exit::Done)
        }
        Err(ReplayFault::Differs(difference)) => {
            output.object(&json!({
                "same": false, "round": difference.round, "what": difference.what,
                "recorded": difference.recorded, "now": difference.now,
            }));
            output.report(&format!("{} of attempt {} differs", difference.what, difference.round));
            let [then, now] = [&difference.recorded, &difference.now].map(|text| printable(text));
            output.report(&format!("recorded: {then}\nnow:      {now}"));
            Ok(Exit::Failed)
        }
        Err(ReplayFault::RecordEnds { round }) => Err(Failure::refused(
            anyhow!("the record ends in attempt {round}"),
            "only a finished run can be replayed; code-commit resume goes on with it",
        )),
        Err(other) => Err(anyhow::Error::from(other).into()),
    }
}
