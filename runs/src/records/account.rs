//! What a list shows of a run besides its outcome: the query, the cost, the time.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use code_commit_engine::Line;
use code_commit_logging::RunFolder;
use code_commit_loop_order::RunSummary;
use code_commit_report::{SUMMARY, phrases, printable};
use code_commit_timeline::Steps;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::commit::plan::Task;
use crate::registry::RUN_JSON;

/// Characters of a query to show.
const SHOWN: usize = 60;
/// Bytes of it to read: its first line may be blank, and the rest may be long.
const READ: u64 = 1 << 10;

/// What is known of one run.
#[derive(Debug, Default)]
pub struct Account {
    query: Option<String>,
    ended: Option<Ended>,
}

/// The part of `summary.json` that a list shows.
#[derive(Debug, Deserialize)]
struct Ended {
    cost_usd: Option<f64>,
    elapsed_ms: u64,
}

impl Account {
    /// For a run of a loop with a query. Leaves out what cannot be read, since a list names every run.
    pub fn of(folder: &RunFolder) -> Self {
        let ended = folder.read(SUMMARY).ok().and_then(|text| serde_json::from_str(&text).ok());
        Self { query: query(folder), ended }
    }

    /// For the run of an order, whose title replaces the query.
    pub fn of_order(title: Option<&str>, lines: &[Line], summary: Option<&RunSummary>) -> Self {
        let cost_usd = Steps::untimed(lines).answers_usd();
        let ended = summary.and_then(elapsed_ms).map(|elapsed_ms| Ended { cost_usd, elapsed_ms });
        Self { query: title.map(shortened), ended }
    }

    /// `, $0.0012, 12 s`; empty for a run that has not ended.
    pub fn spent(&self) -> String {
        self.ended.as_ref().map_or_else(String::new, |ended| {
            let took = phrases::seconds(std::time::Duration::from_millis(ended.elapsed_ms));
            format!(", {}, {took}", phrases::cost(ended.cost_usd))
        })
    }

    /// The first line of the query, shortened, after two spaces.
    pub fn asked(&self) -> String {
        self.query.as_ref().map_or_else(String::new, |query| format!("  {}", printable(query)))
    }

    /// The same for programs: null if unknown.
    pub fn json(&self) -> Map<String, Value> {
        let ended = self.ended.as_ref();
        let members = [
            ("query", json!(self.query)),
            ("cost_usd", json!(ended.and_then(|ended| ended.cost_usd))),
            ("elapsed_ms", json!(ended.map(|ended| ended.elapsed_ms))),
        ];
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

fn query(folder: &RunFolder) -> Option<String> {
    let text = query_of(folder, READ)?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(shortened(line))
}

/// The beginning of the query in the first prompt, which may be large and is not read in full.
pub(crate) fn query_of(folder: &RunFolder, most: u64) -> Option<String> {
    let task: Task = serde_json::from_str(&folder.read(RUN_JSON).ok()?).ok()?;
    let place = task.query_in_prompt();
    let start = read(&folder.path().join(task.layout().query(1)), place, most).ok()?;
    Some(String::from_utf8_lossy(&start).into_owned())
}

fn shortened(line: &str) -> String {
    let mut shown: String = line.chars().take(SHOWN).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}

fn elapsed_ms(summary: &RunSummary) -> Option<u64> {
    let [started, ended] = [&summary.started_utc, &summary.ended_utc].map(|at| at.parse::<Timestamp>());
    u64::try_from(ended.ok()?.duration_since(started.ok()?).as_millis()).ok()
}

fn read(prompt: &std::path::Path, place: std::ops::Range<usize>, most: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(prompt)?;
    file.seek(SeekFrom::Start(place.start as u64))?;
    let mut start = Vec::new();
    file.take((place.len() as u64).min(most)).read_to_end(&mut start)?;
    Ok(start)
}
