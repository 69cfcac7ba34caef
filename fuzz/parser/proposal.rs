//! Any bytes as a write proposal: accepted if serde accepts them and the rules for files hold, and only then.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use parser::proposal::{Limits, parse};
use serde::Deserialize;

const LIMITS: Limits = Limits { file_bytes: 40, total_bytes: 60 };

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Schema {
    summary: String,
    writes: Vec<Write>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    path: String,
    base_sha256: String,
    content: String,
}

fuzz_target!(|bytes: &[u8]| {
    match (parse(bytes, &LIMITS), reference(bytes)) {
        (Ok(ours), Some(theirs)) => {
            assert_eq!(ours.summary, theirs.summary);
            assert_eq!(ours.writes.len(), theirs.writes.len());
            for (our, their) in ours.writes.iter().zip(&theirs.writes) {
                assert_eq!(our.path, their.path);
                assert_eq!(our.content, their.content);
            }
        }
        (Err(errors), None) => {
            assert!(
                errors
                    .iter()
                    .all(|error| error.span.start <= error.span.end && error.span.end <= bytes.len())
            );
            assert!(errors.for_model().len() < 10_000);
        }
        (ours, theirs) => panic!("{ours:?} but {theirs:?}"),
    }
});

fn reference(bytes: &[u8]) -> Option<Schema> {
    let schema: Schema = serde_json::from_slice(bytes).ok()?;
    // Serde takes lists for objects; a proposal does not.
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let objects = value.is_object() && value["writes"].as_array()?.iter().all(serde_json::Value::is_object);
    let mut paths = HashSet::new();
    let is_good = |write: &Write| {
        !write.path.is_empty() && !write.content.contains('\0') && write.content.len() <= LIMITS.file_bytes
    };
    let total: usize = schema.writes.iter().map(|write| write.content.len()).sum();
    let good = schema.writes.iter().all(|write| is_good(write) && paths.insert(write.path.clone()));
    (objects && good && total <= LIMITS.total_bytes && !schema.writes.is_empty()).then_some(schema)
}
