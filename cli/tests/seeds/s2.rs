//! S2: attempts, each from the baseline; two unless more are asked for.

use serde_json::{Value, json};

use super::{
    NO_CHANGE, NOTHING, PROSE, THOUGHT_ONLY, TRAVERSAL, Table, judge, picture, runs_of, service,
    untouched_since_green,
};
use crate::scenes::commit;
use crate::scenes::files;
use crate::scenes::order::{BAD, BROKEN, GOOD, Scene, greet, proposal, sha256};
use crate::scenes::program::Ran;
use code_commit_fixtures::project::Project;

const INSTRUCTIONS: &str = include_str!("../../../prompt/text/order/instructions.md");

const GREET: &str = "#!/bin/sh\necho hello $1\n";
const VERIFY: &str = "echo verify >> ../verify\nsh -n src/greet.sh\n";
const ACCEPT: &str = "echo second >> ../second\ntest \"$(sh src/greet.sh you)\" = 'hello, you' || { echo wrong; exit 3; }\n";
const COMMANDS: [&str; 3] = [
    "sh -c 'echo first >> ../first'",
    "sh tests/run.sh",
    "sh tests/last.sh",
];

/// A proposal, or what there is in its place.
struct Row {
    name: &'static str,
    reply: String,
    attempts: Option<usize>,
    /// Calls, verifications, and how often each acceptance command runs.
    counts: [usize; 5],
    verdict: &'static str,
}

fn row(name: &'static str, reply: &str, counts: [usize; 5], verdict: &'static str) -> Row {
    Row {
        name,
        reply: reply.to_owned(),
        attempts: None,
        counts,
        verdict,
    }
}

fn rows() -> Vec<Row> {
    let stale = proposal("src/greet.sh", Some("another\n"), GOOD);
    let traversal = proposal("../outside.txt", None, "x\n");
    let not_allowed = proposal("tests/run.sh", Some(ACCEPT), "exit 0\n");
    let fenced = format!("```json\n{}\n```\n", greet(GOOD));
    let more = |attempts, row| Row {
        attempts: Some(attempts),
        ..row
    };
    let refused = |name, reply: &str, verdict| row(name, reply, [2, 0, 0, 0, 0], verdict);
    let invalid = |name, reply: &str| refused(name, reply, "FAIL llm_output_invalid");
    let scope = |name, reply: &str| refused(name, reply, "FAIL write_scope_violation");
    let wrong = |name, n| row(name, &greet(BAD), [n, n, n, n, 0], "FAIL acceptance_failed");
    let broken = [2, 2, 0, 0, 0];
    vec![
        row("right at once", &greet(GOOD), [1; 5], "PASS success"),
        wrong("the same wrong change for ever", 2),
        more(3, wrong("three attempts", 3)),
        more(1, wrong("one attempt", 1)),
        row(
            "no verification",
            &greet(BROKEN),
            broken,
            "FAIL verify_failed",
        ),
        invalid("prose for ever", PROSE),
        invalid("nothing for ever", NOTHING),
        invalid("a thought and no text for ever", THOUGHT_ONLY),
        invalid("fences for ever", TRAVERSAL),
        invalid("$$$ for ever", NO_CHANGE),
        invalid("no writes for ever", r#"{"summary": "s", "writes": []}"#),
        invalid("JSON in Markdown for ever", &fenced),
        scope("a traversal for ever", &traversal),
        scope("a file that is not allowed, for ever", &not_allowed),
        refused("a stale hash for ever", &stale, "FAIL stale_context"),
    ]
}

#[test]
fn s2_counts_what_its_seed_counts() {
    judge("S2", &rows(), check);
}

fn check(table: &mut Table, row: &Row) {
    let last = format!("echo last >> ../last\n{}", picture());
    let project = Project::with(&[
        ("scripts/verify.sh", VERIFY),
        ("src/greet.sh", GREET),
        ("tests/run.sh", ACCEPT),
        ("tests/last.sh", &last),
    ]);
    let scene = Scene(commit::Scene {
        project: project.unwrap(),
        server: service(&[&row.reply]),
    });
    scene.place_order(&json!({ "acceptance_commands": COMMANDS, "notes": "Mind the shell." }));
    let before = scene.state();
    let most = row.attempts.unwrap_or(2).to_string();
    let more = ["--max-attempts", &most];
    let more: &[&str] = if row.attempts.is_some() { &more } else { &[] };
    let ran = Ran::of(&mut scene.command(more));
    let beside = scene.project.beside();
    let requests = scene.server.requests();
    let runs = ["verify", "first", "second", "last"].map(|name| runs_of(name, beside));
    let counted = [&[requests.len()], &runs[..]].concat();
    let has_passed = row.verdict.starts_with("PASS");
    let (what, exit) = ("calls verify first second last", usize::from(!has_passed));
    table.row(row.name, &ran, exit, what, &row.counts, &counted);
    table.same("the verdict", row.verdict, &scene.verdict());
    if has_passed {
        untouched_since_green(table, &scene.project);
        let status = scene.status();
        table.same(
            "the change stays, uncommitted",
            " M src/greet.sh\n",
            &status,
        );
    } else {
        table.holds("the tree is the baseline", scene.state() == before);
    }
    let is_outside = beside.join("outside.txt").exists();
    table.holds("nothing is written outside", !is_outside);
    let summary = scene.summary();
    let run = scene.runs().pop().unwrap();
    let path = run.join("run_summary.json").display().to_string();
    let is_printed = ran.out.contains(&row.verdict[..4]) && ran.out.contains(&path);
    table.holds("verdict and path are printed", is_printed);
    let id = run.file_name().unwrap().to_str().unwrap();
    let is_id = summary["run_id"] == id && id.len() == 12;
    table.holds("the folder is the run's id", is_id);
    let fields = summary.as_object().unwrap();
    let mut keys: Vec<&str> = fields.keys().map(String::as_str).collect();
    keys.sort_unstable();
    let wanted = "attempts ended_stage ended_utc max_attempts repo_baseline_commit repo_path repo_tree_hash_after repo_tree_hash_before \
        run_id started_utc verdict work_order_hash work_order_path";
    table.same("the fields of the summary", wanted, &keys.join(" "));
    let mut folders = files::names(&run);
    folders.retain(|name| name.starts_with("attempt_"));
    let all: Vec<String> = (1..=row.counts[0])
        .map(|n| format!("attempt_{n}"))
        .collect();
    table.same(
        "a folder for each attempt",
        &all.join(" "),
        &folders.join(" "),
    );
    for (n, request) in (1..).zip(&requests) {
        let messages = request.json()["messages"].clone();
        let sent: String = messages
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["content"].as_str().unwrap())
            .collect();
        let failure = (n > 1).then(|| scene.json(&format!("attempt_{}/failure_brief.json", n - 1)));
        table.same(
            &format!("prompt {n}"),
            &prompt(n, row.attempts.unwrap_or(2), failure.as_ref()),
            &sent,
        );
        artifacts(
            table,
            &scene,
            &format!("attempt_{n}"),
            &summary["attempts"][n - 1],
        );
    }
}

/// What S2 §6.2 lists, in words of ours: the seed has no template.
fn prompt(number: usize, of: usize, failure: Option<&Value>) -> String {
    let hash = sha256(GREET);
    let accept = COMMANDS.map(|command| format!("- {command}\n")).concat();
    let mut text = format!(
        "{INSTRUCTIONS}\nWORK ORDER: Greet with a comma\n\nIntent:\nPut a comma behind hello.\n\n\
         Allowed files, each with its SHA-256:\n- src/greet.sh  {hash}\n- src/new.sh  does not exist yet\n\n\
         Forbidden:\n- changing the tests\n\n\
         These commands must end with exit code 0, after the project's verification:\n{accept}\n\
         Notes:\nMind the shell.\n\n--- FILE src/greet.sh ---\n{GREET}--- END OF src/greet.sh ---\n\nAttempt {number} of {of}.\n"
    );
    if let Some(brief) = failure {
        let field = |name: &str| brief[name].as_str().unwrap_or_default();
        text += &format!(
            "The attempt before failed; nothing of it is in the files any more.\nStage: {}\n",
            field("stage")
        );
        if brief["command"].is_string() {
            text += &format!(
                "Command: {}\nExit code: {}\n",
                field("command"),
                brief["exit_code"]
            );
        }
        text += &format!(
            "Error:\n{}\nRemember: {}\n",
            field("primary_error_excerpt"),
            field("constraints_reminder")
        );
    }
    text
}

/// S2 §7.
fn artifacts(table: &mut Table, scene: &Scene, attempt: &str, record: &Value) {
    let run = scene.runs().pop().unwrap();
    let found = files::names(run.join(attempt));
    let mut wanted = vec![
        "acceptance_result.json",
        "verify_result.json",
        "write_result.json",
    ];
    if !record["failure_brief"].is_null() {
        wanted.push("failure_brief.json");
    }
    if record["proposal_path"] != "" {
        wanted.push("proposed_writes.json");
    }
    wanted.sort_unstable();
    let of_seed = |name: &&String| {
        ["_result.json", "_brief.json", "_writes.json"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    let found: Vec<&str> = found.iter().filter(of_seed).map(String::as_str).collect();
    table.same("the artifacts", &wanted.join(" "), &found.join(" "));
    let results = ["verify", "acceptance"]
        .map(|kind| record[kind].as_array().cloned().unwrap_or_default())
        .concat();
    for (result, stream) in results
        .iter()
        .flat_map(|result| [(result, "stdout_path"), (result, "stderr_path")])
    {
        let path = result[stream].as_str().unwrap();
        table.holds(&format!("{path} is logged"), run.join(path).is_file());
    }
    let excerpt = record["failure_brief"]["primary_error_excerpt"].as_str();
    let is_short = excerpt.is_none_or(|text| text.chars().count() <= 2000);
    table.holds("an excerpt has at most 2,000 characters", is_short);
}
