//! S2 §5, §7: what a run leaves, where, and that it depends on the inputs alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::scenes::files::{self, named};
use crate::scenes::order::{BAD, GOOD, KEY, Scene, greet, without_durations};
use crate::scenes::program::Ran;

/// Every file below a folder, by its path.
fn all(folder: &Path) -> BTreeMap<String, String> {
    named(folder).into_iter().collect()
}

#[test]
fn artifacts_are_at_their_exact_paths() {
    let scene = Scene::with(&[&greet(BAD), &greet(GOOD)]);
    scene.run(&[]);
    let names: Vec<String> = all(&scene.runs()[0])
        .into_keys()
        .filter(|name| name.contains("attempt_") || name.starts_with("run_summary"))
        .collect();
    insta::assert_snapshot!(names.join("\n"), @r"
    attempt_1/acceptance_1_stderr.txt
    attempt_1/acceptance_1_stdout.txt
    attempt_1/acceptance_result.json
    attempt_1/failure_brief.json
    attempt_1/prompt.txt
    attempt_1/proposed_writes.json
    attempt_1/response.json
    attempt_1/response.txt
    attempt_1/verify_1_stderr.txt
    attempt_1/verify_1_stdout.txt
    attempt_1/verify_result.json
    attempt_1/write_result.json
    attempt_2/acceptance_1_stderr.txt
    attempt_2/acceptance_1_stdout.txt
    attempt_2/acceptance_result.json
    attempt_2/prompt.txt
    attempt_2/proposed_writes.json
    attempt_2/response.json
    attempt_2/response.txt
    attempt_2/verify_1_stderr.txt
    attempt_2/verify_1_stdout.txt
    attempt_2/verify_result.json
    attempt_2/write_result.json
    run_summary.json
    ");
}

#[test]
fn the_logs_of_a_command_are_whole_and_its_record_is_bounded() {
    let scene = Scene::with(&[&greet(GOOD)]);
    scene.place_order(
        &json!({ "acceptance_commands": ["seq 1 5000", "sh -c 'seq 1 300 >&2; printf \"a\\\\377b\"'"] }),
    );
    assert_eq!(scene.run(&[]).code, Some(0));
    let results = scene.json("attempt_1/acceptance_result.json");
    let whole = scene.recorded(results[0]["stdout_path"].as_str().unwrap());
    assert_eq!(whole.lines().count(), 5000);
    let kept = results[0]["stdout_trunc"].as_str().unwrap();
    assert_eq!(
        (kept.lines().count(), kept.lines().last()),
        (200, Some("5000"))
    );
    assert_eq!(
        results[1]["stderr_trunc"].as_str().unwrap().lines().next(),
        Some("101")
    );
    assert_eq!(results[1]["stdout_trunc"], "a\u{fffd}b");
}

/// A summary without what a clock says.
fn without_times(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|key, _| {
                    !matches!(
                        key.as_str(),
                        "duration_seconds" | "begun_utc" | "started_utc" | "ended_utc"
                    )
                });
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    strip(&mut value);
    value
}

#[test]
fn two_runs_of_the_same_inputs_have_the_same_id_and_artifacts_apart_from_times() {
    let scene = Scene::with(&[&greet(BAD), "no", &greet(BAD), "no"]);
    let run = || {
        assert_eq!(scene.run(&["--new"]).code, Some(1));
        (scene.runs(), all(&scene.runs()[0]))
    };
    let ((first_runs, first), (second_runs, second)) = (run(), run());
    assert_eq!(first_runs[0], second_runs[0]);
    assert_eq!(
        first.keys().collect::<Vec<_>>(),
        second.keys().collect::<Vec<_>>()
    );
    for (name, one) in &first {
        let other = &second[name];
        if name == "events.jsonl" || name.ends_with("response.json") {
            // The journal stamps its lines, the service its answers.
        } else if Path::new(name)
            .extension()
            .is_some_and(|kind| kind == "json")
        {
            let [one, other] =
                [one, other].map(|text| without_times(serde_json::from_str(text).unwrap()));
            assert_eq!(one, other, "{name}");
        } else {
            assert_eq!(one, other, "{name}");
        }
    }
}

#[test]
fn a_finished_run_of_the_same_id_keeps_its_record_under_the_next_name() {
    let scene = Scene::with(&["no", &greet(BAD)]);
    let before = [(); 2].map(|()| {
        scene.run(&["--max-attempts", "1", "--new"]);
        fs::read(scene.runs()[0].join("events.jsonl")).unwrap()
    });
    let runs = scene.runs();
    let id = files::name(&runs[0]);
    assert_eq!(files::name(&runs[1]), format!("{id}-2"));
    assert_eq!(
        [&runs[1], &runs[0]].map(|run| fs::read(run.join("events.jsonl")).unwrap()),
        before
    );
    assert_eq!(scene.calls(), 2);
    let listed = Ran::of(&mut scene.program(&["runs"]));
    let wanted = format!(
        "{id}  order: FAIL (acceptance_failed), attempts 1, cost unknown, [T]  Greet with a comma\n\
         {id}-2  order: FAIL (llm_output_invalid), attempts 1, cost unknown, [T]  Greet with a comma\n"
    );
    assert_eq!(without_durations(&listed.out), wanted);
    let costs = Ran::of(&mut scene.program(&["costs", "--json"]));
    let costs: Value = serde_json::from_str(&costs.out).unwrap();
    assert_eq!(costs["by"]["all"]["all"]["calls"], 2);
}

#[test]
fn the_request_is_one_unstreamed_chat_completion_with_the_temperature_and_strict_json() {
    let scene = Scene::with(&[&greet(GOOD)]);
    scene.run(&[]);
    let request = scene.server.requests()[0].clone();
    let body = request.json();
    assert!(
        request.path.ends_with("/chat/completions"),
        "{}",
        request.path
    );
    assert_eq!(
        request.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert_eq!(
        (&body["model"], &body["temperature"]),
        (&json!("test"), &json!(0.0))
    );
    let [instructions, order] = body["messages"].as_array().unwrap().as_slice() else {
        panic!("{body}")
    };
    assert_eq!(
        (&instructions["role"], &order["role"]),
        (&json!("system"), &json!("user"))
    );
    let sent = [instructions, order].map(|message| message["content"].as_str().unwrap());
    assert!(sent[1].starts_with("WORK ORDER: "), "{body}");
    assert_eq!(sent.concat(), scene.recorded("attempt_1/prompt.txt"));
    assert_eq!(
        (&body["stream"], &body["tools"]),
        (&Value::Null, &Value::Null)
    );
    assert!(body["response_format"].is_object(), "{body}");
}

#[test]
fn no_file_and_no_stream_holds_the_key() {
    let scene = Scene::with(&[&greet(GOOD)]);
    // The key reaches the command although its environment does not have it: from a file.
    scene.place("key", KEY.as_bytes());
    let cat = format!(
        "sh -c 'cat {0}; cat {0} >&2'",
        scene.beside("key").display()
    );
    scene.place_order(
        &json!({ "acceptance_commands": [cat, "sh -c 'test -z \"$OPENAI_API_KEY\"'"] }),
    );
    let ran = scene.run(&["--verbose"]).exits(0);
    for (name, text) in all(&scene.runs()[0]) {
        assert!(!text.contains(KEY), "{name}");
    }
    assert!(!ran.out.contains(KEY) && !ran.err.contains(KEY));
}
