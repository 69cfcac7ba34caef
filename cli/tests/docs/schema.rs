//! What `--json` prints and what a journal holds, against `docs/schemas/events.schema.json`.

use serde_json::{Value, json};

use crate::page::text;
use crate::world::World;

/// Words of JSON schema that ask for nothing. Any other that is not known here is a mistake, since it would not be checked.
const SILENT: [&str; 5] = ["$schema", "$defs", "title", "description", "$comment"];

/// The only pattern: a hash.
const SHA256: &str = "^[0-9a-f]{64}$";

fn schema() -> Value {
    serde_json::from_str(&text("docs/schemas/events.schema.json".as_ref())).unwrap()
}

/// What is wrong with `value` by `rule`, each with its place.
fn faults(value: &Value, rule: &Value, schema: &Value, place: &str) -> Vec<String> {
    let words = rule.as_object().unwrap().iter();
    words
        .flat_map(|(word, wanted)| match word.as_str() {
            "$ref" | "oneOf" | "properties" | "items" => faults_inside(value, word, wanted, schema, place),
            _ if holds(value, rule, word, wanted) => Vec::new(),
            _ => vec![format!("{place}: {word} should be {wanted}: {value}")],
        })
        .collect()
}

/// The words that lead to further rules.
fn faults_inside(value: &Value, word: &str, wanted: &Value, schema: &Value, place: &str) -> Vec<String> {
    match word {
        "$ref" => {
            let target = schema.pointer(wanted.as_str().unwrap().trim_start_matches('#'));
            faults(value, target.unwrap_or_else(|| panic!("{wanted} is nowhere")), schema, place)
        }
        "oneOf" => {
            let kinds: Vec<_> =
                wanted.as_array().unwrap().iter().map(|kind| faults(value, kind, schema, place)).collect();
            let fitting = kinds.iter().filter(|faults| faults.is_empty()).count();
            if fitting == 1 {
                Vec::new()
            } else {
                vec![format!("{place}: fits {fitting} kinds ({kinds:?}): {value}")]
            }
        }
        "properties" => {
            let keys = wanted.as_object().unwrap().iter();
            let present = keys.filter_map(|(key, rule)| Some((key, rule, value.get(key)?)));
            present
                .flat_map(|(key, rule, value)| faults(value, rule, schema, &format!("{place}.{key}")))
                .collect()
        }
        _ => {
            let items = value.as_array().into_iter().flatten();
            items.flat_map(|item| faults(item, wanted, schema, &format!("{place}[]"))).collect()
        }
    }
}

/// The words that ask for something of the value itself.
fn holds(value: &Value, rule: &Value, word: &str, wanted: &Value) -> bool {
    let list = wanted.as_array().map_or(&[][..], Vec::as_slice);
    match word {
        "type" if list.is_empty() => is_a(value, wanted.as_str().unwrap()),
        "type" => list.iter().any(|kind| is_a(value, kind.as_str().unwrap())),
        "const" => value == wanted,
        "enum" => list.contains(value),
        "minimum" => value.as_i64() >= wanted.as_i64(),
        "pattern" => wanted == SHA256 && is_sha256(value),
        "required" => list.iter().all(|key| value.get(key.as_str().unwrap()).is_some()),
        "additionalProperties" => {
            assert_eq!(wanted, &json!(false));
            value
                .as_object()
                .is_none_or(|object| object.keys().all(|key| rule["properties"].get(key).is_some()))
        }
        other => {
            assert!(SILENT.contains(&other), "the test does not know {other}");
            true
        }
    }
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("there is no type {other}"),
    }
}

fn is_sha256(value: &Value) -> bool {
    value.as_str().is_some_and(|text| {
        text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// A project whose scripted model does all that a model can do: it cannot be reached, is refused, says nothing is to be done, fails, is right.
fn world() -> World {
    let world = World::new().with_project("greeting");
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(world.run("cd greeting && code-commit init && echo 'Greet the world.' > agent-config/query.txt && code-commit rollup").code, 0);
    world.save("agent-config/gemini-system-prompt.txt", &lines("Answer in fences."));
    world.save(
        "agent-config/all.jsonl",
        &lines(concat!(
            r#"{"error":"rate-limited","retry_after_s":0.01,"message":"slower"}"#,
            "\n",
            r#"{"text":"^^^.git/config\n^^^end\n","usage":{"input_tokens":5,"output_tokens":2}}"#,
            "\n",
            r#"{"text":"$$$start\nfine\n$$$end\n"}"#,
            "\n",
            r#"{"text":"half","finish":"truncated"}"#,
            "\n",
            r#"{"text":"&&&start\nhello\n&&&end\n^^^gone.sh\n^^^delete\n^^^greet.sh\n# rest of the code unchanged\n^^^end\n"}"#,
        )),
    );
    world.save(
        "agent-config/right.jsonl",
        &lines(r#"{"text":"^^^greet.sh\ngreet() { echo 'Hello, world!'; }\n^^^end\n","served_model":"m"}"#),
    );
    world
}

#[test]
fn every_line_that_runs_print_and_record_fits_the_schema() {
    let (world, schema) = (world(), schema());
    let commands = [
        "code-commit --model scripted/agent-config/all.jsonl",
        "code-commit --model scripted/agent-config/all.jsonl --on-failure restore --rounds 3",
        "code-commit --model scripted/agent-config/all.jsonl --max-calls 1",
        "code-commit --model scripted/agent-config/right.jsonl",
        "code-commit implement --model scripted/agent-config/right.jsonl",
    ];
    let mut seen = Vec::new();
    for command in commands {
        let printed = world.run(&format!("{command} --sandbox off --json 2>/dev/null")).printed;
        assert!(
            printed.lines().last().is_some_and(|line| line.contains("\"event\":\"summary\"")),
            "{printed}"
        );
        for line in printed.lines() {
            let object: Value = serde_json::from_str(line).unwrap();
            let found = faults(&object, &schema, &schema, "line");
            assert!(found.is_empty(), "{found:?}");
            seen.extend(
                [&object["event"], &object["fact"]["what"]]
                    .into_iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned),
            );
        }
    }
    for entry in world.run("cat agent-config/logs/*/events.jsonl logs/*/events.jsonl").printed.lines() {
        let object: Value = serde_json::from_str(entry).unwrap();
        let found = faults(&object, &schema["$defs"]["entry"], &schema, "entry");
        assert!(found.is_empty(), "{found:?}");
    }
    seen.sort();
    seen.dedup();
    insta::assert_snapshot!(
        seen.join(" "),
        @"answered applied ask-begins asked attempted build-begins build-prints built ended fact rejected restored said summary unanswered waiting"
    );
}

#[test]
fn what_does_not_fit_is_noticed() {
    let schema = schema();
    for line in [
        json!({ "event": "said", "round": 1 }),
        json!({ "event": "said", "round": -1, "text": "" }),
        json!({ "event": "said", "round": 1, "text": "", "more": 1 }),
        json!({ "event": "other" }),
        json!({ "event": "fact", "fact": { "what": "restored", "paths": [1] } }),
        json!({ "event": "fact", "fact": { "what": "asked", "round": 1, "prompt": { "file": "f", "bytes": 1, "sha256": "x" } } }),
    ] {
        assert!(!faults(&line, &schema, &schema, "line").is_empty(), "{line}");
    }
}
