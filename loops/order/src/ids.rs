//! Hashes and ids that depend only on the inputs: no clock, no random numbers (S2 §5).

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The hash of everything but order and tree:
/// `{model}|{temperature}|{max_attempts}|{timeout_seconds}`.
///
/// The model is hashed as the user named it. The temperature is written as the shortest decimal
/// that represents it, without an exponent: `0`, `0.7`, `1`.
pub fn config_hash(
    model: &str,
    temperature: f64,
    max_attempts: u32,
    timeout_seconds: u64,
) -> String {
    sha256_hex(format!("{model}|{temperature}|{max_attempts}|{timeout_seconds}").as_bytes())
}

/// The first 12 hex digits of the hash of the three concatenated hashes.
pub fn run_id(work_order_hash: &str, tree_hash_before: &str, config_hash: &str) -> String {
    let mut id = sha256_hex(format!("{work_order_hash}{tree_hash_before}{config_hash}").as_bytes());
    id.truncate(12);
    id
}

/// The hash of an order as canonical JSON.
pub(crate) fn order_hash(fields: &BTreeMap<String, Value>) -> String {
    let members: Vec<String> = fields
        .iter()
        .map(|(key, value)| member(key, value))
        .collect();
    sha256_hex(format!("{{{}}}", members.join(",")).as_bytes())
}

/// Keys sorted, no white space, UTF-8.
fn canonical(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            // `serde_json` sorts them or not, depending on a feature that any crate of a build can
            // change.
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            let members: Vec<String> = sorted
                .into_iter()
                .map(|(key, value)| member(key, value))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn member(key: &str, value: &Value) -> String {
    format!("{}:{}", Value::from(key), canonical(value))
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_is_sorted_and_has_no_white_space() {
        let value: Value =
            serde_json::from_str(r#"{"b": [1, {"z": null, "a": "ü\n\u0001"}], "a": 0.5}"#).unwrap();
        assert_eq!(
            canonical(&value),
            "{\"a\":0.5,\"b\":[1,{\"a\":\"ü\\n\\u0001\",\"z\":null}]}"
        );
    }

    /// The expected values were computed with Python's `hashlib` and, for the order,
    /// `json.dumps(order, sort_keys=True, separators=(",", ":"), ensure_ascii=False)`.
    #[test]
    fn ids_are_those_that_another_program_makes_of_the_same_inputs() {
        let order = r#"{"title": "Tü\n", "id": "1", "intent": "i", "allowed_files": ["b", "a"],
            "notes": {"z": null, "a": [1, 0.5, true]}}"#;
        assert_eq!(
            order_hash(&serde_json::from_str(order).unwrap()),
            "5b01af50292a147a6658aeb6894979ec086915158ca00af56282d3de8962c273"
        );
        let configs = [
            (
                ("gpt-test", 0.0, 2, 600),
                "b91edb23e1ca74f279c59f6dcc216b885eb6311eadc14b712c716a0eff95477b",
            ),
            (
                ("gpt-test", 0.7, 2, 600),
                "14544b05dbb5fd663beacc995e5a23d1070718dd39ca59b48d2417c1b049cc14",
            ),
            (
                ("m", 1.0, 1, 1),
                "52d3bf8d99965ec644165ba11b77baa6c6b384dae62ffa6616730205ebc9ad41",
            ),
        ];
        for ((model, temperature, attempts, seconds), hash) in configs {
            assert_eq!(config_hash(model, temperature, attempts, seconds), hash);
        }
        assert_eq!(
            run_id(&"a".repeat(64), &"b".repeat(64), &"c".repeat(64)),
            "b20dd8bdd812"
        );
    }
}
