//! The page of all runs of a project.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use code_commit_report::phrases;
use code_commit_timeline::{Run, day};

use crate::frame::{Bar, SCRIPT, STYLE, moment, policy};
use crate::run::{tone, took};
use crate::text::plain;

#[derive(Template)]
#[template(path = "all.html")]
struct Page {
    policy: String,
    style: &'static str,
    script: &'static str,
    project: String,
    total: String,
    loops: Vec<Success>,
    rows: Vec<Row>,
    kinds: BTreeSet<String>,
    verdicts: BTreeSet<String>,
    /// Without a page for each run.
    is_alone: bool,
}

struct Row {
    name: String,
    began_ms: i64,
    /// When it began, unless its name says so.
    began: String,
    /// The file with its page, as an address.
    page: Option<String>,
    kind: String,
    verdict: String,
    class: &'static str,
    query: String,
    model: String,
    rounds: u32,
    took: String,
    took_ms: u64,
    cost: String,
    /// For sorting; unknown costs come first.
    cost_key: f64,
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
    bars: Vec<Bar>,
    cost: String,
}

/// The page of all runs of a project, in the order in which they are given: the newest first. `page_of` gives the file
/// with the page of a run, if there is one beside this page.
pub fn all(project: &str, runs: &[Run], page_of: &dyn Fn(&Run) -> Option<String>) -> String {
    let unique =
        |of: fn(&Run) -> &str| runs.iter().map(|run| plain(of(run)).into_owned()).collect();
    let count = phrases::count(runs.len() as u64, "run");
    let mut loops: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        loops.entry(&run.kind).or_default().push(run);
    }
    let page = Page {
        policy: policy(Some(SCRIPT)),
        style: STYLE,
        script: SCRIPT,
        project: plain(project).into_owned(),
        total: format!("{count}, cost {}", cost(runs.iter())),
        loops: loops
            .iter()
            .map(|(kind, runs)| success(kind, runs))
            .collect(),
        rows: runs.iter().map(|run| row(run, page_of(run))).collect(),
        kinds: unique(|run| &run.kind),
        verdicts: unique(Run::stands),
        is_alone: runs.iter().all(|run| page_of(run).is_none()),
    };
    // Rendering into a string fails only if a template's own expression does, and none of ours can.
    page.render().unwrap_or_default()
}

fn row(run: &Run, page: Option<String>) -> Row {
    let steps = &run.steps;
    let served = steps.calls().find_map(|call| call.served_model.as_deref());
    let model = Some(&*run.model).filter(|model| !model.is_empty());
    let query = Some(run.headline()).filter(|line| *line != run.name);
    Row {
        name: plain(&run.name).into_owned(),
        began_ms: steps.from_ms,
        began: if run.name.starts_with(&day(steps.from_ms)) {
            String::new()
        } else {
            moment(steps.from_ms)
        },
        page,
        kind: plain(&run.kind).into_owned(),
        verdict: plain(run.stands()).into_owned(),
        class: tone(run),
        query: plain(query.unwrap_or_default()).into_owned(),
        model: plain(model.or(served).unwrap_or_default()).into_owned(),
        rounds: steps.rounds(),
        took: took(steps.elapsed_ms()),
        took_ms: steps.elapsed_ms(),
        cost: cost([run].into_iter()),
        cost_key: steps.cost_usd().unwrap_or(-1.0),
    }
}

fn success(kind: &str, runs: &[&Run]) -> Success {
    let count = |is_so: fn(&Run) -> bool| runs.iter().filter(|run| is_so(run)).count();
    let undone = count(|run| run.undone);
    let done = count(|run| run.is_good == Some(true) && !run.undone);
    let failed = count(Run::has_missed);
    let judged = done + failed + undone;
    let share = (done * 100 + judged / 2).checked_div(judged);
    let bar = |from: usize, to: usize, class| {
        (from < to).then(|| Bar::new(from as u64, to as u64, judged as u64, class))
    };
    let bars = [bar(0, done, "good"), bar(done, judged, "bad")];
    Success {
        kind: plain(kind).into_owned(),
        runs: runs.len(),
        done,
        failed,
        undone,
        open: runs.len() - judged,
        share: share.map_or_else(String::new, |share| format!("{share} %")),
        bars: bars.into_iter().flatten().collect(),
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
