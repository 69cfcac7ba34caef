//! Runs of the five loops with five ends, each in every form: the last block on a terminal, the steps of `show`, Markdown, the
//! first screen of a page. All of them are made from one view of the run.

#![expect(
    clippy::unwrap_used,
    clippy::unnecessary_wraps,
    reason = "helpers of a test"
)]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use code_commit_engine::Event;
use code_commit_page::{Excerpt, markdown, run};
use code_commit_report::{LastWords, Output, Stream, Summary, steps};
use code_commit_timeline::{Run, RunView};
use serde_json::{Value, json};

const LOOPS: [(&str, &str); 5] = [
    ("commit", "round"),
    ("implement", "round"),
    ("order", "attempt"),
    ("phase", "iteration"),
    ("spec", "iteration"),
];
const ENDS: [&str; 5] = ["done", "failed", "refused", "interrupted", "limit"];

#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Screen {
    fn shows(print: impl FnOnce(&Output)) -> String {
        let screen = Self::default();
        let stream = || Stream::new(screen.clone(), false);
        print(&Output::new(stream(), stream()));
        String::from_utf8(screen.0.lock().unwrap().clone()).unwrap()
    }
}

fn stored(file: &str) -> Value {
    json!({ "file": file, "bytes": 9, "sha256": "00" })
}

/// What the files of each record hold.
fn file(name: &str) -> Option<String> {
    Some(
        match name {
            "build.txt" => "ok 1\nnot ok 2 - greets the world\n# fail 1\n",
            "failed_specs.md" => "SPEC: GET / says hello\nINPUT: GET /\nOBSERVED: 404\n",
            _ => "Shall it be English?\n",
        }
        .to_owned(),
    )
}

fn asked(role: Option<&str>) -> Value {
    match role {
        Some(role) => {
            json!({ "what": "turn-begins", "role": role, "number": 1, "prompt": stored("p"), "at": "2026-01-02T03:04:05Z", "request": {} })
        }
        None => {
            json!({ "what": "asked", "round": 1, "prompt": stored("p"), "at_most": { "tokens": 9, "cost_usd": 1.0 } })
        }
    }
}

fn turned(role: &str, markers: &Value) -> Value {
    json!({
        "what": "turned", "role": role, "number": 1, "session": null, "at": "2026-01-02T03:04:05Z", "elapsed_ms": 2000,
        "end": { "end": "ok", "said": "ended its turn", "then": "use" }, "answer": stored("a"), "usage": [{ "model": "a-model",
        "input_tokens": 4000, "output_tokens": 200, "cost_usd": 0.0123 }], "cost_usd": 0.0123,
        "markers": markers, "denials": [], "changed": ["src/a.rs"], "gone": [], "put_back": [],
    })
}

fn answered() -> Value {
    json!({
        "what": "answered", "round": 1, "reply": stored("a"), "raw": stored("r"), "finish": "complete", "elapsed_ms": 1200,
        "usage": { "input_tokens": 4000, "output_tokens": 200 }, "served_model": "a-model", "cost_usd": 0.0123,
    })
}

fn changes() -> Value {
    json!([{ "path": "src/a.rs", "action": "write", "created": true, "before_sha256": null, "after_sha256": "00" }])
}

/// The journal of a run of this loop that ends like this.
fn journal(of: &str, end: &str) -> Vec<Value> {
    let is_good = end == "done";
    let code = i32::from(!is_good);
    let problem = json!([{ "code": "protected", "message": "`build.sh` is protected" }]);
    let is_agents = matches!(of, "phase" | "spec");
    let mut lines = vec![asked(is_agents.then_some("builder"))];
    match (of, end) {
        (_, "interrupted") => return lines,
        ("phase", _) => lines.push(turned("builder", &json!([]))),
        ("spec", "refused") => lines.push(turned(
            "implementing",
            &json!([{ "name": "SPEC_ISSUE", "content": "Which port?" }]),
        )),
        ("spec", _) if !is_good => lines.push(turned(
            "reviewing",
            &json!([{ "name": "REQUEST_CHANGES", "content": "Name the port." }]),
        )),
        ("spec", _) => lines.push(turned("reviewing", &json!([]))),
        _ => lines.push(answered()),
    }
    let refused = json!({ "what": if of == "order" { "refused" } else { "rejected" }, "round": 1, "attempt": 1, "why": "out-of-scope", "touched": [], "problems": problem,
        "report": stored("build.txt") });
    let written = json!({ "what": if of == "order" { "written" } else { "applied" }, "round": 1, "attempt": 1, "touched": [], "verify_script": true, "changes": changes(),
        "warnings": [], "no_change": null });
    let ended = json!({ "how": "exited", "code": code });
    match of {
        "phase" if !is_good => lines.push(json!({ "what": "was-read", "place": { "place": "tests", "file": "failed_specs.md" },
            "text": stored("failed_specs.md") })),
        "phase" | "spec" => {}
        _ if end == "refused" => lines.push(refused),
        "order" => lines.extend([
            written,
            json!({ "what": "ran", "log": "l", "argv": ["sh", "verify.sh"], "ended": ended, "elapsed_ms": 2500, "stdout": { "file": "build.txt", "text": "" },
                "stderr": { "file": "e", "text": "" } }),
        ]),
        _ => lines.extend([
            written,
            json!({ "what": "built", "round": 1, "ended": ended, "output": stored("build.txt"), "elapsed_ms": 2500 }),
        ]),
    }
    let cause = |code: &str, message: &str| json!({ "code": code, "message": message, "remedy": "raise it" });
    lines.push(match (of, end) {
        (_, "done") => json!({ "what": "ended", "outcome": "done", "rounds": 1 }),
        (_, "limit") => json!({ "what": "ended", "outcome": "model-unavailable", "round": 1,
            "cause": cause("limit-calls", "the limit of 1 call is reached") }),
        ("phase", _) => json!({ "what": "ended", "outcome": "needs-person", "round": 1,
            "cause": cause("stuck", "contracts still fail after 1 verification") }),
        ("spec", "refused") => json!({ "what": "ended", "outcome": "needs-person", "round": 1,
            "cause": cause("spec-issue", "the specs need a decision") }),
        _ => json!({ "what": "ended", "outcome": "attempts-used-up", "rounds": 1 }),
    });
    lines
}

/// The verdict of a page, and what it says about the reason, without tags.
fn first_screen(page: &str) -> String {
    let body = page.split("<body").nth(1).unwrap_or_default();
    let above = body.split("<table").next().unwrap_or_default();
    let mut text = String::new();
    for piece in above.split('<') {
        let (_, words) = piece.split_once('>').unwrap_or_default();
        if !words.trim().is_empty() {
            text.push_str(&format!("{}\n", words.trim()));
        }
    }
    text
}

#[test]
fn a_run_is_the_same_in_every_form() {
    for (of, step) in LOOPS {
        let mut shown = String::new();
        for end in ENDS {
            let lines: Vec<Event> = journal(of, end)
                .into_iter()
                .map(|line| {
                    serde_json::from_value(line.clone())
                        .unwrap_or_else(|error| panic!("{error}: {line}"))
                })
                .collect();
            let seen = RunView::untimed(&lines);
            let view = Run {
                name: "a-run".to_owned(),
                kind: of.to_owned(),
                query: "Greet the world.".to_owned(),
                verdict: seen
                    .outcome
                    .as_ref()
                    .map_or("not finished", |outcome| outcome.code())
                    .to_owned(),
                is_good: seen.outcome.as_ref().map(|_| end == "done"),
                steps: seen.clone(),
                ..Run::default()
            };
            shown.push_str(&format!("## {end}\n"));
            if let Some(outcome) = &seen.outcome {
                let words = LastWords::of(outcome, seen.reason(&file), step, "the build passes");
                let log = "logs/a-run".to_owned();
                let summary = Summary::of(&seen, step, outcome.clone(), Vec::new(), log);
                shown.push_str(&Screen::shows(|output| words.print(Some(&summary), output)));
            }
            shown.push_str(&format!(
                "--- show\n{}",
                Screen::shows(|output| steps(step, &seen, &file, output))
            ));
            shown.push_str(&format!("--- Markdown\n{}", markdown(&view)));
            let read = |name: &str, _| {
                let head = file(name)?;
                let bytes = head.len() as u64;
                Some(Excerpt {
                    head,
                    bytes,
                    ..Excerpt::default()
                })
            };
            let page = run(&view, &read);
            shown.push_str(&format!("--- page\n{}\n", first_screen(&page)));
        }
        insta::assert_snapshot!(of, shown);
    }
}
