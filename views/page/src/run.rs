//! The page of one run.

use std::collections::BTreeMap;
use std::time::Duration;

use askama::Template;
use code_commit_engine::{Outcome, Usage};
use code_commit_report::phrases;
use code_commit_timeline::{Run, Step, total};

use crate::diff::Diff;
use crate::frame::{Bar, STYLE, moment, policy};
use crate::step::{StepView, view};
use crate::text::{Read, Texts, plain};

#[derive(Template)]
#[template(path = "run.html")]
struct Page<'p> {
    policy: String,
    style: &'static str,
    title: String,
    name: String,
    kind: String,
    verdict: String,
    class: &'static str,
    why: Vec<&'p StepView>,
    facts: Vec<(&'static str, String)>,
    /// Empty if the title is all of it.
    query: String,
    rounds: &'p [Round],
    unit: &'static str,
    edits: Vec<Diff>,
}

/// A round: one row of the timeline, and one section.
struct Round {
    number: u32,
    title: String,
    class: &'static str,
    /// How it ended, in a few words.
    result: String,
    tokens: String,
    cost: String,
    took: String,
    bars: Vec<Bar>,
    steps: Vec<StepView>,
}

/// The page of a run. `read` gives the files of its record.
pub fn run(run: &Run, read: &Read<'_>) -> String {
    let texts = Texts::new(read);
    let query = run.query.trim();
    let has_section = query != run.headline() && texts.take(query);
    let (rounds, cause) = (rounds(run, &texts), cause(run));
    let edits = run.edits();
    let page = Page {
        policy: policy(None),
        style: STYLE,
        title: plain(run.headline()).into_owned(),
        name: plain(&run.name).into_owned(),
        kind: plain(&run.kind).into_owned(),
        verdict: plain(&verdict(run)).into_owned(),
        class: tone(run),
        why: why(run, cause.as_ref(), &rounds),
        facts: facts(run),
        query: plain(if has_section { query } else { "" }).into_owned(),
        unit: unit(&run.kind),
        edits: edits
            .iter()
            .map(|edit| Diff::of(edit, &run.contents))
            .collect(),
        rounds: &rounds,
    };
    // Rendering into a string fails only if a template's own expression does, and none of ours can.
    page.render().unwrap_or_default()
}

/// `good` for a run that reached its goal and `bad` for one that did not; `warn` for one that has not ended, or was undone.
pub(crate) fn tone(run: &Run) -> &'static str {
    match run.is_good.filter(|_| !run.undone) {
        Some(true) => "good",
        Some(false) => "bad",
        None => "warn",
    }
}

/// `attempts used up after 4 rounds`, `FAIL after 2 attempts: acceptance commands`.
pub(crate) fn verdict(run: &Run) -> String {
    let count = run.steps.rounds_asked();
    let rounds = phrases::count(count.into(), &unit(&run.kind).to_lowercase());
    let after = if run.undone || count == 0 {
        String::new()
    } else {
        format!(" after {rounds}")
    };
    // What a person has to know is said below.
    let remark = run.remark.as_deref().filter(|_| cause(run).is_none());
    let remark = remark.map_or_else(String::new, |remark| format!(": {remark}"));
    format!("{}{after}{remark}", run.stands())
}

/// `12 s`.
pub(crate) fn took(ms: u64) -> String {
    phrases::seconds(Duration::from_millis(ms))
}

fn unit(kind: &str) -> &'static str {
    match kind {
        "order" => "Attempt",
        "phase" | "spec" => "Iteration",
        _ => "Round",
    }
}

/// What a person has to know, if that is how the run ended.
fn cause(run: &Run) -> Option<StepView> {
    let (Outcome::NeedsPerson { cause, .. }
    | Outcome::Unfit { cause, .. }
    | Outcome::ModelUnavailable { cause, .. }) = run.steps.outcome.as_ref()?
    else {
        return None;
    };
    let mut view = StepView::default();
    view.cause(cause);
    Some(view)
}

/// Why the run did not reach its goal: what a person has to know, and the steps that failed last.
fn why<'v>(run: &Run, cause: Option<&'v StepView>, rounds: &'v [Round]) -> Vec<&'v StepView> {
    if run.is_good != Some(false) {
        return Vec::new();
    }
    let is_bad = |step: &&StepView| step.class == "bad";
    let last = rounds.last().into_iter().flat_map(|round| &round.steps);
    let failed = last
        .rev()
        .skip_while(|step| !is_bad(step))
        .take_while(is_bad);
    let says_more = |step: &&StepView| cause.is_none_or(|cause| !step.says_the_same(cause));
    let mut why: Vec<&StepView> = failed.filter(says_more).collect();
    why.extend(cause);
    why.reverse();
    why
}

fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let steps = &run.steps;
    let has_calls = steps.calls().next().is_some();
    let tokens = phrases::tokens(&steps.usage());
    let known = |is_known: bool, text: String| if is_known { text } else { String::new() };
    let began = known(steps.from_ms > 0, format!("{} UTC", moment(steps.from_ms)));
    let facts = [
        ("Began", began),
        (
            "Took",
            known(steps.elapsed_ms() > 0, took(steps.elapsed_ms())),
        ),
        ("Cost", known(has_calls, money(steps.cost_usd()))),
        ("Tokens", tokens.trim_start_matches(", ").to_owned()),
        ("Model", run.model.clone()),
        (
            "Before it was undone",
            known(run.undone, run.verdict.clone()),
        ),
        ("Follows", run.parent.clone().unwrap_or_default()),
        ("Began at commit", run.head.clone().unwrap_or_default()),
        ("Version", run.version.clone()),
    ];
    facts
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(label, text)| (label, plain(&text).into_owned()))
        .collect()
}

/// `$0.0123`, `unknown`.
fn money(usd: Option<f64>) -> String {
    usd.map_or_else(|| "unknown".to_owned(), |usd| format!("${usd:.4}"))
}

fn rounds(run: &Run, texts: &Texts<'_>) -> Vec<Round> {
    let mut groups: BTreeMap<u32, Vec<&Step>> = BTreeMap::new();
    for step in &run.steps.all {
        groups.entry(step.round).or_default().push(step);
    }
    // Waiting is left out: a run may be resumed after days.
    let busy = run.steps.all.iter().map(Step::elapsed_ms).sum();
    let changing = run
        .steps
        .all
        .iter()
        .filter(|step| !step.changes().is_empty());
    let mut rounds = Rounds {
        run,
        texts,
        // The diff of the only change is the diff of the run.
        has_own_diffs: changing.count() > 1,
        busy,
        begins: 0,
    };
    groups
        .into_iter()
        .map(|(number, steps)| rounds.round(number, &steps))
        .collect()
}

struct Rounds<'r> {
    run: &'r Run,
    texts: &'r Texts<'r>,
    has_own_diffs: bool,
    /// The time of all steps, and of those that are done.
    busy: u64,
    begins: u64,
}

impl Rounds<'_> {
    fn round(&mut self, number: u32, steps: &[&Step]) -> Round {
        let calls = || steps.iter().filter_map(|step| step.call());
        let mut usage = Usage::default();
        calls().for_each(|call| usage += call.tokens());
        let cost = calls().next().map(|_| money(total(calls())));
        let tokens = phrases::tokens(&usage);
        let (mut views, mut bars): (Vec<StepView>, _) = (Vec::new(), Vec::new());
        for step in steps {
            let view = self.view(step, views.last());
            let ends = self.begins + step.elapsed_ms();
            if !view.bar.is_empty() {
                bars.push(Bar::new(self.begins, ends, self.busy, view.bar));
            }
            self.begins = ends;
            views.push(view);
        }
        let decided = views.iter().rev().find(|view| view.result.is_some());
        let result = decided.and_then(|view| view.result.as_deref());
        Round {
            number,
            title: match number {
                0 => "Before the first".to_owned(),
                _ => format!("{} {number}", unit(&self.run.kind)),
            },
            class: decided.map_or("plain", |view| view.class),
            result: plain(result.unwrap_or_default()).into_owned(),
            tokens: tokens.trim_start_matches(", ").replace(" tokens", ""),
            cost: cost.unwrap_or_default(),
            took: took(steps.iter().map(|step| step.elapsed_ms()).sum()),
            bars,
            steps: views,
        }
    }

    fn view(&self, step: &Step, before: Option<&StepView>) -> StepView {
        let mut view = view(step, before, self.texts, &|edit| {
            Diff::of(edit, &self.run.contents)
        });
        if !self.has_own_diffs {
            view.diffs.clear();
        }
        view
    }
}
