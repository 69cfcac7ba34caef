//! The model calls of one run, as its journal has them.

use std::fs;
use std::path::Path;

use code_commit_engine::{AtMost, Attempt, ModelUsage, Usage};
use code_commit_logging::Journal;
use code_commit_runs::registry::RUN_JSON;
use code_commit_runs::spec;
use serde::Deserialize;
use serde_json::Value;

use crate::commands::costs::calls::{Call, Today};

/// The origin of calls of spec runs and audits.
const SPEC: &str = "spec";
/// Stands for an unknown model.
pub(super) const UNNAMED: &str = "not said";

/// The billing facts of a journal of any loop.
#[derive(Debug, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub(super) enum Paid {
    Asked {
        model: Option<String>,
        at_most: Option<AtMost>,
    },
    Attempted {
        #[serde(default = "Attempt::unreadable", deserialize_with = "Attempt::recorded")]
        attempt: Attempt,
    },
    Answered {
        #[serde(default)]
        usage: Usage,
        served_model: Option<String>,
        cost_usd: Option<f64>,
    },
    Unanswered {},
    TurnBegins {
        role: String,
    },
    #[serde(alias = "cut-off")]
    Turned {
        #[serde(default)]
        at: String,
        role: String,
        session: Option<String>,
        #[serde(default)]
        usage: Vec<ModelUsage>,
        cost_usd: Option<f64>,
    },
    #[serde(other)]
    Other,
}

/// Every call; `None` if the journal is incomplete.
pub(super) fn calls(folder: &Path, today: &Today) -> Option<Vec<Call>> {
    let entries = Journal::entries::<Paid>(&folder.join(code_commit_perform::JOURNAL)).ok()?;
    let mut reader =
        Reader { run: Run::of(folder, today), calls: Vec::new(), sent: None, answers: Vec::new() };
    entries.into_iter().for_each(|entry| reader.read(entry.fact, day(&entry.at)));
    reader.close();
    Some(reader.calls)
}

/// The day of an RFC 3339 time.
pub(super) fn day(at: &str) -> Option<String> {
    at.split_once('T').map(|(day, _)| day.to_owned())
}

/// Collects the calls of one journal. A lost call counts like any other, without usage: see `code_commit_engine::Lost`.
struct Reader<'t> {
    run: Run<'t>,
    calls: Vec<Call>,
    /// The last call, and whether nothing is known of it since it was sent.
    sent: Option<(Call, bool)>,
    /// Attempts that reported their usage, but are not part of an answer yet.
    answers: Vec<Call>,
}

impl Reader<'_> {
    fn read(&mut self, fact: Paid, day: Option<String>) {
        match fact {
            Paid::Asked { model, at_most } => {
                self.close();
                let at_most_usd = at_most.and_then(|most| most.cost_usd);
                let call = Call { at_most_usd, day, ..self.run.call(None) };
                let model = model.map_or(call.model.clone(), |model| bare(&model));
                self.sent = Some((Call { model, ..call }, at_most.is_some()));
            }
            Paid::Attempted { attempt } => {
                let Some((call, is_in_flight)) = &mut self.sent else { return };
                *is_in_flight = attempt.wait_ms.is_some();
                if attempt.is_lost() {
                    self.calls.push(call.clone());
                } else if attempt.is_answer() {
                    let call = call.clone();
                    self.answers.push(self.run.answered(call, attempt.usage, attempt.served_model, None));
                }
            }
            Paid::Answered { usage, served_model, cost_usd } => {
                // Its usage is that of all attempts.
                self.answers.clear();
                let sent = self.sent.take().map(|(call, _)| call);
                let call = sent.unwrap_or_else(|| Call { day, ..self.run.call(None) });
                self.calls.push(self.run.answered(call, usage, served_model, cost_usd));
            }
            Paid::Unanswered {} => {
                self.sent = None;
                self.close();
            }
            Paid::TurnBegins { role } => {
                self.close();
                self.sent = Some((Call { day, ..self.run.call(Some(role)) }, true));
            }
            Paid::Turned { role, usage, cost_usd, .. } => {
                self.sent = None;
                let base = Call { day, ..self.run.call(Some(role)) };
                self.calls.extend(self.run.turned(base, usage, cost_usd));
            }
            Paid::Other => {}
        }
    }

    /// What is still open was paid for, or may have been.
    fn close(&mut self) {
        self.calls.append(&mut self.answers);
        let lost = self.sent.take().filter(|(_, is_in_flight)| *is_in_flight);
        self.calls.extend(lost.map(|(call, _)| call));
    }
}

/// A model without its provider, as services report it.
pub(super) fn bare(model: &str) -> String {
    model.split_once('/').map_or(model, |(_, name)| name).to_owned()
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
        let model =
            word("/settings/model/value").or_else(|| word("/model")).unwrap_or_else(|| UNNAMED.to_owned());
        let model = bare(model.split(',').next().unwrap_or_default());
        // An audit has a journal but no `run.json`.
        let of_specs = folder.parent().is_some_and(|runs| runs.ends_with(spec::RUNS));
        let origin = word("/loop").unwrap_or_else(|| if of_specs { SPEC } else { UNNAMED }.to_owned());
        Self { origin, model, today }
    }

    fn call(&self, role: Option<String>) -> Call {
        let model = if role.is_some() { UNNAMED.to_owned() } else { self.model.clone() };
        Call { origin: self.origin.clone(), role, model, ..Call::default() }
    }

    fn answered(&self, call: Call, usage: Usage, served: Option<String>, cost_usd: Option<f64>) -> Call {
        let model = served.unwrap_or_else(|| call.model.clone());
        let cost_usd = cost_usd.or_else(|| self.today.cost(&model, usage));
        Call { model, total: usage.total(), usage, cost_usd, at_most_usd: None, ..call }
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
            call.cost_usd = call.cost_usd.or_else(|| today.cost(&call.model, call.usage));
        }),
    }
}

/// Usage of one model, with its cost if the CLI reports it.
pub(super) fn of_model(of: ModelUsage, base: &Call) -> Call {
    let usage = of.usage;
    Call { model: of.model, total: usage.total(), usage, cost_usd: of.cost_usd, ..base.clone() }
}

/// Counts the cost of a whole turn once: the part not covered by the models' own costs goes to the model
/// without one. If several have none, it cannot be attributed.
fn share(whole: f64, calls: &mut Vec<Call>, base: Call) {
    let rest = (whole - calls.iter().filter_map(|call| call.cost_usd).sum::<f64>()).max(0.0);
    let mut open: Vec<&mut Call> = calls.iter_mut().filter(|call| call.cost_usd.is_none()).collect();
    match open.as_mut_slice() {
        [] => {}
        [one] => one.cost_usd = Some(rest),
        // Its tokens are already counted for the models.
        [..] => calls.push(Call { cost_usd: Some(rest), total: Some(0), ..base }),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes the folder of a run")]
mod tests;
