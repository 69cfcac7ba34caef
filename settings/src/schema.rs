//! The JSON schema of a configuration file, for editors.

use serde_json::Value;

use crate::Layer;

/// The published schema. TOML has no null, so an optional key is not said to be null; defaults are
/// in the descriptions.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Layer).to_value();
    tidy(&mut schema);
    schema
}

fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.remove("default");
            if let Some(Value::String(text)) = object.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            take_out_null_choice(object);
            object.values_mut().for_each(tidy);
        }
        Value::Array(parts) => parts.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Replaces `anyOf: [X, null]` by X.
fn take_out_null_choice(object: &mut serde_json::Map<String, Value>) {
    let Some(Value::Array(choices)) = object.get_mut("anyOf") else {
        return;
    };
    choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        object.extend(only);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_is_current() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../docs/schemas/code-commit.schema.json"
        );
        let now = format!("{:#}\n", schema());
        let published = std::fs::read_to_string(path).unwrap_or_default();
        let stale =
            "write it anew: code-commit config --schema > docs/schemas/code-commit.schema.json";
        assert!(published == now, "{stale}");
    }
}
