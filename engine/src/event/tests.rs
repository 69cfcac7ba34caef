//! The JSON schema of an event, published as `docs/schemas/event.schema.json` and generated from the types.

use std::path::Path;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::Event;

/// Whoever writes the journal adds the sets of pre-images to the answers that have some.
const WITH_SETS: [&str; 5] = ["applied", "built", "written", "measured", "turned"];

#[test]
fn the_published_schema_of_events_is_that_of_the_types() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schemas/event.schema.json");
    let expected = format!("{:#}\n", of_events());
    #[expect(
        clippy::disallowed_methods,
        reason = "the test can write what it expects"
    )]
    if std::env::var_os("SCHEMA_UPDATE").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let published = std::fs::read_to_string(&file).unwrap();
    assert!(
        published == expected,
        "docs/schemas/event.schema.json is not that of the types; run this test with SCHEMA_UPDATE=1"
    );
}

fn of_events() -> Value {
    let generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let mut schema = generator.into_root_schema_for::<Event>().to_value();
    schema["title"] = json!("An event: what `fact` of a line of `events.jsonl` and of `--json` is");
    let rules = schema["$defs"].as_object().cloned().unwrap_or_default();
    let events = schema["oneOf"].as_array().unwrap();
    schema["oneOf"] = events
        .iter()
        .flat_map(|event| whole(event, &rules))
        .collect();
    let used = schema["oneOf"].to_string() + &Value::from(rules.clone()).to_string();
    let kept = rules
        .into_iter()
        .filter(|(name, _)| used.contains(&format!("\"#/$defs/{name}\"")));
    schema["$defs"] = kept.collect::<Map<_, _>>().into();
    close(&mut schema);
    schema
}

/// The members of an event beside its tag are those of another rule, or of several of which one applies: each of these rules has
/// them all.
fn whole(event: &Value, rules: &Map<String, Value>) -> Vec<Value> {
    let mut event = event.as_object().cloned().unwrap();
    let what = event["properties"]["what"]["const"].clone();
    if WITH_SETS.iter().any(|with| what == *with) {
        event["properties"]["sets"] = json!({
            "description": "The sets of pre-images in `undo/` that were made for it, each with the SHA-256 of its `manifest.json`.",
            "type": "object",
            "additionalProperties": true,
        });
    }
    let reference = event.remove("$ref");
    let other =
        reference.map(|to| rules[to.as_str().unwrap().trim_start_matches("#/$defs/")].clone());
    let choice = event
        .remove("oneOf")
        .and_then(|one| one.as_array().cloned());
    let others = choice.unwrap_or_else(|| vec![other.unwrap_or_else(|| json!({}))]);
    others
        .iter()
        .map(|other| merged(event.clone(), other).into())
        .collect()
}

fn merged(mut rule: Map<String, Value>, other: &Value) -> Map<String, Value> {
    for (word, wanted) in other.as_object().unwrap() {
        match (rule.get_mut(word), wanted) {
            (Some(Value::Object(here)), Value::Object(there)) => here.extend(there.clone()),
            (Some(Value::Array(here)), Value::Array(there)) => {
                here.extend(there.clone());
                here.dedup();
            }
            (Some(_), _) => {}
            (None, _) => {
                rule.insert(word.clone(), wanted.clone());
            }
        }
    }
    rule
}

/// Objects have no other members. A description is a doc comment without line breaks and in the words of JSON; how Rust
/// stores a number says nothing about a line.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text
                    .replace('\n', " ")
                    .replace("`None`", "null")
                    .replace("[`", "`")
                    .replace("`]", "`");
            }
            members.retain(|word, rule| !(word == "format" && rule.is_string()));
            members.remove("default");
            let is_whole = members.get("properties").is_some_and(Value::is_object)
                && !members.contains_key("oneOf")
                && !members.contains_key("$ref");
            if is_whole {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
            members.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
