//! Every model call on record here: turns of phases and of spec runs, and rounds of all other runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use code_commit_engine::{ModelUsage, Usage};
use code_commit_llm::{Day, Money, Prices};
use code_commit_loop_phase::tokens::{self, Row, Table};
use code_commit_names::ours::{ABL, STATE};
use code_commit_repo::WorkTree;
use code_commit_report::phrases;
use code_commit_runs::model::today;
use code_commit_runs::phase::{LOGS, read};
use code_commit_runs::registry::{Known, Registry};
use code_commit_runs::{Failure, records, spec};
use code_commit_settings::Settings;

use crate::commands::costs::journal::{self, UNNAMED};

const PHASE: &str = "phase";

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// The loop: `commit`, `implement`, `order`, `phase`, `spec`.
    pub origin: String,
    /// The phase; for phases only.
    pub phase: Option<String>,
    /// The role; for loops with roles.
    pub role: Option<String>,
    pub model: String,
    /// Calls to the service that are or may have been paid for; 0 in a turn, whose calls no agent reports.
    pub requests: u64,
    /// The turn of an agent that it belongs to: each of its models has an entry.
    pub turn: Option<String>,
    /// Tokens; unknown if the answer never came.
    pub usage: Usage,
    /// All tokens, if the record says so.
    pub total: Option<u64>,
    /// US dollars; `None` if the price is unknown.
    pub cost_usd: Option<f64>,
    /// The most that a call without an answer can have cost, if that is known.
    pub at_most_usd: Option<f64>,
    /// When it was made: `2026-11-21`.
    pub day: Option<String>,
}

/// Prices for calls whose record does not state one: today's, those of the configuration, then the built-in list.
pub struct Today {
    prices: Prices,
    day: Option<Day>,
}

impl Today {
    pub fn of(settings: &Settings) -> Self {
        Self {
            prices: settings.prices(),
            day: today(),
        }
    }

    /// US dollars; `None` if no price is known.
    pub fn cost(&self, model: &str, usage: Usage) -> Option<f64> {
        self.prices
            .of_name(model, self.day?)?
            .cost(&usage)
            .map(Money::as_usd)
    }
}

/// All calls, with warnings about the search.
#[derive(Debug, Default)]
pub struct Found {
    pub calls: Vec<Call>,
    /// One sentence each.
    pub warnings: Vec<String>,
}

impl Found {
    fn cannot_read(&mut self, folder: &Path) {
        self.warnings.push(format!(
            "the journal of {} cannot be read and is left out",
            folder.display()
        ));
    }
}

pub fn find(root: &Path, today: &Today) -> Result<Found, Failure> {
    let mut found = Found::default();
    phases(root, today, &mut found)?;
    for folder in folders(root)? {
        match journal::calls(&folder, today) {
            Some(calls) => found.calls.extend(calls),
            None => found.cannot_read(&folder),
        }
    }
    Ok(found)
}

fn phases(root: &Path, today: &Today, found: &mut Found) -> Result<(), Failure> {
    let file = root.join(ABL).join(code_commit_loop_phase::TOKENS);
    let Table { rows, left_out } = tokens::read(&read(&file)?.unwrap_or_default());
    if left_out > 0 {
        let lines = phrases::count(left_out as u64, "line");
        found.warnings.push(format!(
            "left out of {}: {lines} that cannot be read as a row",
            file.display()
        ));
    }
    let said = said_of_turns(root, found);
    let is_of_one_turn = |one: &Row, other: &Row| turn_of(one) == turn_of(other);
    for (number, rows) in rows.chunk_by(is_of_one_turn).enumerate() {
        let said = rows.first().and_then(|row| said.get(&turn_of(row)));
        let (usage, whole) = said.cloned().unwrap_or_default();
        let call = |row: &Row| {
            let of_model = usage.iter().find(|of| of.model == row.model);
            Call {
                turn: Some(number.to_string()),
                cost_usd: of_model.and_then(|of| of.cost_usd),
                ..of_row(row)
            }
        };
        let mut calls: Vec<Call> = rows.iter().map(call).collect();
        let base = Call {
            model: UNNAMED.to_owned(),
            usage: Usage::default(),
            ..calls.first().cloned().unwrap_or_default()
        };
        journal::price(&mut calls, whole, base, today);
        found.calls.extend(calls);
    }
    Ok(())
}

/// Identifies a turn in the table and in the journals: its end, its role, its session.
type Turn = (String, String, String);
/// Tokens by model, and the cost of the whole turn.
type Said = (Vec<ModelUsage>, Option<f64>);

fn turn_of(row: &Row) -> Turn {
    (row.at.clone(), row.role.clone(), row.session.clone())
}

/// The costs of phases' turns as agents report them: the seed's table has no column for them, the journals
/// do.
fn said_of_turns(root: &Path, found: &mut Found) -> BTreeMap<Turn, Said> {
    let mut said = BTreeMap::new();
    for folder in folders_in(&root.join(ABL).join(LOGS)) {
        let Some(steps) = journal::steps(&folder) else {
            found.cannot_read(&folder);
            continue;
        };
        for turned in steps.calls().filter_map(|call| call.turned.clone()) {
            let turn = (turned.at, turned.role, turned.session.unwrap_or_default());
            said.insert(turn, (turned.usage, turned.cost_usd));
        }
    }
    said
}

fn of_row(row: &Row) -> Call {
    let said = row
        .candidates
        .map(|said| said.saturating_add(row.thoughts().unwrap_or(0)));
    let usage = Usage {
        input_tokens: row.input,
        cache_read_tokens: row.cached,
        output_tokens: said,
        reasoning_tokens: row.thoughts(),
        ..Usage::default()
    };
    Call {
        origin: PHASE.to_owned(),
        phase: Some(row.phase.clone()),
        role: Some(row.role.clone()),
        day: journal::day(&row.at),
        model: row.model.clone(),
        total: row.total,
        usage,
        ..Call::default()
    }
}

/// The folders of all other runs.
fn folders(root: &Path) -> Result<BTreeSet<PathBuf>, Failure> {
    let mut own = BTreeSet::new();
    // A repository cannot contain the harness's own state.
    let mut state = root.join(STATE);
    if let Ok(tree) = WorkTree::at(root) {
        // Phases are counted in their own table.
        let all = Registry::of(&tree).all()?.into_iter();
        let counted = all.filter(|run: &Known| run.loop_name(tree.root()) != PHASE);
        own.extend(counted.map(|run| run.path(tree.root())));
        state = tree.state_of_root()?;
    }
    let places = [records::RUNS, spec::RUNS].map(|name| state.join(name));
    own.extend(places.iter().flat_map(|place| folders_in(place)));
    own.retain(|folder| folder.join(code_commit_perform::JOURNAL).is_file());
    Ok(own)
}

/// Folders with a journal; follows no symlink.
fn folders_in(place: &Path) -> Vec<PathBuf> {
    let entries = code_commit_dir::list(place).into_iter().flatten().flatten();
    let is_folder = |kind: code_commit_dir::FileType| kind.is_dir();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(is_folder));
    let paths = folders.map(|entry| entry.path());
    paths
        .filter(|path| path.join(code_commit_perform::JOURNAL).is_file())
        .collect()
}
