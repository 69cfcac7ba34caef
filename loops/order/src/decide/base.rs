//! What is tried on the base, before the model is asked: nothing is paid for yet.

use code_commit_engine::{Broke, Doubt, Harness, Look, ON_BASE, PROBES, RollBack, Run};

use super::attempt::{Halt, conditions};
use crate::artifacts::{CmdResult, FailureBrief, Stage};
use crate::brief;
use crate::inert::message;
use crate::inputs::Inputs;
use crate::order::Command;

/// Why there is no first attempt: a precondition does not hold, or a command that must fail before
/// the change succeeds. Each command starts from the baseline, even if the one before changed
/// files.
pub(super) fn refused<H>(harness: &mut H, inputs: &Inputs) -> Result<Option<FailureBrief>, H::Stop>
where
    H: Harness<Look> + Harness<Run> + Harness<RollBack> + Harness<Doubt>,
{
    let order = &inputs.order;
    match conditions(harness, Stage::Preflight, &order.preconditions, order) {
        Ok(()) => {}
        Err(Halt::Stop(stop)) => return Err(stop),
        Err(halt) => return Ok(halt.brief(order)),
    }
    for (number, command) in (1..).zip(&order.must_fail_before) {
        match on_base(harness, format!("{PROBES}{number}"), command, inputs)? {
            Ok(result) if result.exit_code != 0 => {}
            Ok(result) => {
                return Ok(Some(brief::passes_before(
                    "must_fail_before",
                    &command.text,
                    &result,
                    order,
                )));
            }
            Err(brief) => return Ok(Some(brief)),
        }
    }
    if inputs.tries_base {
        green(harness, inputs)
    } else {
        Ok(None)
    }
}

/// Names the other acceptance commands that pass before the change, and those that cannot fail. With
/// `--strict`, the first one that passes is why there is no attempt.
fn green<H>(harness: &mut H, inputs: &Inputs) -> Result<Option<FailureBrief>, H::Stop>
where
    H: Harness<Run> + Harness<RollBack> + Harness<Doubt>,
{
    let (order, mut refusal) = (&inputs.order, None);
    for command in &inputs.cannot_fail {
        harness.perform(Doubt::new("cannot-fail", message(command)))?;
    }
    let mut all_are_green = order.must_fail_before.is_empty();
    for (number, command) in (1..).zip(&order.acceptance_commands) {
        if order.must_fail_before.contains(command) || inputs.cannot_fail.contains(&command.text) {
            continue;
        }
        match on_base(harness, format!("{ON_BASE}{number}"), command, inputs)? {
            Ok(result) if result.exit_code != 0 => all_are_green = false,
            Ok(result) => {
                let text = &command.text;
                let message =
                    "passes without the change, so that it passes afterwards proves nothing";
                harness.perform(Doubt::new("already-green", format!("`{text}` {message}")))?;
                let brief = || brief::passes_before("--strict", text, &result, order);
                refusal = refusal.or_else(|| inputs.strict.then(brief));
            }
            Err(brief) => return Ok(Some(brief)),
        }
    }
    if all_are_green {
        let message =
            "no acceptance command fails without the change, so a PASS does not show that it works";
        harness.perform(Doubt::new("already-green", message))?;
    }
    Ok(refusal)
}

/// Runs a command on the base and restores it; gives a brief if the command could not be run.
fn on_base<H>(
    harness: &mut H,
    log: String,
    command: &Command,
    inputs: &Inputs,
) -> Result<Result<CmdResult, FailureBrief>, H::Stop>
where
    H: Harness<Run> + Harness<RollBack>,
{
    let ran = harness
        .perform(Run {
            log,
            argv: command.argv.clone(),
        })?
        .done();
    harness.perform(RollBack)?;
    let broke = |Broke { message }| brief::plain(Stage::Exception, &message, &inputs.order);
    Ok(ran.map(|ran| CmdResult::of(&ran)).map_err(broke))
}
