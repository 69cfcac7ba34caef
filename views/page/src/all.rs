//! The page of all runs of a project.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use code_commit_report::phrases;
use code_commit_timeline::{Run, day};

use crate::frame::{SCRIPT, STYLE, moment, policy, rendered};
use crate::run::tone;

#[derive(Template)]
#[template(path = "all.html")]
struct Page<'p> {
    policy: String,
    style: &'static str,
    script: &'static str,
    project: &'p str,
    total: String,
    loops: Vec<Success>,
    rows: Vec<Row<'p>>,
    kinds: BTreeSet<&'p str>,
    verdicts: BTreeSet<&'p str>,
    /// Without a page for each run.
    is_alone: bool,
}

struct Row<'p> {
    run: &'p Run,
    /// When it began, unless its name says so.
    began: String,
    /// The file with its page, as an address.
    page: Option<String>,
    class: &'static str,
    query: &'p str,
    model: &'p str,
    took: String,
    cost: String,
}

/// How often a loop reached its goal.
struct Success {
    kind: String,
    runs: usize,
    done: usize,
    failed: usize,
    undone: usize,
    /// Without a verdict: unfinished, or the model could not be reached, or a person has to decide.
    open: usize,
    /// Done, of all runs with a verdict; a change that somebody took back is none that was wanted. Empty if there is no verdict.
    share: String,
    cost: String,
}

/// The page of all runs of a project, in the order in which they are given: the newest first. `page_of` gives the file
/// with the page of a run, if there is one beside this page.
pub fn all(project: &str, runs: &[Run], page_of: &dyn Fn(&Run) -> Option<String>) -> String {
    let count = phrases::count(runs.len() as u64, "run");
    let mut loops: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        loops.entry(&run.kind).or_default().push(run);
    }
    rendered(&Page {
        policy: policy(Some(SCRIPT)),
        style: STYLE,
        script: SCRIPT,
        project,
        total: format!("{count}, cost {}", cost(runs.iter())),
        kinds: loops.keys().copied().collect(),
        loops: loops
            .into_iter()
            .map(|(kind, runs)| success(kind, &runs))
            .collect(),
        rows: runs.iter().map(|run| row(run, page_of(run))).collect(),
        verdicts: runs.iter().map(Run::stands).collect(),
        is_alone: runs.iter().all(|run| page_of(run).is_none()),
    })
}

fn row(run: &Run, page: Option<String>) -> Row<'_> {
    let steps = &run.steps;
    let served = steps.calls().find_map(|call| call.served_model.as_deref());
    let model = Some(&*run.model).filter(|model| !model.is_empty());
    let query = Some(run.headline()).filter(|line| *line != run.name);
    let is_named = run.name.starts_with(&day(steps.from_ms));
    Row {
        run,
        began: if is_named {
            String::new()
        } else {
            moment(steps.from_ms)
        },
        page,
        class: tone(run).class(),
        query: query.unwrap_or_default(),
        model: model.or(served).unwrap_or_default(),
        took: phrases::took(steps.elapsed_ms()),
        cost: cost([run].into_iter()),
    }
}

fn success(kind: &str, runs: &[&Run]) -> Success {
    let count = |is_so: fn(&Run) -> bool| runs.iter().filter(|run| is_so(run)).count();
    let undone = count(|run| run.undone);
    let done = count(|run| run.is_good == Some(true) && !run.undone);
    let failed = count(Run::has_missed);
    let judged = done + failed + undone;
    let share = (done * 100 + judged / 2).checked_div(judged);
    Success {
        kind: kind.to_owned(),
        runs: runs.len(),
        done,
        failed,
        undone,
        open: runs.len() - judged,
        share: share.map_or_else(String::new, |share| format!("{share} %")),
        cost: cost(runs.iter().copied()),
    }
}

/// `$0.0123`, `at least $0.0123` if the cost of some is not known, `unknown` if that of none is.
fn cost<'r>(runs: impl Iterator<Item = &'r Run>) -> String {
    let (known, unknown): (Vec<_>, Vec<_>) = runs
        .map(|run| run.steps.cost_usd())
        .partition(Option::is_some);
    let sum: f64 = known.iter().flatten().sum();
    match (known.is_empty(), unknown.is_empty()) {
        (true, false) => "unknown".to_owned(),
        (false, false) => format!("at least ${sum:.4}"),
        (_, true) => format!("${:.4}", sum.abs()),
    }
}
