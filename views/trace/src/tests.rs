use code_commit_engine::Changed;
use code_commit_timeline::{Call, Change, Command, Contents, Event, Run, Step, Steps, Tone, What};

use super::*;

/// A run whose contents are named by themselves.
fn run_of(what: Vec<What>, contents: &[&str]) -> Run {
    let all = what
        .into_iter()
        .map(|what| Step {
            round: 1,
            from_ms: 1_000,
            to_ms: 3_000,
            what,
        })
        .collect();
    Run {
        name: "run".into(),
        kind: "commit".into(),
        version: "0.1.0".into(),
        model: "gemini/asked".into(),
        steps: Steps {
            all,
            from_ms: 1_000,
            to_ms: 3_000,
            ..Steps::default()
        },
        contents: Contents(
            contents
                .iter()
                .map(|text| ((*text).to_owned(), text.as_bytes().to_vec()))
                .collect(),
        ),
        ..Run::default()
    }
}

fn changed(before: &str, after: Option<&str>) -> Vec<Changed> {
    vec![Changed {
        path: "a.rs".into(),
        action: if after.is_some() {
            code_commit_engine::Action::Write
        } else {
            code_commit_engine::Action::Delete
        },
        before_sha256: Some(before.to_owned()),
        after_sha256: after.map(str::to_owned),
        created: false,
        before_mode: None,
        after_mode: None,
    }]
}

fn call(model: &str) -> What {
    What::Call(Box::new(Call {
        served_model: Some(model.to_owned()),
        ..Call::default()
    }))
}

fn change(changes: Vec<Changed>) -> What {
    What::Change(Change {
        changes,
        ..Change::default()
    })
}

fn event(commit: Option<&str>, changes: Vec<Changed>, is_restore: bool) -> What {
    let commit = commit.map(str::to_owned);
    What::Event(Event {
        tone: Tone::Good,
        commit,
        changes,
        is_restore,
        ..Event::default()
    })
}

/// `MODEL FIRST-LAST` for each range of each record, and the revision.
fn check(run: &Run, revision: Option<&str>) -> Vec<String> {
    let mut lines = Vec::new();
    for record in agent_trace(run, revision) {
        lines.push(format!(
            "at {}",
            record["vcs"]["revision"].as_str().unwrap_or("none")
        ));
        for conversation in record["files"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|f| f["conversations"].as_array().unwrap())
        {
            let by = &conversation["contributor"];
            let by = by["model_id"].as_str().or(by["type"].as_str()).unwrap();
            for range in conversation["ranges"].as_array().unwrap() {
                lines.push(format!(
                    "{by} {}-{}",
                    range["start_line"], range["end_line"]
                ));
            }
        }
    }
    lines
}

#[test]
fn each_line_belongs_to_the_model_that_wrote_it_last() {
    let (old, first, second) = ("1\n2\n3\n", "1\ntwo\n3\nfour\n", "1\ntwo\n3\nfive\nsix\n");
    let build = What::Command(Command {
        changes: changed(second, Some("0\n1\ntwo\n3\nfive\nsix\n")),
        ..Command::default()
    });
    let steps = vec![
        call("one"),
        change(changed(old, Some(first))),
        call("other/two"),
        change(changed(first, Some(second))),
        build,
    ];
    let run = run_of(steps, &[old, first, second, "0\n1\ntwo\n3\nfive\nsix\n"]);
    assert_eq!(
        check(&run, Some("abc")),
        ["at abc", "gemini/one 3-3", "other/two 5-6", "unknown 1-1"]
    );
}

#[test]
fn a_commit_is_a_record_of_what_was_written_since_the_one_before() {
    let (old, first, second) = ("1\n", "1\n2\n", "1\n2\n3\n");
    let steps = vec![
        call("one"),
        event(Some("c1"), changed(old, Some(first)), false),
        call("two"),
        event(Some("c2"), changed(first, Some(second)), false),
    ];
    let run = run_of(steps, &[old, first, second]);
    assert_eq!(
        check(&run, Some("head")),
        ["at c1", "gemini/one 2-2", "at c2", "gemini/two 3-3"]
    );
}

#[test]
fn what_was_restored_deleted_or_is_unknown_has_no_record() {
    let (old, new) = ("1\n", "1\n2\n");
    let restored = vec![
        call("one"),
        change(changed(old, Some(new))),
        event(None, Vec::new(), true),
    ];
    assert_eq!(
        check(&run_of(restored, &[old, new]), None),
        Vec::<String>::new()
    );
    let deleted = vec![call("one"), change(changed(old, None))];
    assert_eq!(check(&run_of(deleted, &[old]), None), Vec::<String>::new());
    let unknown = vec![call("one"), change(changed(old, Some(new)))];
    assert_eq!(check(&run_of(unknown, &[old]), None), Vec::<String>::new());
}

#[test]
fn a_line_that_somebody_else_wrote_in_between_is_not_the_models() {
    let (old, first, edited, last) = ("1\n", "1\n2\n", "1\n2\nmine\n", "1\n2\nmine\n4\n");
    let steps = vec![
        call("one"),
        change(changed(old, Some(first))),
        change(changed(edited, Some(last))),
    ];
    let run = run_of(steps, &[old, first, edited, last]);
    assert_eq!(check(&run, None), ["at none", "gemini/one 4-4"]);
}

#[test]
fn a_record_is_the_same_wherever_it_is_made() {
    let run = run_of(
        vec![call("one"), change(changed("1\n", Some("2\n")))],
        &["1\n", "2\n"],
    );
    insta::assert_json_snapshot!(agent_trace(&run, Some("abc"))[0], @r#"
    {
      "files": [
        {
          "conversations": [
            {
              "contributor": {
                "model_id": "gemini/one",
                "type": "ai"
              },
              "ranges": [
                {
                  "content_hash": "sha256:53c234e5e8472b6ac51c1ae1cab3fe06fad053beb8ebfd8977b010655bfdd3c3",
                  "end_line": 1,
                  "start_line": 1
                }
              ]
            }
          ],
          "path": "a.rs"
        }
      ],
      "id": "74b5953f-66c7-8d41-8c72-08708aebb058",
      "metadata": {
        "dev.code-commit": {
          "loop": "commit",
          "run": "run"
        }
      },
      "timestamp": "1970-01-01T00:00:03.000Z",
      "tool": {
        "name": "code-commit",
        "version": "0.1.0"
      },
      "vcs": {
        "revision": "abc",
        "type": "git"
      },
      "version": "0.1.0"
    }
    "#);
}

#[test]
fn calls_and_commands_are_spans_below_their_round_and_the_run() {
    let build = What::Command(Command {
        name: "build".into(),
        ended: Some(code_commit_engine::Ended::Exited(2)),
        ..Command::default()
    });
    let run = Run {
        is_good: Some(false),
        verdict: "stuck".into(),
        ..run_of(vec![call("one"), build], &[])
    };
    let document = otlp(&run);
    let spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap();
    let name_of = |id: &serde_json::Value| {
        spans
            .iter()
            .find(|span| span["spanId"] == *id)
            .map_or("-", |span| span["name"].as_str().unwrap())
    };
    let told: Vec<String> = spans
        .iter()
        .map(|span| {
            format!(
                "{} below {}: {}",
                span["name"].as_str().unwrap(),
                name_of(&span["parentSpanId"]),
                span["status"]
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    commit below -: {"code":2,"message":"stuck"}
    round 1 below commit: {}
    chat asked below round 1: {}
    build below round 1: {"code":2,"message":"it exited with code 2"}
    "#);
    let ids: std::collections::BTreeSet<&str> = spans
        .iter()
        .map(|span| span["spanId"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), spans.len(), "no identifier occurs twice");
}
