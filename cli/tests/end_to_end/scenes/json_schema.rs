//! What of a JSON value does not fit a JSON schema: as many words of the language as the published schemas have. A word that is not known
//! here ends the test, since it would not be checked.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use regex::Regex;
use serde_json::{Value, json};

/// Words that ask for nothing.
const SILENT: [&str; 8] = [
    "$schema",
    "$id",
    "$defs",
    "title",
    "description",
    "$comment",
    "format",
    "default",
];

/// A published schema and the file that it is in, from which its references lead.
pub struct Published {
    file: PathBuf,
    root: &'static Value,
}

/// What was made once stays: every line of every run is held against the same few schemas.
struct Kept<T: 'static>(Mutex<BTreeMap<String, &'static T>>);

impl<T> Kept<T> {
    const fn empty() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    fn get(&self, name: &str, make: impl FnOnce(&str) -> T) -> &'static T {
        let mut kept = self.0.lock().unwrap();
        kept.entry(name.to_owned())
            .or_insert_with_key(|name| Box::leak(Box::new(make(name))))
    }
}

static SCHEMAS: Kept<Value> = Kept::empty();
static PATTERNS: Kept<Regex> = Kept::empty();

impl Published {
    /// `events.schema.json` below `docs/schemas`.
    pub fn read(name: &str) -> Self {
        Self::at(
            &Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../docs/schemas")
                .join(name),
        )
    }

    /// A schema that somebody else has published.
    pub fn at(file: &Path) -> Self {
        let root = SCHEMAS.get(file.to_str().unwrap(), |file| {
            let text =
                std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
            serde_json::from_str(&text).unwrap()
        });
        Self {
            file: file.to_owned(),
            root,
        }
    }

    /// What is wrong with the value, each with its place.
    pub fn faults(&self, value: &Value) -> Vec<String> {
        self.faults_by(value, self.root, "value")
            .iter()
            .map(Fault::to_string)
            .collect()
    }

    /// What is wrong with the value by one of the schema's definitions.
    pub fn faults_of(&self, definition: &str, value: &Value) -> Vec<String> {
        let rule = &self.root["$defs"][definition];
        self.faults_by(value, rule, definition)
            .iter()
            .map(Fault::to_string)
            .collect()
    }

    fn faults_by<'v>(&self, value: &'v Value, rule: &'static Value, place: &str) -> Vec<Fault<'v>> {
        let words = rule.as_object().unwrap().iter();
        words
            .flat_map(|(word, wanted)| match word.as_str() {
                "$ref" => self.faults_at(value, wanted.as_str().unwrap(), place),
                "oneOf" | "anyOf" => self.faults_of_choice(value, word, wanted, place),
                "properties" | "items" => self.faults_inside(value, word, wanted, place),
                _ if holds(value, rule, word, wanted) => Vec::new(),
                _ => vec![Fault {
                    place: place.to_owned(),
                    word,
                    wanted,
                    kinds: Vec::new(),
                    value,
                }],
            })
            .collect()
    }

    /// By a rule of this file (`#/$defs/x`) or of one beside it (`../events.schema.json#/$defs/x`).
    fn faults_at<'v>(&self, value: &'v Value, reference: &str, place: &str) -> Vec<Fault<'v>> {
        let (file, pointer) = reference.split_once('#').unwrap();
        let other;
        let schema = if file.is_empty() {
            self
        } else {
            other = Self::at(&self.file.with_file_name(file));
            &other
        };
        let rule = schema
            .root
            .pointer(pointer)
            .unwrap_or_else(|| panic!("{reference} is nowhere"));
        schema.faults_by(value, rule, place)
    }

    fn faults_of_choice<'v>(
        &self,
        value: &'v Value,
        word: &'static str,
        wanted: &'static Value,
        place: &str,
    ) -> Vec<Fault<'v>> {
        let kinds: Vec<_> = wanted
            .as_array()
            .unwrap()
            .iter()
            .map(|kind| self.faults_by(value, kind, place))
            .collect();
        let fitting = kinds.iter().filter(|faults| faults.is_empty()).count();
        if fitting == 1 || (word == "anyOf" && fitting > 1) {
            Vec::new()
        } else {
            vec![Fault {
                place: place.to_owned(),
                word,
                wanted,
                kinds,
                value,
            }]
        }
    }

    fn faults_inside<'v>(
        &self,
        value: &'v Value,
        word: &str,
        wanted: &'static Value,
        place: &str,
    ) -> Vec<Fault<'v>> {
        if word == "items" {
            let items = value.as_array().into_iter().flatten();
            return items
                .flat_map(|item| self.faults_by(item, wanted, &format!("{place}[]")))
                .collect();
        }
        let keys = wanted.as_object().unwrap().iter();
        let present = keys.filter_map(|(key, rule)| Some((key, rule, value.get(key)?)));
        present
            .flat_map(|(key, rule, value)| self.faults_by(value, rule, &format!("{place}.{key}")))
            .collect()
    }
}

/// What does not fit. It is told only where it counts: a value of a megabyte that fits one of five kinds does not fit four.
struct Fault<'v> {
    place: String,
    word: &'static str,
    wanted: &'static Value,
    /// Of a choice, what does not fit of each kind.
    kinds: Vec<Vec<Fault<'v>>>,
    value: &'v Value,
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            word,
            wanted,
            kinds,
            value,
        } = self;
        if kinds.is_empty() {
            return write!(f, "{place}: {word} should be {wanted}: {value}");
        }
        let fitting = kinds.iter().filter(|faults| faults.is_empty()).count();
        let told: Vec<String> = kinds.iter().flatten().map(Self::to_string).collect();
        write!(f, "{place}: fits {fitting} kinds ({told:?}): {value}")
    }
}

/// The words that ask for something of the value itself.
fn holds(value: &Value, rule: &Value, word: &str, wanted: &Value) -> bool {
    let list = wanted.as_array().map_or(&[][..], Vec::as_slice);
    let items = || value.as_array().map(Vec::len);
    let size = || usize::try_from(wanted.as_u64().unwrap()).unwrap();
    match word {
        "type" if list.is_empty() => is_a(value, wanted.as_str().unwrap()),
        "type" => list.iter().any(|kind| is_a(value, kind.as_str().unwrap())),
        "const" => value == wanted,
        "enum" => list.contains(value),
        "minimum" => value
            .as_f64()
            .is_none_or(|number| number >= wanted.as_f64().unwrap()),
        "maximum" => value
            .as_f64()
            .is_none_or(|number| number <= wanted.as_f64().unwrap()),
        "minItems" => items().is_none_or(|count| count >= size()),
        "maxItems" => items().is_none_or(|count| count <= size()),
        "uniqueItems" => value
            .as_array()
            .is_none_or(|all| (1..all.len()).all(|at| !all[..at].contains(&all[at]))),
        "minLength" => value
            .as_str()
            .is_none_or(|text| text.chars().count() >= size()),
        "maxLength" => value
            .as_str()
            .is_none_or(|text| text.chars().count() <= size()),
        "pattern" => {
            let pattern = PATTERNS.get(wanted.as_str().unwrap(), |pattern| {
                Regex::new(pattern).unwrap()
            });
            value.as_str().is_none_or(|text| pattern.is_match(text))
        }
        "required" => value.as_object().is_none_or(|object| {
            list.iter()
                .all(|key| object.contains_key(key.as_str().unwrap()))
        }),
        "additionalProperties" if *wanted == json!(true) => true,
        "additionalProperties" => {
            assert_eq!(wanted, &json!(false));
            value.as_object().is_none_or(|object| {
                object
                    .keys()
                    .all(|key| rule["properties"].get(key).is_some())
            })
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
