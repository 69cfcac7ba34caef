//! The JSON schemas of a work order and of the artifacts, published in `docs/schemas/order/` and
//! generated from the types.

use std::path::{Path, PathBuf};

use code_commit_prompt::edits::Form;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::artifacts::{CmdResult, FailureBrief, RunSummary, WriteProposal, WriteResult};
use crate::order::MOST_CONTEXT_FILES;
use crate::proposal_schema;

/// SHA-256 in hex.
pub(crate) const SHA256: &str = "^[0-9a-f]{64}$";
/// The name of a run.
pub(crate) const RUN_ID: &str = "^[0-9a-f]{12}$";

fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("work_order", work_order()),
        (
            "proposed_writes",
            of::<WriteProposal>("proposed_writes.json: what the model proposed"),
        ),
        (
            "write_result",
            of::<WriteResult>("write_result.json: what came of the proposal"),
        ),
        (
            "verify_result",
            of::<Vec<CmdResult>>("verify_result.json: the commands of the verification"),
        ),
        (
            "acceptance_result",
            of::<Vec<CmdResult>>("acceptance_result.json: the acceptance commands"),
        ),
        (
            "failure_brief",
            of::<FailureBrief>("failure_brief.json: why an attempt failed"),
        ),
        (
            "run_summary",
            of::<RunSummary>("run_summary.json: the whole run"),
        ),
    ]
}

/// Written objects always contain all of their keys, even those that may be null.
fn of<T: JsonSchema>(title: &str) -> Value {
    let schema: Schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    schema["title"] = json!(title);
    unfold(&mut schema);
    schema
}

/// A description has no line breaks, unlike a doc comment.
fn unfold(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            members.values_mut().for_each(unfold);
        }
        Value::Array(items) => items.iter_mut().for_each(unfold),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The shape that [`crate::WorkOrder::parse`] requires, which reads an order field by field to name
/// every mistake. Its other rules (words of commands, lists contained in others) cannot be
/// expressed in a schema; the corpus in `fixtures/orders` tests both against each other.
fn work_order() -> Value {
    let text = |description: &str| json!({ "description": description, "type": "string" });
    let texts = |description: &str| json!({ "description": description, "type": "array", "items": { "type": "string" } });
    let paths = |description: &str, over: &Value| {
        let mut rule = json!({ "description": description, "type": "array", "items": { "$ref": "#/$defs/path" }, "uniqueItems": true });
        for (word, wanted) in over.as_object().into_iter().flatten() {
            rule[word] = wanted.clone();
        }
        rule
    };
    let conditions = |description: &str| json!({ "description": description, "type": ["array", "null"], "items": { "$ref": "#/$defs/condition" } });
    let commands = json!({ "$ref": "#/$defs/command" });
    let only = |key: &str| json!({ "type": "object", "properties": { key: { "$ref": "#/$defs/path" } }, "required": [key], "additionalProperties": false });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A work order: what `code-commit order run` carries out",
        "type": "object",
        "properties": {
            "id": text("Its name."),
            "title": text("One line that says what this is."),
            "intent": text("What is wanted, in as many words as it takes."),
            "allowed_files": paths("Nothing else is written.", &json!({ "minItems": 1 })),
            "forbidden": texts("What must not be done, as words for the model."),
            "acceptance_commands": { "description": "What decides, in order.", "type": "array", "items": commands, "minItems": 1 },
            "context_files": paths("Files whose content is shown to the model; all of them are among the allowed files.", &json!({ "maxItems": MOST_CONTEXT_FILES })),
            "notes": { "description": "Anything else for the model.", "type": ["string", "null"] },
            "max_cost": { "description": "What all model calls together may cost in US dollars.", "type": ["number", "null"], "minimum": 0 },
            "preconditions": conditions("What has to be so before the first attempt."),
            "postconditions": conditions("What has to be so after the acceptance commands."),
        },
        "required": ["id", "title", "intent", "allowed_files", "forbidden", "acceptance_commands", "context_files"],
        "additionalProperties": false,
        "$defs": {
            "path": { "description": "A file, relative to the repository's root, parted by `/`; no `..`, no pattern, no backslash.", "type": "string", "minLength": 1 },
            "command": { "description": "Words with a POSIX shell's quoting. No shell reads them: an operator outside of quotes is refused.", "type": "string", "minLength": 1 },
            "condition": { "description": "A regular file is there, or nothing is.", "oneOf": [only("file_exists"), only("file_absent")] },
        },
    })
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/schemas/order")
        .join(format!("{name}.schema.json"))
}

/// `SCHEMAS_UPDATE=1` writes them.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "this is what publishes the schemas"
)]
fn the_published_schemas_are_those_of_the_types() {
    let update = std::env::var_os("SCHEMAS_UPDATE").is_some();
    for (name, schema) in all() {
        let (path, now) = (file(name), format!("{schema:#}\n"));
        if update {
            std::fs::write(&path, &now).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            published == now,
            "{name}: write it anew: SCHEMAS_UPDATE=1 cargo test -p code-commit-loop-order schemas"
        );
    }
}

/// The schema that a service must follow is the published one.
#[test]
fn a_service_is_asked_for_the_published_proposal() {
    let names = |schema: &Value| {
        let rule = |rule: &Value| {
            (
                rule["required"].clone(),
                rule["additionalProperties"].clone(),
            )
        };
        let item = schema.pointer("/properties/writes/items").unwrap();
        let item = item
            .get("$ref")
            .map_or(item, |_| &schema["$defs"]["FileWrite"]);
        (rule(schema), item.clone())
    };
    let (published, file) = names(&of::<WriteProposal>(""));
    let (asked, whole) = names(&proposal_schema(Form::Files));
    let (asked_edits, either) = names(&proposal_schema(Form::Edits));
    assert_eq!((&asked, &asked_edits), (&published, &published));
    let [first, edited] = either["anyOf"].as_array().unwrap().as_slice() else {
        panic!("{either}")
    };
    assert_eq!(first, &whole, "only a second form is added");
    for (asked, only) in [(&whole, &file["oneOf"][0]), (edited, &file["oneOf"][1])] {
        let keys = [
            file["required"].as_array().unwrap().as_slice(),
            only["required"].as_array().unwrap(),
        ];
        assert_eq!(asked["required"], json!(keys.concat()));
        assert_eq!(asked["additionalProperties"], file["additionalProperties"]);
    }
    assert_eq!(
        edited["properties"]["edits"]["items"]["required"],
        json!(["search", "replace"])
    );
}
