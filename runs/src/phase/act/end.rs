//! What is said at the end of a phase.

use code_commit_engine::{Cause, Outcome};
use code_commit_loop_phase::FAILED_SPECS;
use code_commit_names::ours::ABL;
use code_commit_perform::Past;
use code_commit_report::{BAD, GOOD, Output, printable};
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::life::Over;
use crate::phase::folders::read;
use crate::phase::past;
use crate::phase::project::Project;

/// For a person; gives what a program is told besides.
pub(crate) fn tell(project: &Project, phase: u32, over: &Over<'_>) -> Map<String, Value> {
    let output = over.output;
    report_end(project, phase, over.ended, output);
    output.report(&format!("log: {}", over.run.path().display()));
    let members = [
        ("phase", json!(phase)),
        ("outcome", json!(over.ended)),
        ("holds_for", json!(over.holds_for)),
    ];
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Nothing has changed since the last verification, so another one would only cost.
pub(super) fn still_stuck(project: &Project, phase: u32, output: &Output) -> Exit {
    let cause = Cause {
        code: "stuck".to_owned(),
        message: "contracts still fail, and neither specs, source nor verifier have changed since".to_owned(),
        remedy: Some(
            "change what is wrong, then: code-commit phase run; or try again as it is: code-commit phase run --retry"
                .to_owned(),
        ),
    };
    let outcome = Outcome::NeedsPerson {
        round: project.state.current.verifier_iteration,
        cause,
    };
    output.object(&json!({
        "event": "summary",
        "phase": phase,
        "outcome": outcome,
        "holds_for": project.state.stuck_on,
        "from_record": true,
    }));
    report_end(project, phase, &outcome, output)
}

/// The summary of a phase that has passed before: no model is called.
pub(super) fn say_again(project: &Project, phase: u32, output: &Output) {
    let run = past::newest(&project.root.join(ABL).join(past::LOGS), phase);
    let recorded = run
        .and_then(|run| Past::read(&run).ok())
        .and_then(|past| past.outcome().cloned());
    // A person may have adopted a pass that no run here found.
    let adopted = Outcome::Done {
        rounds: project.state.current.verifier_iteration.max(1),
    };
    let is_done = |outcome: &Outcome| matches!(outcome, Outcome::Done { .. });
    output.object(&json!({
        "event": "summary",
        "phase": phase,
        "outcome": recorded.filter(is_done).unwrap_or(adopted),
        "holds_for": project.state.passes.get(&phase).cloned().unwrap_or_default(),
        "from_record": true,
    }));
}

fn report_end(project: &Project, phase: u32, outcome: &Outcome, output: &Output) -> Exit {
    match outcome {
        Outcome::Done { rounds } => {
            output.report(&output.paint(
                GOOD,
                &format!("Phase {phase} passed in iteration {rounds}."),
            ));
        }
        Outcome::NeedsPerson { cause, .. } => {
            output
                .report(&output.paint(BAD, &format!("Phase {phase} is stuck: {}.", cause.message)));
            let failed = read(&project.tests().join(FAILED_SPECS)).unwrap_or(None);
            output.report(printable(failed.as_deref().unwrap_or_default()).trim_end());
        }
        Outcome::ModelUnavailable { cause, .. } | Outcome::Unfit { cause, .. } => {
            output.report(&output.paint(
                BAD,
                &format!("Phase {phase} stopped: {}", printable(&cause.message)),
            ));
        }
        Outcome::AttemptsUsedUp { .. } => {}
    }
    if let Outcome::NeedsPerson { cause, .. }
    | Outcome::Unfit { cause, .. }
    | Outcome::ModelUnavailable { cause, .. } = outcome
    {
        output.report(&format!(
            "help: {}",
            cause.remedy.as_deref().unwrap_or_default()
        ));
    }
    Exit::from(outcome)
}
