//! Text that arrives in pieces, which may be cut inside of a character.

use std::ops::Deref;

/// Whole characters, and what of the next one has arrived.
#[derive(Debug, Default)]
pub struct Text {
    whole: String,
    /// The first half of a surrogate pair.
    half: Option<u16>,
    /// The first bytes of a character in UTF-8.
    bytes: Vec<u8>,
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.whole
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self {
            whole: text,
            ..Self::default()
        }
    }
}

impl Text {
    /// Makes room for this many more bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.whole.reserve(bytes);
    }

    /// Appends text; `None` if it follows the first bytes of a character.
    pub fn push_str(&mut self, text: &str) -> Option<()> {
        if text.is_empty() {
            return Some(());
        }
        self.end_half();
        self.whole.push_str(text);
        self.bytes.is_empty().then_some(())
    }

    /// Appends half of a surrogate pair. [`Frames`](crate::sse::Frames) writes bytes that are not UTF-8 as second halves.
    /// `None` if such a byte does not continue a character.
    pub fn push_half(&mut self, half: u16) -> Option<()> {
        if let Some(first) = self.half.take_if(|_| half >= 0xdc00) {
            self.whole
                .extend(char::decode_utf16([first, half]).flatten());
            return Some(());
        }
        self.end_half();
        match half {
            0xdc80..=0xdcff => return self.push_byte(half.to_be_bytes()[1]),
            0xdc00.. => self.whole.push(char::REPLACEMENT_CHARACTER),
            _ => self.half = Some(half),
        }
        self.bytes.is_empty().then_some(())
    }

    fn push_byte(&mut self, byte: u8) -> Option<()> {
        self.bytes.push(byte);
        match std::str::from_utf8(&self.bytes) {
            Ok(character) => {
                self.whole.push_str(character);
                self.bytes.clear();
                Some(())
            }
            Err(error) => error.error_len().is_none().then_some(()),
        }
    }

    /// A half that stays alone is no character.
    fn end_half(&mut self) {
        if self.half.take().is_some() {
            self.whole.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Takes back what follows the first `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.whole.truncate(length);
    }

    /// The whole text.
    #[must_use]
    pub fn end(mut self) -> String {
        self.end_half();
        self.whole
    }
}
