//! JSON in and out; large strings are decoded once.
//!
//! A reply of 100 MB is one JSON string. `serde_json` decodes such a string into a scratch buffer
//! and copies it out, so three copies exist at once; here it is decoded from the received bytes
//! directly into the text.
//!
//! Values other than the text are limited by their size in memory: as a tree, `{},{},{}` takes
//! forty times its bytes.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::{DeserializeSeed, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{CallError, Text, Unread};

/// `value` as the bytes of a request.
pub fn body(value: &impl Serialize) -> Result<Vec<u8>, CallError> {
    serde_json::to_vec(value).map_err(|e| CallError::Setup { source: e.into() })
}

/// The response as text, without a byte order mark. All of it must be UTF-8, because skipped parts
/// are logged, too.
pub fn text(body: &[u8]) -> Result<&str, Unread> {
    let text = std::str::from_utf8(body).map(|text| text.strip_prefix('\u{feff}').unwrap_or(text));
    text.map_err(|e| match e.error_len() {
        None => Unread::BrokenOff,
        Some(_) => {
            let detail = format!("not UTF-8 from byte {} on", e.valid_up_to());
            CallError::BadReply { detail }.into()
        }
    })
}

/// Reads a message, which must be an object. Serde would also accept an array: `[]` as a message
/// without fields.
pub fn message<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Unread> {
    if json.trim_start().starts_with('[') {
        return Err(CallError::BadReply {
            detail: "an array in place of an object".into(),
        }
        .into());
    }
    serde_json::from_str(json).map_err(|error| unreadable(&error))
}

/// Reads an answer other than a reply, which has to be whole: nobody waits for more of it.
pub fn whole<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, CallError> {
    serde_json::from_slice(body).map_err(|error| unreadable(&error).after(body.len() as u64))
}

/// Why a response is not valid JSON: it broke off, or it is something else.
pub fn unreadable(error: &serde_json::Error) -> Unread {
    if error.is_eof() {
        Unread::BrokenOff
    } else {
        something_else(error).into()
    }
}

fn something_else(error: &serde_json::Error) -> CallError {
    // The original message may quote the response.
    let detail = format!(
        "not the JSON expected, line {} column {}",
        error.line(),
        error.column()
    );
    CallError::BadReply { detail }
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

/// For `deserialize_with`: the first element of an array; the others are skipped. `None` for null
/// and for an empty array.
pub fn first<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    from.deserialize_option(First(PhantomData))
}

struct First<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for First<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or null")
    }

    fn visit_none<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Option<T>, D::Error> {
        from.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Option<T>, A::Error> {
        let first = elements.next_element()?;
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first)
    }
}

/// Replaces `old` by `new` unless `new` is null: if the events of a stream repeat a value, the last
/// one counts.
pub fn replace(old: &mut Aside, new: Aside) {
    if !new.is_null() {
        *old = new;
    }
}

/// A string that is not empty. Some gateways fill what is not known yet, such as how an answer ended, with an empty one.
pub fn word(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
}

/// Calls `take` with each element of a JSON array; null counts as empty.
pub fn each<'a, T: Deserialize<'a>>(
    array: &'a RawValue,
    take: impl FnMut(T) -> Result<(), CallError>,
) -> Result<(), CallError> {
    if array.get() == "null" {
        return Ok(());
    }
    let mut elements = Each {
        take,
        failed: None,
        element: PhantomData,
    };
    (&mut elements)
        .deserialize(array)
        .map_err(|error| something_else(&error))?;
    elements.failed.map_or(Ok(()), Err)
}

struct Each<T, F> {
    take: F,
    failed: Option<CallError>,
    element: PhantomData<T>,
}

impl<'a, T: Deserialize<'a>, F: FnMut(T) -> Result<(), CallError>> DeserializeSeed<'a>
    for &mut Each<T, F>
{
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'a, T: Deserialize<'a>, F: FnMut(T) -> Result<(), CallError>> Visitor<'a> for &mut Each<T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            if self.failed.is_none() {
                self.failed = (self.take)(element).err();
            }
        }
        Ok(())
    }
}

/// Appends the text of a JSON string to `text`; nothing for null and for nothing.
pub fn append(raw: Option<&RawValue>, text: &mut Text) -> Result<(), CallError> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else {
        return Ok(());
    };
    append_string(raw, text).ok_or_else(|| CallError::BadReply {
        detail: "content that is no text".into(),
    })
}

/// Appends the text of a JSON string to `text`. `None` if `raw` is not a string, or contains bytes that are no character.
fn append_string(raw: &RawValue, text: &mut Text) -> Option<()> {
    let mut rest = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    text.reserve(rest.len());
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, escape) = rest.split_at_checked(at)?;
        text.push_str(plain)?;
        let (unit, length) = decode(escape)?;
        match char::from_u32(unit.into()) {
            Some(character) => text.push_str(character.encode_utf8(&mut [0; 4]))?,
            None => text.push_half(unit)?,
        }
        rest = escape.get(length..)?;
    }
    text.push_str(rest)
}

/// The UTF-16 code unit that `escape` stands for, and the length of the escape in bytes.
fn decode(escape: &str) -> Option<(u16, usize)> {
    let plain = |c: char| Some((u16::try_from(c).ok()?, 2));
    match *escape.as_bytes().get(1)? {
        b'"' => plain('"'),
        b'\\' => plain('\\'),
        b'/' => plain('/'),
        b'b' => plain('\u{8}'),
        b'f' => plain('\u{c}'),
        b'n' => plain('\n'),
        b'r' => plain('\r'),
        b't' => plain('\t'),
        b'u' => Some((u16::from_str_radix(escape.get(2..6)?, 16).ok()?, 6)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn decoded(json: &str) -> Option<String> {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        let mut text = Text::default();
        append_string(raw, &mut text).map(|()| text.end())
    }

    #[test]
    fn every_escape_is_decoded() {
        assert_eq!(
            decoded(r#""a\"\\\/\b\f\n\r\té\u00e9\ud83d\ude00z""#).unwrap(),
            "a\"\\/\u{8}\u{c}\n\r\téé😀z"
        );
        assert_eq!(decoded(r#""""#).unwrap(), "");
    }

    #[test]
    fn what_is_no_text_is_not_made_one() {
        assert_eq!(decoded("12"), None);
        assert_eq!(decoded("null"), None);
        assert_eq!(decoded(r#""\udcff""#), None);
        assert_eq!(decoded(r#""\udcc3z""#), None);
    }

    #[test]
    fn half_of_a_pair_that_stays_alone_is_replaced() {
        assert_eq!(decoded(r#""\ud83d""#).unwrap(), "\u{fffd}");
        assert_eq!(decoded(r#""\ud83d\u0041""#).unwrap(), "\u{fffd}A");
        assert_eq!(decoded(r#""\ude00""#).unwrap(), "\u{fffd}");
    }

    #[derive(Debug, Deserialize)]
    struct Beside {
        #[serde(default, deserialize_with = "first")]
        first: Option<u8>,
        #[serde(default)]
        aside: Aside,
        #[serde(default, deserialize_with = "error")]
        error: Value,
    }

    #[test]
    fn beside_the_text_nothing_large_is_kept() {
        let many = format!("[1{}]", ",{}".repeat(LONGEST_ASIDE));
        let json = format!(r#"{{"first":{many},"aside":{many},"error":{many}}}"#);
        let beside: Beside = serde_json::from_str(&json).unwrap();
        assert_eq!((beside.first, beside.aside.0), (Some(1), Value::Null));
        assert_eq!(beside.error, "an error that is too long to be read");
        let small: Beside =
            serde_json::from_str(r#"{"first":null,"aside":{"a":[]},"error":null}"#).unwrap();
        assert_eq!(
            (small.first, small.aside.0.to_string(), small.error),
            (None, r#"{"a":[]}"#.into(), Value::Null)
        );
        let none: Beside = serde_json::from_str(r#"{"first":[]}"#).unwrap();
        assert_eq!(none.first, None);
    }

    #[test]
    fn the_elements_of_an_array_are_handed_on_one_by_one() {
        let check = |json: &str| {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            let mut sum = 0;
            let told = each(raw, |number: u64| {
                sum += number;
                if number > 3 {
                    Err(CallError::BadReply {
                        detail: "more than three".into(),
                    })
                } else {
                    Ok(())
                }
            });
            told.map(|()| sum).map_err(|error| error.to_string())
        };
        assert_eq!(check("[1, 2]"), Ok(3));
        assert_eq!(check("null"), Ok(0));
        assert_eq!(
            check("[4, 9]").unwrap_err(),
            "the reply cannot be read: more than three"
        );
        assert!(check("{}").is_err() && check("[\"x\"]").is_err());
    }

    proptest! {
        #[test]
        fn it_decodes_as_serde_json_does(text in "\\PC*|[\\x00-\\x7f]*") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(decoded(&json).unwrap(), text);
        }
    }
}
