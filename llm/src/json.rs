//! JSON in and out. What is not text is limited by its size in memory: as a tree, `{},{},{}` takes forty times its bytes.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::CallError;

/// `value` as the bytes of a request.
pub fn body(value: &impl Serialize) -> Result<Vec<u8>, CallError> {
    serde_json::to_vec(value).map_err(|e| CallError::Setup { source: e.into() })
}

/// An answer without its byte order mark. All of it must be UTF-8, because skipped parts are logged, too.
pub(crate) fn text(body: &[u8]) -> Result<&[u8], CallError> {
    match std::str::from_utf8(body) {
        Ok(text) => Ok(text.trim_start_matches('\u{feff}').as_bytes()),
        Err(error) if error.error_len().is_none() => Err(CallError::StreamCut { received: 0 }),
        Err(error) => Err(CallError::BadReply {
            detail: format!("not UTF-8 from byte {} on", error.valid_up_to()),
        }),
    }
}

/// Reads an object. Serde would also accept an array: `[]` as an object without fields.
///
/// If it breaks off, that is a [`CallError::StreamCut`]: if a body ends with the connection, nothing else shows that it
/// was cut off. Whoever knows how many bytes have arrived adds their number.
pub fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, CallError> {
    if json.trim_ascii_start().starts_with(b"[") {
        return Err(CallError::BadReply {
            detail: "an array in place of an object".into(),
        });
    }
    serde_json::from_slice(json).map_err(|error| {
        if error.is_eof() {
            return CallError::StreamCut { received: 0 };
        }
        // The original message may quote the response.
        CallError::BadReply {
            detail: format!(
                "not the JSON expected, line {} column {}",
                error.line(),
                error.column()
            ),
        }
    })
}

/// The maximum length of a value other than the text. Longer ones are skipped, unless they are
/// strings.
const LONGEST_ASIDE: usize = 64 << 10;

/// A value other than the text, or null if it is too long. It is kept as received, so that unknown values cannot fail to
/// parse.
#[derive(Debug, Default)]
pub struct Aside(pub Value);

impl<'de> Deserialize<'de> for Aside {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(
            bounded(<&RawValue>::deserialize(from)?).unwrap_or_default(),
        ))
    }
}

impl Deref for Aside {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

/// For `deserialize_with`: like [`Aside`], but an error that is too long still counts as one.
pub fn error<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    let too_long = || "an error that is too long to be read".into();
    Ok(bounded(<&RawValue>::deserialize(from)?).unwrap_or_else(too_long))
}

fn bounded(raw: &RawValue) -> Option<Value> {
    let fits = raw.get().len() <= LONGEST_ASIDE || raw.get().starts_with('"');
    // Half a surrogate pair is well-formed JSON but not text.
    fits.then(|| serde_json::from_str(raw.get()).unwrap_or_default())
}

/// For `deserialize_with`: an array that is handed on element by element; null is an empty one.
pub fn each<'de, D: Deserializer<'de>, T: Deserialize<'de>, All: Default + Extend<T>>(
    from: D,
) -> Result<All, D::Error> {
    from.deserialize_option(Each(PhantomData))
}

struct Each<T, All>(PhantomData<(T, All)>);

impl<'de, T: Deserialize<'de>, All: Default + Extend<T>> Visitor<'de> for Each<T, All> {
    type Value = All;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or null")
    }

    fn visit_none<E>(self) -> Result<All, E> {
        Ok(All::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<All, D::Error> {
        from.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<All, A::Error> {
        let mut all = All::default();
        while let Some(element) = elements.next_element()? {
            all.extend([element]);
        }
        Ok(all)
    }
}

/// The first element of an array, for [`each`]: only one answer is asked for.
#[derive(Debug)]
pub struct First<T>(pub Option<T>);

impl<T> Default for First<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Extend<T> for First<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        self.0 = self.0.take().or(elements.into_iter().next());
    }
}

/// A string that is not empty. Some gateways fill what is not known yet, such as how an answer ended, with an empty one.
pub(crate) fn word(value: Option<&Value>) -> Option<String> {
    let word = value?.as_str().filter(|word| !word.is_empty())?;
    Some(word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Beside {
        #[serde(deserialize_with = "each")]
        first: First<u8>,
        aside: Aside,
        #[serde(deserialize_with = "error")]
        error: Value,
    }

    #[test]
    fn beside_the_text_nothing_large_is_kept() {
        let many = format!("[1{}]", ",{}".repeat(LONGEST_ASIDE));
        let json = format!(r#"{{"first":[1,2],"aside":{many},"error":{many}}}"#);
        let beside: Beside = object(json.as_bytes()).unwrap();
        assert_eq!((beside.first.0, beside.aside.0), (Some(1), Value::Null));
        assert_eq!(beside.error, "an error that is too long to be read");
        let small: Beside = object(br#"{"first":null,"aside":{"a":[]},"error":null}"#).unwrap();
        assert_eq!(
            (small.first.0, small.aside.0.to_string(), small.error),
            (None, r#"{"a":[]}"#.into(), Value::Null)
        );
        let none: Beside = object(br#"{"first":[]}"#).unwrap();
        assert_eq!(none.first.0, None);
    }
}
