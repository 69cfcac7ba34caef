//! Scripted runs: a list of events in, text out.

#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "helpers of a test"
)]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use code_commit_engine::{Event, Observer, Outcome, Problem, Progress};
use code_commit_report::{
    Counts, FileStat, LastWords, Ndjson, Output, Printout, Stream, Summary, Terminal, Volume, steps,
};
use code_commit_timeline::RunView;
use serde_json::{Value, json};

/// The text written to a stream.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn output() -> (Output, Page, Page) {
    let (out, err) = (Page::default(), Page::default());
    (
        Output::new(
            Stream::new(out.clone(), false),
            Stream::new(err.clone(), false),
        ),
        out,
        err,
    )
}

/// A line of a journal.
fn line(json: Value) -> Event {
    serde_json::from_value(json).unwrap()
}

fn problem(code: &str, message: &str) -> Problem {
    Problem {
        code: code.to_owned(),
        path: None,
        line: None,
        message: message.to_owned(),
    }
}

fn asked(round: u32) -> Value {
    json!({"what": "asked", "round": round, "prompt": {"file": "1-prompt.txt", "bytes": 12_345, "sha256": "00"}, "at_most": {"tokens": 9, "cost_usd": 1.0}})
}

fn answered(round: u32) -> Value {
    json!({
        "what": "answered", "round": round, "reply": {"file": "1-response.txt", "bytes": 820, "sha256": "00"},
        "raw": {"file": "1-response.json", "bytes": 900, "sha256": "00"}, "finish": "complete",
        "usage": {"input_tokens": 4000, "output_tokens": 200}, "served_model": "a-model", "cost_usd": 0.0123, "elapsed_ms": 1200,
    })
}

fn applied(round: u32) -> Value {
    let change = json!({"path": "src/a.rs", "action": "write", "created": true, "bytes": 3, "before_sha256": null, "after_sha256": "00"});
    json!({"what": "applied", "round": round, "changes": [change], "warnings": [], "no_change": null})
}

fn rejected(round: u32) -> Value {
    let problem = problem("nothing-actionable", "the reply holds no file");
    let report = json!({"file": "1-build.txt", "bytes": 3, "sha256": "00"});
    json!({"what": "rejected", "round": round, "problems": [problem], "report": report})
}

fn built(round: u32, ended: Value) -> Value {
    let output = json!({"file": "2-build.txt", "bytes": 9, "sha256": "00"});
    json!({"what": "built", "round": round, "ended": ended, "output": output, "elapsed_ms": 2500})
}

fn outcome() -> Value {
    json!({"what": "ended", "outcome": "done", "rounds": 3})
}

/// A reply that is refused, a build that fails, one that passes.
fn journal() -> Vec<Value> {
    vec![
        asked(1),
        answered(1),
        rejected(1),
        asked(2),
        answered(2),
        applied(2),
        built(2, json!({"how": "exited", "code": 1})),
        asked(3),
        answered(3),
        applied(3),
        built(3, json!({"how": "exited", "code": 0})),
        outcome(),
    ]
}

const COUNTS: Counts = Counts {
    step: "round",
    most: 4,
};

#[test]
fn a_scripted_run_is_told_line_by_line() {
    let (output, out, err) = output();
    let read = |file: &str| {
        if file == "1-response.txt" {
            let text = (1..=14)
                .map(|line| format!("I would change it: {line}\n\n"))
                .collect();
            return Some(Printout {
                text,
                is_whole: true,
            });
        }
        assert_eq!(file, "2-build.txt");
        let text: String = (1..=14).map(|line| format!("line {line}\n")).collect();
        Some(Printout {
            text,
            is_whole: true,
        })
    };
    let model = "gemini/a-model".to_owned();
    let mut terminal = Terminal::new(output, model, COUNTS, Box::new(read));
    let warning = problem("runs-later", "git runs this\u{1b}[2K later");
    for json in journal() {
        let line = line(json.clone());
        if let Event::Asked(asked) = &line {
            terminal.see(&Progress::AskBegins {
                round: asked.round,
                prompt_bytes: 12_345,
                model: "gemini/a-model".to_owned(),
            });
        }
        terminal.see(&Progress::Recorded {
            line: &line,
            json: &json,
        });
    }
    let wait = Duration::from_secs(12);
    terminal.see(&Progress::Waiting {
        round: 3,
        wait,
        reason: "the service is busy".to_owned(),
    });
    terminal.see(&Progress::Said {
        round: 3,
        text: "Read the notes.\n",
    });
    terminal.see(&Progress::Warning(&warning));
    insta::assert_snapshot!(err.text(), @r"
    round 1/4  asking gemini/a-model (12.3 kB)
    round 1/4  replied in 1.2 s: 820 B, 4,000 tokens in, 200 out
    round 1/4  reply refused, nothing was written:
               the reply holds no file
    round 2/4  asking gemini/a-model (12.3 kB)
    round 2/4  replied in 1.2 s: 820 B, 4,000 tokens in, 200 out
    round 2/4  created src/a.rs
    round 2/4  build failed: exit code 1 (2.5 s)
               … 2 more lines in the log
               line 3
               line 4
               line 5
               line 6
               line 7
               line 8
               line 9
               line 10
               line 11
               line 12
               line 13
               line 14
    round 3/4  asking gemini/a-model (12.3 kB)
    round 3/4  replied in 1.2 s: 820 B, 4,000 tokens in, 200 out
    round 3/4  created src/a.rs
    round 3/4  build passed (2.5 s)
    round 3/4  the service is busy; trying again in 12 s
    warning: git runs this\u{1b}[2K later
    ");
    insta::assert_snapshot!(out.text(), @"Read the notes.");
}

#[test]
fn what_a_build_prints_is_shown_as_it_comes_only_to_whoever_wants_it() {
    let mut shown = Vec::new();
    for volume in [Volume::Normal, Volume::Verbose] {
        let (mut output, _, err) = output();
        output.volume = volume;
        let model = "gemini/a-model".to_owned();
        let mut terminal = Terminal::new(output, model, COUNTS, Box::new(|_| None));
        terminal.see(&Progress::BuildBegins { round: 1 });
        terminal.see(&Progress::BuildPrints { bytes: b"one\ntw" });
        terminal.see(&Progress::BuildPrints { bytes: b"o\nthree" });
        shown.push(err.text());
    }
    assert_eq!(shown, ["", "one\ntwo\n"]);
}

#[test]
fn every_event_is_one_json_object_but_the_progress_of_the_model() {
    let (mut output, out, err) = output();
    output.json = true;
    let mut ndjson = Ndjson(output);
    let json = outcome();
    let ended = line(json.clone());
    let warning = problem("runs-later", "git runs this later");
    let wait = Duration::from_millis(1500);
    let events = [
        Progress::AskBegins {
            round: 1,
            prompt_bytes: 12_345,
            model: "gemini/a-model".to_owned(),
        },
        Progress::Receiving {
            round: 1,
            elapsed: wait,
            bytes: 10,
            is_thinking: true,
            text_bytes: 0,
            files: &[],
        },
        Progress::Spent { usd: 0.5 },
        Progress::Waiting {
            round: 1,
            wait,
            reason: "busy".to_owned(),
        },
        Progress::CountingDown {
            round: 1,
            left: wait,
        },
        Progress::Said {
            round: 1,
            text: "Read \u{202e}this.\n",
        },
        Progress::BuildBegins { round: 1 },
        Progress::BuildPrints {
            bytes: b"cargo \xff\n",
        },
        Progress::Warning(&warning),
        Progress::Recorded {
            line: &ended,
            json: &json,
        },
    ];
    events.iter().for_each(|event| ndjson.see(event));
    insta::assert_snapshot!(out.text(), @r#"
    {"event":"ask-begins","model":"gemini/a-model","prompt_bytes":12345,"round":1}
    {"event":"waiting","reason":"busy","round":1,"wait_ms":1500}
    {"event":"said","round":1,"text":"Read \u202ethis.\n"}
    {"event":"build-begins","round":1}
    {"event":"build-prints","text":"cargo �\n"}
    {"event":"warning","problem":{"code":"runs-later","message":"git runs this later"}}
    {"event":"fact","fact":{"outcome":"done","rounds":3,"what":"ended"}}
    "#);
    assert_eq!(err.text(), "");
}

#[test]
fn a_record_is_read_line_by_line() {
    let (output, out, _) = output();
    let recorded: Vec<Event> = journal().into_iter().map(line).collect();
    steps("round", &RunView::untimed(&recorded), &|_| None, &output);
    insta::assert_snapshot!(out.text(), @"
    round 1  a-model replied, $0.0123, 4,000 tokens in, 200 out (1-prompt.txt, 1-response.txt)
    round 1  The reply was refused, and nothing of it was written
    round 1  the reply holds no file [nothing-actionable]
    round 2  a-model replied, $0.0123, 4,000 tokens in, 200 out (1-prompt.txt, 1-response.txt)
    round 2  The reply was written
    round 2  A src/a.rs
    round 2  build: exit code 1, 2.5 s (2-build.txt)
    round 3  a-model replied, $0.0123, 4,000 tokens in, 200 out (1-prompt.txt, 1-response.txt)
    round 3  The reply was written
    round 3  A src/a.rs
    round 3  build: exit code 0, 2.5 s (2-build.txt)
    ");
}

#[test]
fn a_run_is_summed_up_from_its_record() {
    let (output, out, _) = output();
    let recorded: Vec<Event> = journal().into_iter().map(line).collect();
    let file = FileStat {
        path: "src/a.rs".to_owned(),
        status: 'A',
        added: Some(3),
        removed: Some(1),
        by_build: false,
        named_by_build: false,
    };
    let outcome = Outcome::Done { rounds: 3 };
    let log = "logs/a-run".to_owned();
    let words = LastWords::of(&outcome, None, "round", "the build passes");
    let steps = RunView::untimed(&recorded);
    let summary = Summary::of(&steps, "round", outcome, vec![file], log);
    words.print(Some(&summary), &output);
    insta::assert_snapshot!(out.text(), @"
    ✓ done after 3 rounds: the build passes
      A src/a.rs +3 −1
      3 rounds · 12,000 tokens in, 600 out · $0.0369 · 0.0 s · logs/a-run
    ");
}

/// A build can make a file of any name.
#[test]
fn a_line_break_in_a_name_begins_no_line() {
    let (output, out, err) = output();
    let name = "a\nforged: the build passes";
    let message = format!("the build changed {name}, which it may not");
    let mut built = built(1, json!({"how": "exited", "code": 1}));
    let change = json!({"path": name, "action": "write", "created": true, "bytes": 3, "before_sha256": null, "after_sha256": "00"});
    built["changes"] = json!([change]);
    let mut applied = applied(1);
    applied["changes"] = built["changes"].clone();
    applied["warnings"] = json!([problem("runs-later", &message)]);
    let mut rejected = rejected(1);
    rejected["problems"] = json!([problem("refused", &message)]);
    let warned = json!({"what": "warned", "warning": problem("put-back", &message)});
    let lines: Vec<Event> = [rejected, applied, built, warned].map(line).into();
    let mut terminal = Terminal::new(
        output.clone(),
        "gemini/a-model".to_owned(),
        COUNTS,
        Box::new(|_| None),
    );
    for line in &lines {
        terminal.see(&Progress::Recorded {
            line,
            json: &json!({}),
        });
    }
    terminal.see(&Progress::Warning(&problem("put-back", &message)));
    steps("round", &RunView::untimed(&lines), &|_| None, &output);
    let file = FileStat {
        path: name.to_owned(),
        status: 'A',
        added: Some(1),
        removed: Some(0),
        named_by_build: false,
        by_build: true,
    };
    let outcome = Outcome::Done { rounds: 1 };
    let log = "logs".to_owned();
    let steps = RunView::untimed(&lines);
    let summary = Summary::of(&steps, "round", outcome, vec![file], log);
    LastWords::default().print(Some(&summary), &output);
    let all = format!("{}{}", out.text(), err.text());
    assert!(all.contains("A a\\u{a}forged: the build passes"), "{all}");
    assert!(
        !all.lines()
            .any(|line| line.trim_start().starts_with("forged")),
        "{all}"
    );
}

#[test]
fn a_key_is_struck_out_and_a_closed_pipe_is_no_loss() {
    /// A full disk, or a pipe without a reader.
    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let lost = [io::ErrorKind::BrokenPipe, io::ErrorKind::StorageFull].map(|kind| {
        let err = Page::default();
        let output = Output::new(
            Stream::new(Broken(kind), false),
            Stream::new(err.clone(), false),
        );
        output.strike_out(["a-secret-key"]);
        output.report("what was asked for");
        output.note("the key is a-secret-key");
        (output.has_lost(), err.text())
    });
    insta::assert_debug_snapshot!(lost, @r#"
    [
        (
            false,
            "the key is [key …ey]\n",
        ),
        (
            true,
            "the key is [key …ey]\nerror: cannot write to standard output: no storage space\n",
        ),
    ]
    "#);
}
