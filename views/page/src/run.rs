//! The page of one run.

use std::collections::BTreeMap;

use askama::Template;
use code_commit_engine::{Cause, Usage};
use code_commit_report::phrases;
use code_commit_timeline::{Run, Step, Tone, total};

use crate::diff::Diff;
use crate::frame::{STYLE, moment, policy, rendered};
use crate::step::StepPart;
use crate::text::{Read, Texts};

#[derive(Template)]
#[template(path = "run.html")]
struct Page<'p> {
    policy: String,
    style: &'static str,
    run: &'p Run,
    verdict: String,
    class: &'static str,
    why: Vec<StepPart>,
    facts: Vec<(&'static str, String)>,
    /// Empty if the title is all of it.
    query: &'p str,
    rounds: Vec<Round>,
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
    steps: Vec<StepPart>,
}

/// The page of a run. `read` gives the files of its record.
pub fn run(run: &Run, read: &Read<'_>) -> String {
    let texts = Texts::new(read);
    let query = run.query.trim();
    let has_section = query != run.headline() && texts.take(query.len());
    let edits = run.edits();
    rendered(&Page {
        policy: policy(None),
        style: STYLE,
        run,
        verdict: verdict(run),
        class: tone(run).class(),
        why: why(run, &texts),
        facts: facts(run),
        query: if has_section { query } else { "" },
        unit: unit(&run.kind),
        edits: edits
            .iter()
            .map(|edit| Diff::of(edit, &run.contents))
            .collect(),
        rounds: rounds(run, &texts),
    })
}

/// `good` for a run that reached its goal and `bad` for one that did not; `warn` for one that has not ended, or was undone.
pub(crate) fn tone(run: &Run) -> Tone {
    match run.is_good.filter(|_| !run.undone) {
        Some(true) => Tone::Good,
        Some(false) => Tone::Bad,
        None => Tone::Warning,
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

fn unit(kind: &str) -> &'static str {
    match kind {
        "order" => "Attempt",
        "phase" | "spec" => "Iteration",
        _ => "Round",
    }
}

/// Why the run did not reach its goal: what a person has to know, and the step that failed last.
fn why(run: &Run, texts: &Texts<'_>) -> Vec<StepPart> {
    if run.is_good != Some(false) {
        return Vec::new();
    }
    let reason = run.steps.reason(&|file| texts.whole(file));
    let failed = reason.and_then(|reason| {
        let step = run.steps.all.get(reason.step?)?;
        Some(StepPart::of(step, run, texts).explains(reason.detail))
    });
    let cause = cause(run).map(StepPart::of_cause);
    cause.into_iter().chain(failed).collect()
}

/// What a person has to know, if that is how the run ended.
fn cause(run: &Run) -> Option<&Cause> {
    run.steps.outcome.as_ref()?.cause()
}

fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let steps = &run.steps;
    let has_calls = steps.calls().next().is_some();
    let tokens = phrases::tokens(&steps.usage());
    let (from_ms, elapsed_ms) = (steps.from_ms, steps.elapsed_ms());
    let facts = [
        (
            "Began",
            (from_ms > 0).then(|| format!("{} UTC", moment(from_ms))),
        ),
        ("Took", (elapsed_ms > 0).then(|| phrases::took(elapsed_ms))),
        ("Cost", has_calls.then(|| money(steps.cost_usd()))),
        ("Tokens", Some(tokens.trim_start_matches(", ").to_owned())),
        ("Model", Some(run.model.clone())),
        (
            "Before it was undone",
            run.undone.then(|| run.verdict.clone()),
        ),
        ("Follows", run.parent.clone()),
        ("Began at commit", run.head.clone()),
        ("Version", Some(run.version.clone())),
    ];
    facts
        .into_iter()
        .filter_map(|(label, text)| Some((label, text.filter(|text| !text.is_empty())?)))
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
    let groups = groups.into_iter();
    groups
        .map(|(number, steps)| round(number, &steps, run, texts))
        .collect()
}

fn round(number: u32, steps: &[&Step], run: &Run, texts: &Texts<'_>) -> Round {
    let calls = || steps.iter().filter_map(|step| step.call());
    let mut usage = Usage::default();
    calls().for_each(|call| usage += call.tokens());
    let cost = calls().next().map(|_| money(total(calls())));
    let tokens = phrases::tokens(&usage);
    // The diff of the only change is the diff of the run.
    let changing = |step: &&Step| !step.changes().is_empty();
    let has_own_diffs = run.steps.all.iter().filter(changing).count() > 1;
    let parts = steps.iter().map(|step| {
        let mut part = StepPart::of(step, run, texts);
        part.diffs.retain(|_| has_own_diffs);
        part
    });
    let parts: Vec<StepPart> = parts.collect();
    let views = parts.iter().rev().map(|part| &part.view);
    let decided = views.into_iter().find(|view| view.result.is_some());
    Round {
        number,
        title: match number {
            0 => "Before the first".to_owned(),
            _ => format!("{} {number}", unit(&run.kind)),
        },
        class: decided.map_or(Tone::Plain, |view| view.tone).class(),
        result: decided
            .and_then(|view| view.result.clone())
            .unwrap_or_default(),
        tokens: tokens.trim_start_matches(", ").replace(" tokens", ""),
        cost: cost.unwrap_or_default(),
        took: phrases::took(steps.iter().map(|step| step.elapsed_ms()).sum()),
        steps: parts,
    }
}
