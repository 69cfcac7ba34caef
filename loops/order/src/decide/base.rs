//! What is tried on the base, before the model is asked: nothing is paid for yet.

use code_commit_engine::{Broke, Harness, Look, PROBES, RollBack, Run};

use super::attempt::{Halt, conditions};
use crate::artifacts::{CmdResult, FailureBrief, Stage};
use crate::brief;
use crate::inputs::Inputs;

/// Why there is no first attempt: a precondition does not hold, or a command that must fail before
/// the change succeeds. Each command starts from the baseline, even if the one before changed
/// files.
pub(super) fn refused<H>(harness: &mut H, inputs: &Inputs) -> Result<Option<FailureBrief>, H::Stop>
where
    H: Harness<Look> + Harness<Run> + Harness<RollBack>,
{
    let order = &inputs.order;
    match conditions(harness, Stage::Preflight, &order.preconditions, order) {
        Ok(()) => {}
        Err(Halt::Stop(stop)) => return Err(stop),
        Err(halt) => return Ok(halt.brief(order)),
    }
    for (number, command) in (1..).zip(&order.must_fail_before) {
        let run = Run {
            log: format!("{PROBES}{number}"),
            argv: command.argv.clone(),
        };
        let ran = harness.perform(run)?.done();
        harness.perform(RollBack)?;
        match ran.map(|ran| CmdResult::of(&ran)) {
            Ok(result) if result.exit_code != 0 => {}
            Ok(result) => {
                return Ok(Some(brief::passes_before(&command.text, &result, order)));
            }
            Err(Broke { message }) => {
                return Ok(Some(brief::plain(Stage::Exception, &message, order)));
            }
        }
    }
    Ok(None)
}
