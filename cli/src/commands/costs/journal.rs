//! The model calls of one run, as its journal has them.

use std::fs;
use std::path::Path;

use code_commit_engine::{Event, ModelUsage, Usage};
use code_commit_logging::Journal;
use code_commit_runs::registry::RUN_JSON;
use code_commit_runs::spec;
use code_commit_timeline::{RunView, Step};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::commands::costs::calls::{Call, Today};

/// The origin of calls of spec runs and audits.
const SPEC: &str = "spec";
/// Stands for an unknown model.
pub(super) const UNNAMED: &str = "not said";

/// The steps of a journal, without lines that this version does not know; `None` if it is incomplete.
pub(super) fn steps(folder: &Path) -> Option<RunView> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Known {
        Event(Box<Event>),
        Other(IgnoredAny),
    }
    let entries = Journal::entries::<Known>(&folder.join(code_commit_perform::JOURNAL)).ok()?;
    let lines = entries.iter().filter_map(|entry| match &entry.fact {
        Known::Event(line) => Some((entry.at.as_str(), &**line)),
        Known::Other(_) => None,
    });
    Some(RunView::of(lines))
}

/// Every call; `None` if the journal is incomplete.
pub(super) fn calls(folder: &Path, today: &Today) -> Option<Vec<Call>> {
    let (run, steps) = (Run::of(folder, today), steps(folder)?);
    let turn = |number: usize| format!("{} {number}", folder.display());
    let calls = |(number, step)| {
        let calls = run.of_step(step).into_iter();
        calls.map(move |call| Call {
            turn: call.role.is_some().then(|| turn(number)),
            ..call
        })
    };
    Some(steps.all.iter().enumerate().flat_map(calls).collect())
}

/// The day of an RFC 3339 time.
pub(super) fn day(at: &str) -> Option<String> {
    at.split_once('T').map(|(day, _)| day.to_owned())
}

/// A model without its provider, as services report it.
pub(super) fn bare(model: &str) -> String {
    model
        .split_once('/')
        .map_or(model, |(_, name)| name)
        .to_owned()
}

/// The content of `run.json`.
struct Run<'t> {
    origin: String,
    model: String,
    today: &'t Today,
}

impl<'t> Run<'t> {
    fn of(folder: &Path, today: &'t Today) -> Self {
        let text = fs::read_to_string(folder.join(RUN_JSON)).unwrap_or_default();
        let run: Value = serde_json::from_str(&text).unwrap_or_default();
        let word = |at: &str| run.pointer(at).and_then(Value::as_str).map(str::to_owned);
        let model = word("/settings/options/model/name")
            .or_else(|| word("/model"))
            .unwrap_or_else(|| UNNAMED.to_owned());
        let model = bare(model.split(',').next().unwrap_or_default());
        // An audit has a journal but no `run.json`.
        let of_specs = folder
            .parent()
            .is_some_and(|runs| runs.ends_with(spec::RUNS));
        let origin =
            word("/loop").unwrap_or_else(|| if of_specs { SPEC } else { UNNAMED }.to_owned());
        Self {
            origin,
            model,
            today,
        }
    }

    fn call(&self, role: Option<String>) -> Call {
        let is_turn = role.is_some();
        let model = if is_turn { UNNAMED } else { &self.model };
        Call {
            origin: self.origin.clone(),
            requests: u64::from(!is_turn),
            role,
            model: model.to_owned(),
            ..Call::default()
        }
    }

    /// A lost call counts like any other, without usage: see `code_commit_timeline::Lost`.
    fn of_step(&self, step: &Step) -> Vec<Call> {
        let Some(of) = step.call() else {
            return Vec::new();
        };
        // A turn counts on the day on which it ended.
        let is_turn = of.role.is_some() && of.is_over;
        let at_ms = if is_turn || of.prompt.is_none() {
            step.to_ms
        } else {
            step.from_ms
        };
        let at_most_usd = of.at_most.and_then(|most| most.cost_usd);
        let call = Call {
            at_most_usd,
            day: Some(code_commit_timeline::day(at_ms)),
            ..self.call(of.role.clone())
        };
        if is_turn {
            return self.turned(call, of.usage.clone(), of.cost_usd);
        }
        let model = of.asked_model.as_deref().map(bare);
        let model = model.unwrap_or_else(|| call.model.clone());
        let call = Call { model, ..call };
        let lost = of.attempts.iter().filter(|attempt| attempt.is_lost());
        let mut calls: Vec<Call> = lost.map(|_| call.clone()).collect();
        let answers = of.attempts.iter().filter(|attempt| attempt.is_answer());
        if of.answer.is_some() {
            // Its usage is that of all attempts.
            let requests = answers.count().max(1) as u64;
            let call = Call { requests, ..call };
            calls.push(self.answered(call, of.tokens(), of.served_model.clone(), of.cost_usd));
            return calls;
        }
        calls.extend(answers.map(|attempt| {
            let served = attempt.served_model.clone();
            self.answered(call.clone(), attempt.usage, served, None)
        }));
        // What is still open was paid for, or may have been.
        calls.extend((of.is_in_flight() || of.role.is_some()).then_some(call));
        calls
    }

    fn answered(
        &self,
        call: Call,
        usage: Usage,
        served: Option<String>,
        cost_usd: Option<f64>,
    ) -> Call {
        let model = served.unwrap_or_else(|| call.model.clone());
        let cost_usd = cost_usd.or_else(|| self.today.cost(&model, usage));
        Call {
            model,
            total: usage.total(),
            usage,
            cost_usd,
            at_most_usd: None,
            ..call
        }
    }

    /// One call per model; one without a name if the CLI did not report any.
    fn turned(&self, base: Call, usage: Vec<ModelUsage>, cost_usd: Option<f64>) -> Vec<Call> {
        let mut calls: Vec<Call> = usage.into_iter().map(|of| of_model(of, &base)).collect();
        if calls.is_empty() {
            calls.push(base.clone());
        }
        price(&mut calls, cost_usd, base, self.today);
        calls
    }
}

/// The CLI's cost of the whole turn takes precedence over a price list.
pub(super) fn price(calls: &mut Vec<Call>, whole: Option<f64>, base: Call, today: &Today) {
    match whole.filter(|cost| cost.is_finite() && *cost >= 0.0) {
        Some(whole) => share(whole, calls, base),
        None => calls.iter_mut().for_each(|call| {
            call.cost_usd = call
                .cost_usd
                .or_else(|| today.cost(&call.model, call.usage));
        }),
    }
}

/// Usage of one model, with its cost if the CLI reports it.
pub(super) fn of_model(of: ModelUsage, base: &Call) -> Call {
    let usage = of.usage;
    Call {
        model: of.model,
        total: usage.total(),
        usage,
        cost_usd: of.cost_usd,
        ..base.clone()
    }
}

/// Counts the cost of a whole turn once: the part not covered by the models' own costs goes to the model
/// without one. If several have none, it cannot be attributed.
fn share(whole: f64, calls: &mut Vec<Call>, base: Call) {
    let rest = (whole - calls.iter().filter_map(|call| call.cost_usd).sum::<f64>()).max(0.0);
    let mut open: Vec<&mut Call> = calls
        .iter_mut()
        .filter(|call| call.cost_usd.is_none())
        .collect();
    match open.as_mut_slice() {
        [] => {}
        [one] => one.cost_usd = Some(rest),
        // Its tokens are already counted for the models.
        [..] => calls.push(Call {
            cost_usd: Some(rest),
            total: Some(0),
            ..base
        }),
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test makes the folder of a run"
)]
mod tests;
