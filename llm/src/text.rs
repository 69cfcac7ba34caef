//! Text that arrives in pieces, which may be cut inside of a character.

use std::fmt;
use std::ops::Deref;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::CallError;

/// A JSON string as `serde_json` decodes it to bytes: a half of a surrogate pair has three, and bytes that are not UTF-8
/// stay as they are. An array of parts is the `text` of all of them; null is nothing.
#[derive(Debug, Default)]
pub struct Fragment(Vec<u8>);

impl Fragment {
    /// Adds what follows it.
    pub fn extend(&mut self, more: Self) {
        if self.0.is_empty() {
            *self = more;
        } else {
            self.0.extend(more.0);
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Fragment {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl<'de> Deserialize<'de> for Fragment {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_option(FragmentVisitor)
    }
}

struct FragmentVisitor;

impl<'de> Visitor<'de> for FragmentVisitor {
    type Value = Fragment;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_none<E>(self) -> Result<Fragment, E> {
        Ok(Fragment::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Fragment, D::Error> {
        from.deserialize_bytes(self)
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Fragment, E> {
        Ok(Fragment(bytes.to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Fragment, A::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Part {
            text: Fragment,
        }
        let mut whole = Fragment::default();
        while let Some(part) = parts.next_element::<Part>()? {
            whole.extend(part.text);
        }
        Ok(whole)
    }
}

/// Whole characters, and what of the next one has arrived.
#[derive(Debug, Default)]
pub struct Text {
    whole: String,
    /// The first bytes of a character, or the first half of a surrogate pair.
    rest: Vec<u8>,
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.whole
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self {
            whole: text.to_owned(),
            rest: Vec::new(),
        }
    }
}

impl Text {
    /// Appends a fragment; an error if it has bytes that continue no character.
    pub fn push(&mut self, fragment: Fragment) -> Result<(), CallError> {
        let mut bytes = Fragment(std::mem::take(&mut self.rest));
        bytes.extend(fragment);
        match String::from_utf8(bytes.0) {
            // A large answer is one fragment, which becomes the text without a copy.
            Ok(text) if self.whole.is_empty() => self.whole = text,
            Ok(text) => self.whole.push_str(&text),
            Err(error) => self.push_bytes(error.as_bytes())?,
        }
        Ok(())
    }

    fn push_bytes(&mut self, mut bytes: &[u8]) -> Result<(), CallError> {
        while let Some(chunk) = bytes.utf8_chunks().next() {
            self.whole.push_str(chunk.valid());
            bytes = bytes.get(chunk.valid().len()..).unwrap_or_default();
            match bytes {
                [0xed, high @ 0xa0..=0xaf, end, after @ ..] => match after {
                    [0xed, low @ 0xb0..=0xbf, last, after @ ..] => {
                        let pair = [unit(*high, *end), unit(*low, *last)];
                        self.whole.extend(char::decode_utf16(pair).flatten());
                        bytes = after;
                    }
                    [] => return self.keep(bytes),
                    _ => {
                        self.whole.push(char::REPLACEMENT_CHARACTER);
                        bytes = after;
                    }
                },
                [0xed, 0xb0..=0xbf, _, after @ ..] => {
                    self.whole.push(char::REPLACEMENT_CHARACTER);
                    bytes = after;
                }
                _ => return self.keep(bytes),
            }
        }
        Ok(())
    }

    /// Keeps the beginning of a character for the next fragment.
    fn keep(&mut self, bytes: &[u8]) -> Result<(), CallError> {
        let begins_a_pair = bytes.len() == 3 && bytes.first() == Some(&0xed);
        let is_cut = std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none());
        if !bytes.is_empty() && !begins_a_pair && !is_cut {
            return Err(CallError::BadReply {
                detail: "content that is not text".into(),
            });
        }
        self.rest = bytes.to_vec();
        Ok(())
    }

    /// Takes back what follows the first `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.whole.truncate(length);
    }

    /// Nothing follows: a half that stays alone is no character.
    pub fn end(&mut self) {
        if self.rest.first() == Some(&0xed) {
            self.whole.push(char::REPLACEMENT_CHARACTER);
        }
        self.rest.clear();
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.whole
    }
}

/// The UTF-16 unit of the last two of its three bytes.
fn unit(middle: u8, last: u8) -> u16 {
    0xd000 | u16::from(middle & 0x3f) << 6 | u16::from(last & 0x3f)
}
