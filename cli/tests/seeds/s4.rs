//! S4: plan, implement, review, until it is approved or the iterations are used up.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Value, json};

use super::{NO_CHANGE, NOTHING, PROSE, TRAVERSAL, Table, judge, runs_of};
use crate::scenes::program::Ran;
use crate::scenes::spec::{DONE, PLAN, Scene, names};

const PROGRESS: &str = "say '<PROGRESS>one task</PROGRESS>'";
const CHANGES: &str =
    "echo 'It is wrong.' > $WIP.review.md; say '<REQUEST_CHANGES>not yet</REQUEST_CHANGES>'";
const ISSUE: &str = "say '<SPEC_ISSUE>which colour?</SPEC_ISSUE>'";
/// It opens no spec.
const APPROVE: &str = "say '<APPROVED>good</APPROVED>'";

struct Row {
    name: String,
    turns: Vec<String>,
    most: u32,
    /// Calls, runs of the setup command and of the check command.
    counts: [usize; 3],
    exit: usize,
    /// The letters of [`EVENTS`].
    events: String,
}

/// The seed's events by a letter.
const EVENTS: &[(char, &str)] = &[
    ('1', "IterationStart"),
    ('p', "PlanningStart"),
    ('P', "PlanComplete"),
    ('s', "SetupCommandOutput"),
    ('c', "CheckCommandOutput"),
    ('i', "ImplementingStart"),
    ('+', "Progress"),
    ('D', "Done"),
    ('C', "CommitPerformed"),
    ('r', "ReviewingStart"),
    ('A', "Approved"),
    ('R', "RequestChanges"),
    ('I', "SpecIssue"),
    ('a', "LoopApproved"),
    ('x', "LoopSpecIssue"),
    ('m', "LoopMaxIterations"),
];

fn row(name: &str, turns: &[&str], counts: [usize; 3], exit: usize, events: &str) -> Row {
    Row {
        name: name.to_owned(),
        turns: turns.iter().map(|&turn| turn.to_owned()).collect(),
        most: 10,
        counts,
        exit,
        events: events.to_owned(),
    }
}

fn rows() -> Vec<Row> {
    let (round, again) = ("1pPsciDCcrR", "1pPsciDcrR");
    let never = [PLAN, DONE, CHANGES].repeat(10);
    let many = [&[PLAN], &[PROGRESS; 12][..], &[DONE, APPROVE]].concat();
    let mut rows = vec![
        row(
            "approves at once, unread",
            &[PLAN, DONE, APPROVE],
            [3, 1, 2],
            0,
            "1pPsciDCcrAa",
        ),
        row(
            "requests changes for ever",
            &never,
            [30, 10, 20],
            1,
            &format!("{round}{}m", again.repeat(9)),
        ),
        Row {
            most: 3,
            ..row(
                "requests changes for ever, three iterations",
                &never,
                [9, 3, 6],
                1,
                &format!("{round}{again}{again}m"),
            )
        },
        row(
            "requests changes once",
            &[PLAN, DONE, CHANGES, PLAN, DONE, APPROVE],
            [6, 2, 4],
            0,
            "1pPsciDCcrR1pPsciDcrAa",
        ),
        row(
            "two tasks",
            &[PLAN, PROGRESS, DONE, APPROVE],
            [4, 1, 3],
            0,
            "1pPsci+ciDCcrAa",
        ),
        row(
            "twelve tasks that change nothing",
            &many,
            [15, 1, 14],
            0,
            &format!("1pPs{}ciDCcrAa", "ci+".repeat(12)),
        ),
        row("an issue while planning", &[ISSUE], [1, 0, 0], 6, "1pIx"),
        row(
            "an issue while implementing",
            &[PLAN, ISSUE],
            [2, 1, 1],
            6,
            "1pPsciIx",
        ),
        row(
            "an issue while reviewing",
            &[PLAN, DONE, ISSUE],
            [3, 1, 2],
            6,
            "1pPsciDCcrIx",
        ),
    ];
    // No marker at all: the seed does not say what then. The run ends.
    for (name, text) in [
        ("prose", PROSE),
        ("nothing", NOTHING),
        ("a traversal", TRAVERSAL),
        ("$$$", NO_CHANGE),
    ] {
        let turn = if text.is_empty() {
            "true".to_owned()
        } else {
            format!("say '{text}'")
        };
        let name = format!("{name} for ever (not in the seed)");
        rows.push(row(&name, &[turn.as_str()], [1, 0, 0], 4, "1p"));
    }
    rows
}

#[test]
fn s4_counts_what_its_seed_counts() {
    judge("S4", &rows(), check);
}

fn check(table: &mut Table, row: &Row) {
    let turns: Vec<&str> = row.turns.iter().map(String::as_str).collect();
    let scene = Scene::new(&turns);
    let settings = json!({
        "setupCommand": "echo setup >> ../setup; exit 7", "checkCommand": "echo check >> ../check; exit 1",
        "commit": true, "maxIterations": row.most,
    });
    scene.configure(&settings);
    scene.git(&["add", "-A"]);
    scene.git(&["commit", "-q", "-m", "settings"]);
    let head = scene.git(&["rev-parse", "HEAD"]);
    let (code, events) = scene.events();
    let ran = Ran {
        code,
        out: format!("{events:#?}"),
        err: String::new(),
    };
    let beside = scene.project.beside();
    let counted = [
        scene.calls() as usize,
        runs_of("setup", beside),
        runs_of("check", beside),
    ];
    table.row(
        &row.name,
        &ran,
        row.exit,
        "calls setup check",
        &row.counts,
        &counted,
    );
    let names_of: BTreeMap<char, &str> = EVENTS.iter().copied().collect();
    let wanted: Vec<&str> = row.events.chars().map(|letter| names_of[&letter]).collect();
    table.same(
        "the order of the events",
        &wanted.join("\n"),
        &names(&events).join("\n"),
    );
    let commits = scene.git(&["log", "--format=%s", &format!("{}..HEAD", head.trim())]);
    table.same(
        "the commits",
        &"the last task\n".repeat(row.events.matches('C').count()),
        &commits,
    );
    if row.exit != 4 {
        table.same("the session's files go", "", &scene.stored("wip").join(" "));
    }
    let issues: Vec<String> = scene
        .stored("spec-issues")
        .iter()
        .map(|name| scene.read(&format!(".cuggino/spec-issues/{name}")))
        .collect();
    let issue = if row.exit == 6 { "which colour?\n" } else { "" };
    table.same("the issue", issue, &issues.concat());
    let summed = |name: &str| events.iter().find(|event| event["event"] == name);
    if let Some(end) = summed("LoopMaxIterations") {
        table.holds(
            "the last iteration and its review",
            end["iteration"] == json!(row.most) && end["review"] == "It is wrong.",
        );
    }
    let check = summed("CheckCommandOutput");
    table.holds(
        "a check that fails stops nothing",
        check.is_none_or(|check| check["exitCode"] == 1),
    );
    prompts(table, row, &scene, &events, head.trim());
}

/// What each agent is given by the seed's list of inputs, in words of ours.
fn prompts(table: &mut Table, row: &Row, scene: &Scene, events: &[Value], head: &str) {
    let id = Regex::new("[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}").unwrap();
    let first = scene.prompt(1);
    let Some(id) = id.find(&first).map(|id| id.as_str()) else {
        return table.holds("the plan file has a name", false);
    };
    let wip = |kind: &str| format!("`.cuggino/wip/{id}{kind}`");
    let begins = "# Focus\n\nAdd X\n\n# Specs\n\nThey are in `.specs`.\n\n";
    let check = format!(
        "# Check\n\nThe check command exited with code 1. Its output is in {}.\n\n",
        wip(".check.txt")
    );
    let session = format!(
        "# Session file\n\nThe plan and the progress log are in {}.\n",
        wip(".md")
    );
    let mut reviewed = false;
    let starts = events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .filter(|name| name.ends_with("ingStart"));
    for (n, start) in (1..).zip(starts) {
        let wanted = match start {
            "PlanningStart" => {
                let review = format!(
                    "# Review\n\nThe last implementation was reviewed: read {}.\n\n",
                    wip(".review.md")
                );
                let review = if reviewed { review.as_str() } else { "" };
                format!(
                    "{begins}{review}# Plan file\n\nWrite the plan to {}.\n",
                    wip(".plan.md")
                )
            }
            "ImplementingStart" => format!("{begins}{check}{session}"),
            _ => {
                reviewed = true;
                format!(
                    "{begins}{check}{session}\n# Scope\n\nFocus on what has changed since commit {head}: `git diff {head}..HEAD` shows it, \
                     and `git status` what is not committed.\n\n# Review file\n\nIf you request changes, write the review to {}.\n",
                    wip(".review.md")
                )
            }
        };
        table.same(&format!("prompt {n} ({start})"), &wanted, &scene.prompt(n));
    }
    if row.exit != 4 {
        table.holds(
            "each call has its event",
            row.events
                .chars()
                .filter(|letter| "pir".contains(*letter))
                .count()
                == row.counts[0],
        );
    }
}
