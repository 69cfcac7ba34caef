//! Reads an object field by field, to report all mistakes at once, each with its field.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Some editors write it at the start of a file; it is invisible.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What is wrong with one field of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// `allowed_files[2]`, `intent`; empty for the whole document.
    pub field: String,
    /// What is wrong, as a lower-case fragment; for the whole document, with its subject.
    pub message: String,
}

impl FieldProblem {
    /// Of this field; of the order as a whole if that is empty.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.message),
            field => write!(f, "{field}: {}", self.message),
        }
    }
}

/// The valid entries of a list, each with its index.
pub(crate) type Numbered<T> = Vec<(usize, T)>;

/// The fields of an object that are still unread, and the problems of those that were read.
pub(crate) struct Fields {
    values: BTreeMap<String, Value>,
    pub(crate) problems: Vec<FieldProblem>,
}

impl Fields {
    pub(crate) fn of(json: &[u8]) -> Result<Self, FieldProblem> {
        if json.starts_with(BYTE_ORDER_MARK) {
            return Err(FieldProblem::new(
                "",
                "the order begins with a byte order mark; JSON has none",
            ));
        }
        let Unique(values) = serde_json::from_slice(json).map_err(|error| {
            let form = if error.is_data() {
                ""
            } else {
                "; an order is one JSON object"
            };
            FieldProblem::new("", format!("the order cannot be read: {error}{form}"))
        })?;
        Ok(Self {
            values,
            problems: Vec::new(),
        })
    }

    pub(crate) fn values(&self) -> &BTreeMap<String, Value> {
        &self.values
    }

    pub(crate) fn text(&mut self, field: &str) -> String {
        match self.values.remove(field) {
            Some(Value::String(text)) => text,
            found => {
                self.wrong_or_missing(field, found.as_ref(), "a string");
                String::new()
            }
        }
    }

    /// A string; `None` if the field is missing or null.
    pub(crate) fn optional_text(&mut self, field: &str) -> Option<String> {
        let Value::String(text) = self.optional(field)? else {
            self.wrong(field, "a string or null");
            return None;
        };
        Some(text)
    }

    /// A list of strings. Other entries are reported and left out.
    pub(crate) fn texts(&mut self, field: &str) -> Numbered<String> {
        let value = self.values.remove(field);
        self.list(field, value)
    }

    /// The value of a field; `None` if it is missing or null.
    pub(crate) fn optional(&mut self, field: &str) -> Option<Value> {
        self.values.remove(field).filter(|value| !value.is_null())
    }

    /// Reports the remaining fields, which are not part of the schema.
    pub(crate) fn finish(mut self) -> Vec<FieldProblem> {
        let unknown = self
            .values
            .keys()
            .map(|field| FieldProblem::new(field, "is not a field of a work order"));
        self.problems.extend(unknown);
        self.problems
    }

    pub(crate) fn wrong(&mut self, field: &str, wanted: &str) {
        self.problems
            .push(FieldProblem::new(field, format!("must be {wanted}")));
    }

    fn wrong_or_missing(&mut self, field: &str, found: Option<&Value>, wanted: &str) {
        match found {
            Some(_) => self.wrong(field, wanted),
            None => self.problems.push(FieldProblem::new(field, "is missing")),
        }
    }

    fn list(&mut self, field: &str, value: Option<Value>) -> Numbered<String> {
        let Some(Value::Array(items)) = value else {
            self.wrong_or_missing(field, value.as_ref(), "a list of strings");
            return Vec::new();
        };
        let mut texts = Vec::with_capacity(items.len());
        for (at, item) in items.into_iter().enumerate() {
            if let Value::String(text) = item {
                texts.push((at, text));
            } else {
                self.wrong(&format!("{field}[{at}]"), "a string");
            }
        }
        texts
    }
}

/// An object without duplicate keys.
struct Unique(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Unique;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
                let mut values = BTreeMap::new();
                while let Some((key, Inner(value))) = map.next_entry()? {
                    if values.contains_key(&key) {
                        return Err(A::Error::custom(format!("the field `{key}` appears twice")));
                    }
                    values.insert(key, value);
                }
                Ok(Unique(values))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

/// A value that contains no object with duplicate keys.
struct Inner(Value);

impl<'de> Deserialize<'de> for Inner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any JSON value")
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
                let mut values = Vec::new();
                while let Some(Inner(value)) = list.next_element()? {
                    values.push(value);
                }
                Ok(values.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
                let Unique(values) = Unique::deserialize(MapAccessDeserializer::new(map))?;
                Ok(values.into_iter().collect())
            }
        }
        deserializer.deserialize_any(Any).map(Inner)
    }
}
