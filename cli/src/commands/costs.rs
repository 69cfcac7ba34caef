//! `code-commit costs`: what the turns of all phases have used (S3 §Token Tracking).

use std::collections::BTreeMap;

use loop_phase::tokens::{self, Row};
use serde_json::json;

use crate::commands::here;
use crate::commands::phase::{ABL, read};
use crate::exit::{Exit, Failure};
use crate::output::{Output, STRONG, printable};

/// Sums of some rows. `None` is unknown.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sum {
    calls: u64,
    unknown: u64,
    input: u64,
    output: u64,
    cached: u64,
    total: u64,
    cost_usd: Option<f64>,
}

impl Sum {
    fn add(&mut self, row: &Row) {
        self.calls += 1;
        self.unknown += u64::from(row.total.is_none());
        self.input += row.input.unwrap_or(0);
        self.output += row.candidates.unwrap_or(0) + row.thoughts.unwrap_or(0);
        self.cached += row.cached.unwrap_or(0);
        self.total += row.total.unwrap_or(0);
        if let Some(cost) = row.cost_usd.or_else(|| price(row)) {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
    }
}

/// What the price list of today says.
fn price(row: &Row) -> Option<f64> {
    let output = row.candidates? + row.thoughts.unwrap_or(0);
    let usage = llm::Usage {
        input_tokens: row.input,
        cache_read_tokens: row.cached,
        output_tokens: Some(output),
        reasoning_tokens: row.thoughts,
        ..llm::Usage::default()
    };
    let day = llm::Day::try_from(logging::Stamp::now().rfc3339().get(..10)?.to_owned()).ok()?;
    llm::Prices::built_in().of(&row.model, &day)?.cost(&usage).map(llm::Money::as_usd)
}

/// What rows are put together by.
type Key = fn(&Row) -> String;

/// Prints sums by phase, by role and by model.
pub fn run(output: &Output) -> Result<Exit, Failure> {
    let file = here()?.join(ABL).join(loop_phase::TOKENS);
    let (rows, odd) = tokens::read(&read(&file)?.unwrap_or_default());
    if odd > 0 {
        output.warn(&format!("{odd} lines of {} are no rows and were left out", file.display()));
    }
    if rows.is_empty() {
        output.report("No turn of a phase is on record here.");
        return Ok(Exit::Done);
    }
    let by: [(&str, Key); 4] = [
        ("phase", |row| row.phase.clone()),
        ("role", |row| row.role.clone()),
        ("model", |row| row.model.clone()),
        ("", |_| "all".to_owned()),
    ];
    let mut objects = serde_json::Map::new();
    for (title, key) in by {
        let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
        rows.iter().for_each(|row| sums.entry(key(row)).or_default().add(row));
        output.report(&table(title, &sums, output));
        let sums = sums.iter().map(|(name, sum)| (name.clone(), object(sum))).collect();
        objects
            .insert(if title.is_empty() { "all" } else { title }.to_owned(), serde_json::Value::Object(sums));
    }
    output.object(&json!({ "event": "costs", "by": objects }));
    Ok(Exit::Done)
}

fn object(sum: &Sum) -> serde_json::Value {
    json!({ "calls": sum.calls, "unknown": sum.unknown, "input": sum.input, "output": sum.output,
        "cached": sum.cached, "total": sum.total, "cost_usd": sum.cost_usd })
}

fn table(title: &str, sums: &BTreeMap<String, Sum>, output: &Output) -> String {
    let head = format!(
        "{title:24} {:>6} {:>12} {:>12} {:>12} {:>12} {:>10}",
        "calls", "input", "output", "cached", "total", "US$"
    );
    let mut lines = vec![output.paint(STRONG, &head)];
    for (name, sum) in sums {
        let cost = sum.cost_usd.map_or("unknown".to_owned(), |cost| format!("{cost:.4}"));
        let unknown =
            if sum.unknown > 0 { format!("  ({} without usage)", sum.unknown) } else { String::new() };
        lines.push(format!(
            "{:24} {:>6} {:>12} {:>12} {:>12} {:>12} {cost:>10}{unknown}",
            printable(name),
            sum.calls,
            sum.input,
            sum.output,
            sum.cached,
            sum.total
        ));
    }
    lines.join("\n") + "\n"
}
