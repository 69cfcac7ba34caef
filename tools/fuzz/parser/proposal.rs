//! Any bytes as a write proposal: accepted if serde accepts them and the rules for files hold, and only then.
#![no_main]

use std::collections::HashSet;

use code_commit_parser::edit;
use code_commit_parser::proposal::{Change, Edit, Limits, parse};
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;

const LIMITS: Limits = Limits {
    file_bytes: 40,
    total_bytes: 60,
};

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
    #[serde(default, deserialize_with = "given")]
    content: Option<String>,
    #[serde(default, deserialize_with = "given")]
    edits: Option<Vec<Lines>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    search: String,
    replace: String,
}

/// An explicit null is refused; only a missing key means none.
fn given<'d, T: Deserialize<'d>, D: serde::Deserializer<'d>>(
    value: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

impl Write {
    fn texts(&self) -> impl Iterator<Item = &String> {
        let edits = self
            .edits
            .iter()
            .flatten()
            .flat_map(|edit| [&edit.search, &edit.replace]);
        self.content.iter().chain(edits)
    }

    fn bytes(&self) -> usize {
        self.texts().map(String::len).sum()
    }

    fn is_good(&self) -> bool {
        let is_change = match (&self.content, &self.edits) {
            (Some(_), None) => true,
            (None, Some(edits)) => {
                !edits.is_empty() && edits.iter().all(|edit| !edit.search.is_empty())
            }
            _ => false,
        };
        let is_text = self.texts().all(|text| !text.contains('\0'));
        is_change && is_text && !self.path.is_empty() && self.bytes() <= LIMITS.file_bytes
    }
}

fuzz_target!(|bytes: &[u8]| {
    match (parse(bytes, &LIMITS), reference(bytes)) {
        (Ok(ours), Some(theirs)) => {
            assert_eq!(ours.summary, theirs.summary);
            assert_eq!(ours.writes.len(), theirs.writes.len());
            for (our, their) in ours.writes.iter().zip(&theirs.writes) {
                assert_eq!(our.path, their.path);
                assert_eq!(our.base_sha256, their.base_sha256);
                match &our.change {
                    Change::Content(content) => {
                        assert_eq!(Some(&**content), their.content.as_deref())
                    }
                    Change::Edits(edits) => {
                        check_edits(edits, their.edits.as_deref().unwrap_or_default())
                    }
                }
            }
        }
        (Err(faults), None) => {
            assert!(!faults.is_empty());
            assert!(faults.iter().all(|fault| fault.to_string().len() < 10_000));
        }
        (ours, theirs) => panic!("{ours:?} but {theirs:?}"),
    }
});

/// They are those that were given, and fit any text or nothing of it.
fn check_edits(ours: &[Edit], theirs: &[Lines]) {
    let texts = theirs.iter().map(|edit| (&*edit.search, &*edit.replace));
    assert!(
        ours.iter()
            .map(|edit| (&*edit.search, &*edit.replace))
            .eq(texts)
    );
    let old: String = theirs.iter().map(|edit| &*edit.search).collect();
    let _ = edit::apply(&old, ours.iter().map(Edit::hunk));
}

fn reference(bytes: &[u8]) -> Option<Schema> {
    let schema: Schema = serde_json::from_slice(bytes).ok()?;
    // Serde takes lists for objects; a proposal does not.
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let are_objects = |list: &serde_json::Value| {
        list.as_array()
            .is_some_and(|items| items.iter().all(serde_json::Value::is_object))
    };
    let writes = &value["writes"];
    let objects = value.is_object()
        && are_objects(writes)
        && writes
            .as_array()?
            .iter()
            .filter_map(|write| write.get("edits"))
            .all(are_objects);
    let mut paths = HashSet::new();
    let total: usize = schema.writes.iter().map(Write::bytes).sum();
    let good = schema
        .writes
        .iter()
        .all(|write| write.is_good() && paths.insert(write.path.clone()));
    (objects && good && total <= LIMITS.total_bytes && !schema.writes.is_empty()).then_some(schema)
}
