//! `code-commit replay` for the run of an order: repeats its decisions from the record alone.

use anyhow::anyhow;
use code_commit_loop_order::{Finished, SUMMARY};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::order::recorded::Recorded;
use crate::records;
use crate::registry::Known;
use crate::replay::{Request, from_record};
use crate::site::Site;

/// Reports whether the run would take the same course: the same prompts, commands, artifacts and verdict.
/// Answers, command results and file contents come from the record; no command runs and nothing is written.
pub(crate) fn run(known: &Known, args: &Request, site: &Site<'_>) -> Result<Exit, Failure> {
    let (root, output) = (&site.root, site.host.output);
    if args.other.is_some() {
        let error = anyhow!("the run of an order has no other reply to try");
        return Err(Failure::refused(
            error,
            "code-commit order run with --llm-model scripted/FILE tries one",
        ));
    }
    let folder = records::open(&known.path(root));
    let unreadable = |error| Failure::refused(error, "name a finished run");
    let recorded = Recorded::load(known, folder).map_err(unreadable)?;
    let past = records::intact(&recorded.folder)
        .map_err(|error| unreadable(anyhow::Error::from(error)))?;
    let inputs = recorded.inputs(root, &past).map_err(unreadable)?;
    let tell = |Finished {
                    outcome, summary, ..
                }: &Finished| {
        output.object(&json!({ "same": true, "outcome": outcome, "summary": summary }));
        output.report("the same prompts, the same commands, the same artifacts, the same verdict");
        let (verdict, stage) = (summary.verdict.as_str(), &summary.ended_stage);
        output.report(&format!("{verdict} ({stage}), {SUMMARY} is what it was"));
    };
    let lead = |harness: &mut _| code_commit_loop_order::order(harness, &inputs);
    from_record((recorded.folder, &past), "attempt", output, lead, tell)
}
