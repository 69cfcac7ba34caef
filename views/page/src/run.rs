//! The page of one run.

use std::collections::BTreeMap;
use std::time::Duration;

use askama::Template;
use code_commit_report::phrases;
use code_commit_timeline::{Call, Run, Step, What, total};

use crate::diff::Diff;
use crate::frame::{Bar, STYLE, moment, policy};
use crate::step::{StepView, view};
use crate::text::{Read, Texts, plain};

#[derive(Template)]
#[template(path = "run.html")]
struct Page {
    policy: String,
    style: &'static str,
    title: String,
    name: String,
    kind: String,
    verdict: String,
    class: &'static str,
    remark: Option<String>,
    /// What decided against it.
    failed: Option<String>,
    facts: Vec<Fact>,
    provenance: Vec<Fact>,
    query: Option<String>,
    rounds: Vec<Round>,
    unit: &'static str,
    edits: Vec<Diff>,
}

/// One thing to know about the run.
struct Fact {
    label: &'static str,
    text: String,
    is_hash: bool,
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
    let query = plain(run.query.trim_end()).into_owned();
    let query = Some(query).filter(|query| !query.is_empty() && texts.take(query));
    let edits = run.edits();
    let rounds = rounds(run, &texts);
    let (provenance, facts) = facts(run)
        .into_iter()
        .partition(|fact| PROVENANCE.contains(&fact.label));
    let page = Page {
        title: plain(&run.title().unwrap_or_else(|| run.name.clone())).into_owned(),
        policy: policy(None),
        style: STYLE,
        name: plain(&run.name).into_owned(),
        kind: plain(&run.kind).into_owned(),
        verdict: plain(run.stands()).into_owned(),
        class: tone(run),
        remark: run.remark.as_deref().map(|text| plain(text).into_owned()),
        failed: failed(run),
        facts,
        provenance,
        query,
        rounds,
        unit: unit(&run.kind),
        edits: edits
            .iter()
            .map(|edit| Diff::of(edit, &run.contents))
            .collect(),
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

/// What decided against a run that did not reach its goal.
pub(crate) fn failed(run: &Run) -> Option<String> {
    let last = run.steps.rounds();
    let steps: Vec<(u64, &Step)> = run
        .steps
        .all
        .iter()
        .filter(|step| step.round == last)
        .map(|step| (0, step))
        .collect();
    let (class, result) = result(&steps);
    (run.is_good == Some(false) && class == "bad").then_some(result)
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

fn facts(run: &Run) -> Vec<Fact> {
    let (steps, holds_for) = (&run.steps, &run.steps.holds_for);
    let has_calls = steps.calls().next().is_some();
    let tokens = phrases::tokens(&steps.usage());
    let known = |is_known: bool, text: String| if is_known { text } else { String::new() };
    let facts = [
        (
            "Began",
            known(steps.from_ms > 0, format!("{} UTC", moment(steps.from_ms))),
        ),
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
        ("Goes on from", run.parent.clone().unwrap_or_default()),
        (VERSION, run.version.clone()),
        (COMMIT, run.head.clone().unwrap_or_default()),
        (TREE, holds_for.tree.clone().unwrap_or_default()),
        (
            SPECIFICATION,
            holds_for.specification.clone().unwrap_or_default(),
        ),
        (DECIDER, holds_for.decider.clone().unwrap_or_default()),
    ];
    let fact = |(label, text): (&'static str, String)| Fact {
        label,
        text: plain(&text).into_owned(),
        is_hash: HASHES.contains(&label),
    };
    facts
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(fact)
        .collect()
}

const COMMIT: &str = "Began at commit";
const TREE: &str = "Verdict is about the tree";
const SPECIFICATION: &str = "… about the specification";
const DECIDER: &str = "… decided by";
const VERSION: &str = "Version";
/// Folded at the end of the page.
const PROVENANCE: [&str; 5] = [VERSION, COMMIT, TREE, SPECIFICATION, DECIDER];
const HASHES: [&str; 4] = [COMMIT, TREE, SPECIFICATION, DECIDER];

/// `$0.0123`, `unknown`.
fn money(usd: Option<f64>) -> String {
    usd.map_or_else(|| "unknown".to_owned(), |usd| format!("${usd:.4}"))
}

fn rounds(run: &Run, texts: &Texts<'_>) -> Vec<Round> {
    let mut groups: BTreeMap<u32, Vec<(u64, &Step)>> = BTreeMap::new();
    // Waiting is left out: a run may be resumed after days.
    let mut busy = 0;
    for step in &run.steps.all {
        groups.entry(step.round).or_default().push((busy, step));
        busy += step.elapsed_ms();
    }
    let changing = run
        .steps
        .all
        .iter()
        .filter(|step| !step.changes().is_empty())
        .count();
    // The diff of the only change is the diff of the run.
    let has_own_diffs = changing > 1;
    let groups = groups.into_iter();
    groups
        .map(|(number, steps)| round(run, number, &steps, busy, texts, has_own_diffs))
        .collect()
}

fn round(
    run: &Run,
    number: u32,
    steps: &[(u64, &Step)],
    busy: u64,
    texts: &Texts<'_>,
    has_own_diffs: bool,
) -> Round {
    let unit = unit(&run.kind);
    let title = if number == 0 {
        "Before the first".to_owned()
    } else {
        format!("{unit} {number}")
    };
    let calls = || steps.iter().filter_map(|(_, step)| step.call());
    let mut usage = code_commit_engine::Usage::default();
    calls().for_each(|call| usage += call.tokens());
    let cost = total(calls());
    let elapsed = steps.iter().map(|(_, step)| step.elapsed_ms()).sum();
    let (class, result) = result(steps);
    let show = |step: &Step| {
        let mut view = view(step, texts, &|edit| Diff::of(edit, &run.contents));
        if !has_own_diffs {
            view.diffs.clear();
        }
        view
    };
    Round {
        number,
        title,
        class,
        result,
        tokens: phrases::tokens(&usage)
            .trim_start_matches(", ")
            .replace(" tokens", ""),
        cost: if calls().next().is_some() {
            money(cost)
        } else {
            String::new()
        },
        took: took(elapsed),
        bars: steps
            .iter()
            .filter_map(|(begins, step)| bar(*begins, step, busy))
            .collect(),
        steps: steps.iter().map(|(_, step)| show(step)).collect(),
    }
}

fn bar(begins: u64, step: &Step, busy: u64) -> Option<Bar> {
    let class = match &step.what {
        What::Call(call) if call.failed.is_some() => "bad",
        What::Call(_) => "call",
        What::Command(command) if command.is_good || !command.decides() => "good",
        What::Command(_) => "bad",
        What::Change(change) if change.is_refused => "bad",
        What::Change(_) | What::Event(_) => return None,
    };
    Some(Bar::new(begins, begins + step.elapsed_ms(), busy, class))
}

/// What decided the round: the last judged answer, command or failed call.
fn result(steps: &[(u64, &Step)]) -> (&'static str, String) {
    let decided = steps.iter().rev().find_map(|(_, step)| match &step.what {
        What::Command(command) if !command.decides() => None,
        What::Command(command) => {
            let (class, word) = if command.is_good {
                ("good", "passed")
            } else {
                ("bad", "failed")
            };
            Some((class, format!("{} {word}", shortened(&command.name))))
        }
        What::Change(change) if change.is_refused => Some(("bad", "reply refused".to_owned())),
        What::Change(_) => Some(("plain", "reply written".to_owned())),
        What::Call(call) => match (&call.failed, &call.role) {
            (Some(cause), _) => Some(("bad", cause.code.clone())),
            (None, Some(role)) => Some((
                "plain",
                said(call).unwrap_or_else(|| format!("{role} worked")),
            )),
            (None, None) => None,
        },
        What::Event(_) => None,
    });
    decided.map_or_else(
        || ("plain", String::new()),
        |(class, text)| (class, plain(&text).into_owned()),
    )
}

/// `request changes`: the last marker of an agent.
fn said(call: &Call) -> Option<String> {
    call.markers
        .last()
        .map(|marker| marker.name.to_lowercase().replace('_', " "))
}

fn shortened(name: &str) -> String {
    let mut short: String = name.chars().take(40).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    short
}
