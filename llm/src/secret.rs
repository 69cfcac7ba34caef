//! The key.

use std::fmt;

/// A key. Shows only its last two characters; cannot be serialized or compared.
#[derive(Clone, Default)]
pub struct Secret(String);

/// A shorter key is hidden completely: even two characters would reveal too much.
const SHOWN_FROM: usize = 8;

impl Secret {
    /// Creates a key from the content of its file or variable, without surrounding white space.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The key itself. Review every use.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces the key in `text` by its redacted form. A short key is not a secret, and would
    /// occur in ordinary words.
    pub(crate) fn hide_in(&self, text: &str) -> String {
        if self.0.len() < SHOWN_FROM {
            text.to_owned()
        } else {
            text.replace(&self.0, &self.to_string())
        }
    }

    /// Whether there is no key; local servers need none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.chars().count();
        let shown = if count < SHOWN_FROM { 0 } else { 2 };
        f.write_str("…")?;
        self.0
            .chars()
            .skip(count - shown)
            .try_for_each(|c| write!(f, "{c}"))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_two_characters_at_most() {
        let key = Secret::new("AIzaSyExample-ab\n");
        assert_eq!(format!("{key} {key:?}"), "…ab Secret(…ab)");
        assert_eq!(key.expose(), "AIzaSyExample-ab");
        assert_eq!(format!("{}", Secret::new("short")), "…");
        assert_eq!(format!("{}", Secret::new("")), "…");
        assert_eq!(key.hide_in("is AIzaSyExample-ab."), "is …ab.");
        assert_eq!(Secret::new("k").hide_in("key"), "key");
    }
}
