//! `code-commit costs`: usage of all runs and all turns of phases (S3 §Token Tracking, extended to every
//! run).

mod calls;
mod journal;

use std::collections::{BTreeMap, BTreeSet};

use code_commit_report::{Output, STRONG, printable_name};
use code_commit_runs::{Exit, Failure, Host, Project};
use code_commit_settings::Options;
use serde_json::{Value, json};

use crate::commands::costs::calls::{Call, Today, find};

/// Totals of some calls.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sum {
    entries: u64,
    calls: u64,
    turns: BTreeSet<String>,
    /// Calls with unknown tokens: they are in no total of tokens.
    unknown: u64,
    /// Calls whose price is unknown.
    unpriced: u64,
    /// Calls with neither known.
    silent: u64,
    input: u64,
    output: u64,
    cached: u64,
    total: u64,
    /// Total for the calls with a price.
    cost_usd: f64,
    /// Calls that can have cost any amount.
    unbounded: u64,
    /// The most that the others can have cost.
    at_most_usd: f64,
}

impl Sum {
    fn add(&mut self, call: &Call) {
        let plus = |sum: &mut u64, more: Option<u64>| *sum = sum.saturating_add(more.unwrap_or(0));
        self.entries += 1;
        self.calls += call.requests;
        self.turns.extend(call.turn.clone());
        self.unknown += u64::from(call.total.is_none());
        self.unpriced += u64::from(call.cost_usd.is_none());
        self.silent += u64::from(call.total.is_none() && call.cost_usd.is_none());
        plus(&mut self.input, call.usage.input_tokens);
        plus(&mut self.output, call.usage.output_tokens);
        plus(&mut self.cached, call.usage.cache_read_tokens);
        plus(&mut self.total, call.total);
        self.cost_usd += call.cost_usd.unwrap_or(0.0);
        let at_most_usd = call.cost_usd.or(call.at_most_usd);
        self.unbounded += u64::from(at_most_usd.is_none());
        self.at_most_usd += at_most_usd.unwrap_or(0.0);
    }

    /// Calls, turns, input, output, cached, total; `None` if no call reported any. 0 is a reported zero.
    fn figures(&self) -> [Option<u64>; 6] {
        let is_counted = self.calls > 0 || self.turns.is_empty();
        let tokens = [self.input, self.output, self.cached, self.total];
        let is_known = self.unknown < self.entries;
        let [input, output, cached, total] = tokens.map(|figure| is_known.then_some(figure));
        let (calls, turns) = (is_counted.then_some(self.calls), self.turns.len() as u64);
        [calls, Some(turns), input, output, cached, total]
    }

    /// `None` if no price is known.
    fn cost_usd(&self) -> Option<f64> {
        (self.unpriced < self.entries).then_some(self.cost_usd)
    }

    /// `None` if a call can have cost any amount.
    fn at_most_usd(&self) -> Option<f64> {
        (self.unbounded == 0).then_some(self.at_most_usd)
    }

    fn object(&self) -> Value {
        let [calls, turns, input, output, cached, total] = self.figures();
        json!({ "calls": calls, "turns": turns, "unknown": self.unknown, "unpriced": self.unpriced, "input": input,
            "output": output, "cached": cached, "total": total, "cost_usd": self.cost_usd(),
            "at_most_usd": self.at_most_usd() })
    }

    /// What the totals leave out.
    fn note(&self) -> Option<String> {
        let priceless = self.unpriced - self.silent;
        let parts = [
            (self.unknown > 0).then(|| format!("{} without usage", self.unknown)),
            (priceless > 0 && self.cost_usd().is_some())
                .then(|| format!("{priceless} without a price")),
            self.at_most_usd()
                .filter(|_| self.unpriced > 0)
                .map(|usd| format!("at most ${usd:.4} in all")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("  ({})", parts.join(", ")))
    }
}

/// In place of a figure.
const UNKNOWN: &str = "?";

/// What to group calls by; calls without it are left out.
type Key = fn(&Call) -> Option<String>;

/// The tables, in order. The last one has no title.
const TABLES: [(&str, Key); 6] = [
    ("loop", |call| Some(call.origin.clone())),
    ("phase", |call| call.phase.clone()),
    ("role", |call| call.role.clone()),
    ("model", |call| Some(call.model.clone())),
    ("day", |call| call.day.clone()),
    ("all", |_| Some("all".to_owned())),
];

/// Prints totals by loop, phase, role, model and day.
pub fn run(host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let root = host.here()?;
    let settings = code_commit_runs::config::load(root, &Options::default(), host)?;
    let found = find(root, &Today::of(&settings))?;
    for warning in &found.warnings {
        output.warn(warning);
    }
    if found.calls.is_empty() {
        output.report("No call of a model is on record here.");
        let elsewhere = Project::here(host)?.registry().elsewhere();
        elsewhere
            .iter()
            .for_each(|elsewhere| output.note(elsewhere));
    }
    let mut objects = serde_json::Map::new();
    for (title, key) in TABLES {
        let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
        for call in &found.calls {
            if let Some(name) = key(call) {
                sums.entry(name).or_default().add(call);
            }
        }
        if !sums.is_empty() {
            let title = if title == "all" { "" } else { title };
            output.report(&table(title, &sums, output));
        }
        let sums = sums.iter().map(|(name, sum)| (name.clone(), sum.object()));
        objects.insert(title.to_owned(), Value::Object(sums.collect()));
    }
    output.object(&json!({ "event": "costs", "by": objects }));
    Ok(Exit::Done)
}

/// Columns of a name.
const NAME: usize = 17;

fn table(title: &str, sums: &BTreeMap<String, Sum>, output: &Output) -> String {
    let row = |name: &str, figures: [String; 6], cost: &str| {
        let [calls, turns, input, out, cached, total] = figures;
        format!(
            "{name:NAME$} {calls:>5} {turns:>5} {input:>9} {out:>8} {cached:>9} {total:>10} {cost:>9}"
        )
    };
    let heads = ["calls", "turns", "input", "output", "cached", "total"].map(str::to_owned);
    let mut lines = vec![output.paint(STRONG, &row(title, heads, "US$"))];
    for (name, sum) in sums {
        let cost = sum
            .cost_usd()
            .map_or(UNKNOWN.to_owned(), |cost| format!("{cost:.4}"));
        let mut name = printable_name(name);
        if name.chars().count() > NAME {
            lines.push(std::mem::take(&mut name));
        }
        let figures = sum
            .figures()
            .map(|figure| figure.map_or(UNKNOWN.to_owned(), |count| count.to_string()));
        lines.push(row(&name, figures, &cost));
        lines.extend(sum.note());
    }
    lines.join("\n") + "\n"
}
