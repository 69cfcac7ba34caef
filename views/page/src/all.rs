//! The page of all runs of a project.

use std::collections::BTreeMap;

use askama::Template;
use code_commit_report::phrases;
use code_commit_timeline::{Run, day};

use crate::frame::{Bar, SCRIPT, STYLE, moment, policy};
use crate::run::{tone, took};
use crate::text::plain;

/// Days in the table of costs; older ones are one row.
const DAYS: usize = 30;

#[derive(Template)]
#[template(path = "all.html")]
struct Page {
    policy: String,
    style: &'static str,
    script: &'static str,
    project: String,
    rows: Vec<Row>,
    kinds: Vec<String>,
    verdicts: Vec<String>,
    /// Without a page for each run.
    is_alone: bool,
    by_loop: Vec<Success>,
    by_day: Vec<Sum>,
    by_model: Vec<Sum>,
    total: String,
}

struct Row {
    name: String,
    /// The file with its page, as an address.
    page: Option<String>,
    kind: String,
    verdict: String,
    class: &'static str,
    query: String,
    model: String,
    rounds: u32,
    began: String,
    took: String,
    took_ms: u64,
    cost: String,
    /// For sorting; unknown costs come last.
    cost_key: String,
}

/// How often a loop reached its goal.
struct Success {
    kind: String,
    runs: usize,
    good: usize,
    bad: usize,
    open: usize,
    /// Of the runs that have ended; empty if none has.
    share: String,
    bars: Vec<Bar>,
    cost: String,
}

/// What a day or a model cost.
#[derive(Default)]
struct Sum {
    name: String,
    calls: usize,
    unpriced: usize,
    cost_usd: f64,
    cost: String,
    bars: Vec<Bar>,
}

/// The page of all runs of a project, in the order in which they are given: the newest first. `page_of` gives the file
/// with the page of a run, if there is one beside this page.
pub fn all(project: &str, runs: &[Run], page_of: &dyn Fn(&Run) -> Option<String>) -> String {
    let unique = |of: fn(&Run) -> &str| {
        let mut names: Vec<String> = runs.iter().map(|run| plain(of(run)).into_owned()).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let by_day = by_day(runs);
    let mut total = Sum::default();
    runs.iter()
        .flat_map(|run| run.steps.calls())
        .for_each(|call| total.add(call.cost_usd));
    let page = Page {
        policy: policy(Some(SCRIPT)),
        style: STYLE,
        script: SCRIPT,
        project: plain(project).into_owned(),
        rows: runs.iter().map(|run| row(run, page_of(run))).collect(),
        kinds: unique(|run| &run.kind),
        verdicts: unique(Run::stands),
        is_alone: runs.iter().all(|run| page_of(run).is_none()),
        by_loop: by_loop(runs),
        by_model: by_model(runs),
        total: format!(
            "{}, {}",
            phrases::count(runs.len() as u64, "run"),
            phrases::cost(total.known())
        ),
        by_day,
    };
    // Rendering into a string fails only if a template's own expression does, and none of ours can.
    page.render().unwrap_or_default()
}

fn row(run: &Run, page: Option<String>) -> Row {
    let steps = &run.steps;
    let cost = steps.cost_usd();
    let models: Vec<&str> = models(run).into_keys().collect();
    Row {
        name: plain(&run.name).into_owned(),
        page,
        kind: plain(&run.kind).into_owned(),
        verdict: plain(run.stands()).into_owned(),
        class: tone(run),
        query: plain(&run.title().unwrap_or_default()).into_owned(),
        model: plain(&models.join(", ")).into_owned(),
        rounds: steps.rounds(),
        began: moment(steps.from_ms),
        took: took(steps.elapsed_ms()),
        took_ms: steps.elapsed_ms(),
        cost: cost.map_or_else(|| "unknown".to_owned(), |cost| format!("{cost:.4}")),
        cost_key: cost.map_or_else(String::new, |cost| cost.to_string()),
    }
}

fn by_loop(runs: &[Run]) -> Vec<Success> {
    let mut groups: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    runs.iter()
        .for_each(|run| groups.entry(&run.kind).or_default().push(run));
    groups
        .into_iter()
        .map(|(kind, runs)| success(kind, &runs))
        .collect()
}

fn success(kind: &str, runs: &[&Run]) -> Success {
    let count = |is_so: fn(&Run) -> bool| runs.iter().filter(|run| is_so(run)).count();
    let good = count(|run| run.is_good == Some(true) && !run.undone);
    let bad = count(Run::has_missed);
    let open = runs.len() - good - bad;
    let (ended, parts) = (good + bad, [good as u64, bad as u64]);
    let share = (good * 100 + ended / 2).checked_div(ended);
    let bars = [
        (good > 0).then(|| Bar::new(0, parts[0], ended as u64, "good")),
        (bad > 0).then(|| Bar::new(parts[0], ended as u64, ended as u64, "bad")),
    ];
    let mut cost = Sum::default();
    runs.iter()
        .flat_map(|run| run.steps.calls())
        .for_each(|call| cost.add(call.cost_usd));
    Success {
        kind: plain(kind).into_owned(),
        runs: runs.len(),
        good,
        bad,
        open,
        share: share.map(|share| format!("{share} %")).unwrap_or_default(),
        bars: bars.into_iter().flatten().collect(),
        cost: cost
            .known()
            .map_or_else(|| "unknown".to_owned(), |usd| format!("{usd:.4}")),
    }
}

fn by_day(runs: &[Run]) -> Vec<Sum> {
    let mut days: BTreeMap<String, Sum> = BTreeMap::new();
    for run in runs {
        for step in &run.steps.all {
            let Some(call) = step.call() else { continue };
            days.entry(day(step.to_ms)).or_default().add(call.cost_usd);
        }
    }
    let mut newest: Vec<Sum> = days
        .into_iter()
        .rev()
        .map(|(name, sum)| Sum { name, ..sum })
        .collect();
    let older = newest.split_off(newest.len().min(DAYS));
    if !older.is_empty() {
        let mut sum = Sum {
            name: "before".to_owned(),
            ..Sum::default()
        };
        for day in older {
            sum.calls += day.calls;
            sum.unpriced += day.unpriced;
            sum.cost_usd += day.cost_usd;
        }
        newest.push(sum);
    }
    drawn(newest)
}

/// What each model of a run cost. The part of a turn's cost that no model has goes to the first one.
fn models(run: &Run) -> BTreeMap<&str, Vec<Option<f64>>> {
    let mut models: BTreeMap<&str, Vec<Option<f64>>> = BTreeMap::new();
    for call in run.steps.calls() {
        let named = call.usage.iter().filter(|one| !one.model.is_empty());
        let known: f64 = named.clone().filter_map(|one| one.cost_usd).sum();
        let mut rest = call.cost_usd.map(|whole| (whole - known).max(0.0));
        for one in named.clone() {
            let cost = one.cost_usd.or_else(|| rest.take());
            // A service calls the model by its bare name.
            let is_asked = run
                .model
                .strip_suffix(&*one.model)
                .is_some_and(|rest| rest.ends_with('/'));
            models
                .entry(if is_asked { &run.model } else { &one.model })
                .or_default()
                .push(cost);
        }
        if named.count() == 0 {
            let asked = if run.model.is_empty() {
                "not said"
            } else {
                run.model.as_str()
            };
            models.entry(asked).or_default().push(call.cost_usd);
        }
    }
    models
}

fn by_model(runs: &[Run]) -> Vec<Sum> {
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    for (model, costs) in runs.iter().flat_map(models) {
        let sum = sums.entry(model).or_default();
        costs.into_iter().for_each(|cost| sum.add(cost));
    }
    let mut sums: Vec<Sum> = sums
        .into_iter()
        .map(|(name, sum)| Sum {
            name: plain(name).into_owned(),
            ..sum
        })
        .collect();
    sums.sort_by(|one, other| other.cost_usd.total_cmp(&one.cost_usd));
    drawn(sums)
}

impl Sum {
    /// What is known of its cost; `None` if no call has a price.
    fn known(&self) -> Option<f64> {
        (self.calls == 0 || self.unpriced < self.calls).then_some(self.cost_usd)
    }

    fn add(&mut self, cost_usd: Option<f64>) {
        self.calls += 1;
        self.unpriced += usize::from(cost_usd.is_none());
        self.cost_usd += cost_usd.unwrap_or_default();
    }
}

/// With bars that compare them, in units of a hundredth of a cent.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cost is small and not negative"
)]
fn drawn(mut sums: Vec<Sum>) -> Vec<Sum> {
    let units = |cost: f64| (cost.max(0.0) * 1e4) as u64;
    let most = sums
        .iter()
        .map(|sum| units(sum.cost_usd))
        .max()
        .unwrap_or_default();
    for sum in &mut sums {
        sum.cost = format!("{:.4}", sum.cost_usd);
        if units(sum.cost_usd) > 0 {
            sum.bars
                .push(Bar::new(0, units(sum.cost_usd), most, "call"));
        }
    }
    sums
}
