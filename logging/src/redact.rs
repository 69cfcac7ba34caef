//! Striking keys out of texts and of streams. Of a key at most the last two characters are shown (S1 §Safety).

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// In bytes. A shorter key is no secret: local servers take any word, and striking that out would ruin every log.
const SHORTEST_SECRET: usize = 8;

/// Replaces every known key, however it is spelled: plain, as a JSON string or one inside another, in percent signs, in base64.
///
/// Cheap to clone; without keys it passes text through untouched.
#[derive(Clone, Default)]
pub struct Redactor(Arc<Known>);

/// What is struck out, and the automaton that finds it: none where nothing is.
#[derive(Default)]
struct Known {
    spellings: Vec<Vec<u8>>,
    replacements: Vec<String>,
    automaton: Option<AhoCorasick>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The spellings are the keys: they are never printed.
        f.debug_struct("Redactor").field("spellings", &self.0.spellings.len()).finish_non_exhaustive()
    }
}

impl Redactor {
    /// A redactor for these keys. Keys of fewer than eight bytes are left alone.
    pub fn new<K: AsRef<str>>(keys: impl IntoIterator<Item = K>) -> Self {
        Self::default().with_only(keys)
    }

    /// A redactor for these keys and none of its own. Where they are the same, it is this one again, which takes no time to make.
    #[must_use]
    pub fn with_only<K: AsRef<str>>(&self, keys: impl IntoIterator<Item = K>) -> Self {
        let mut table: Vec<(Vec<u8>, String)> = Vec::new();
        for key in keys {
            let key = key.as_ref().trim();
            if key.len() >= SHORTEST_SECRET {
                table.extend(spellings(key));
            }
        }
        table.sort();
        table.dedup_by(|a, b| a.0 == b.0);
        let (spellings, replacements): (Vec<_>, Vec<_>) = table.into_iter().unzip();
        if self.0.spellings == spellings {
            return self.clone();
        }
        let automaton = automaton(&spellings);
        Self(Arc::new(Known { spellings, replacements, automaton }))
    }

    /// Whether `text` holds a key in any spelling.
    #[must_use]
    pub fn finds_key(&self, text: &(impl AsRef<[u8]> + ?Sized)) -> bool {
        self.0.automaton.as_ref().is_some_and(|automaton| automaton.is_match(text.as_ref()))
    }

    /// `text` without keys; borrowed when there was none.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.0.automaton {
            Some(automaton) if automaton.is_match(text) => {
                Cow::Owned(automaton.replace_all(text, &self.0.replacements))
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// The same for bytes that need not be UTF-8.
    #[must_use]
    fn redact_bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        match &self.0.automaton {
            Some(automaton) if automaton.is_match(bytes) => {
                Cow::Owned(automaton.replace_all_bytes(bytes, &self.0.replacements))
            }
            _ => Cow::Borrowed(bytes),
        }
    }

    /// A writer that redacts a stream, also where a key is split over two writes.
    pub fn writer<W: io::Write>(&self, inner: W) -> RedactWriter<W> {
        RedactWriter { redactor: self.clone(), held: Vec::new(), inner }
    }

    /// How many bytes at the end of `bytes` could be the beginning of a key that goes on in the next chunk.
    fn undecided(&self, bytes: &[u8]) -> usize {
        let longest = self.0.spellings.iter().map(Vec::len).max().unwrap_or(0);
        bytes.len().min(longest.saturating_sub(1))
    }
}

/// See [`Redactor::writer`]. Holds back what may be the beginning of a key, no more than twice the longest spelling of one. What is
/// held back when it is dropped without [`finish`](Self::finish) is lost.
#[derive(Debug)]
pub struct RedactWriter<W: io::Write> {
    redactor: Redactor,
    held: Vec<u8>,
    inner: W,
}

/// Of what is written at once, so many bytes are held at a time, however many there are.
const TAKEN_AT_ONCE: usize = 64 << 10;

impl<W: io::Write> RedactWriter<W> {
    /// Writes what was held back, flushes, and gives the inner writer back.
    pub fn finish(mut self) -> io::Result<W> {
        let held = std::mem::take(&mut self.held);
        self.inner.write_all(&self.redactor.redact_bytes(&held))?;
        self.inner.flush()?;
        Ok(self.inner)
    }

    /// Writes all of `held` that nothing which follows can make part of a key.
    fn settle(&mut self) -> io::Result<()> {
        let mut safe = self.held.len() - self.redactor.undecided(&self.held);
        if let Some(automaton) = &self.redactor.0.automaton {
            // A match that reaches into the undecided end is kept whole: it may grow.
            if let Some(across) = automaton.find_iter(&self.held).find(|m| m.start() < safe && m.end() > safe)
            {
                safe = across.start();
            }
        }
        let rest = self.held.split_off(safe);
        let settled = std::mem::replace(&mut self.held, rest);
        self.inner.write_all(&self.redactor.redact_bytes(&settled))
    }
}

impl<W: io::Write> io::Write for RedactWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.get(..TAKEN_AT_ONCE).unwrap_or(bytes);
        self.held.extend_from_slice(taken);
        self.settle()?;
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Leftmost-longest: of two keys where one begins with the other, the longer is struck out whole.
fn automaton(spellings: &[Vec<u8>]) -> Option<AhoCorasick> {
    let automaton = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        // Made for every run, and keys are rare in what it reads: quick to make counts, and candidates are found without it.
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(spellings);
    automaton.ok().filter(|_| !spellings.is_empty())
}

/// Every spelling of one key, each with what stands in its place.
fn spellings(key: &str) -> Vec<(Vec<u8>, String)> {
    let shown = format!("[key …{}]", last_two(key));
    let mut table = vec![(key.as_bytes().to_vec(), shown.clone())];
    // A model may write the key into JSON, and its service writes that into JSON again.
    let once = json_escaped(key);
    let twice = json_escaped(&once);
    table.extend([once, twice].map(|escaped| (escaped.into_bytes(), shown.clone())));
    table.push((percent_encoded(key).into_bytes(), shown));
    for offset in 0..3 {
        table.extend(base64_cores(key, offset).map(|core| (core, "[key in base64]".to_owned())));
    }
    table
}

/// As it stands between the quotes of a JSON string.
fn json_escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or_default().to_owned()
}

fn last_two(key: &str) -> String {
    let tail: Vec<char> = key.chars().rev().take(2).collect();
    tail.into_iter().rev().collect()
}

fn percent_encoded(key: &str) -> String {
    key.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// The letters that base64 gives to `key` when `offset` (0 to 2) foreign bytes stand before it in its group of three:
/// only letters that no neighbour can change.
fn base64_cores(key: &str, offset: usize) -> impl Iterator<Item = Vec<u8>> {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(key.as_bytes());
    let first = (offset * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)]
        .into_iter()
        .filter_map(move |encoded| encoded.as_bytes().get(first..last).map(<[u8]>::to_vec))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "AIzaSy-not-a-real-key-42";

    #[test]
    fn only_the_last_two_characters_stay() {
        let redactor = Redactor::new([KEY]);
        assert_eq!(redactor.redact(&format!("x-goog-api-key: {KEY}\n")), "x-goog-api-key: [key …42]\n");
        assert!(redactor.finds_key(KEY));
        assert!(!redactor.finds_key("AIzaSy-not-a-real-key-4"));
    }

    #[test]
    fn json_percent_and_base64_spellings_are_found() {
        let key = "se\"cret/key+with=all";
        let redactor = Redactor::new([key]);
        let in_json = serde_json::json!({ "k": key }).to_string();
        assert!(redactor.finds_key(&in_json));
        assert!(redactor.finds_key(&serde_json::json!({ "text": in_json }).to_string()));
        assert!(redactor.finds_key("?key=se%22cret%2Fkey%2Bwith%3Dall"));
        for before in ["", "a", "ab", "abc"] {
            let encoded = STANDARD_NO_PAD.encode(format!("{before}{key}, and more"));
            assert!(redactor.finds_key(&encoded), "{encoded}");
        }
    }

    #[test]
    fn the_longer_of_two_keys_leaves_no_tail() {
        let redactor = Redactor::new(["sk-abc-12345", "sk-abc-12345-def99"]);
        assert_eq!(redactor.redact("sk-abc-12345-def99"), "[key …99]");
    }

    #[test]
    fn a_word_that_is_too_short_for_a_key_is_left_alone() {
        assert_eq!(Redactor::new(["ollama"]).redact("ollama is up"), "ollama is up");
    }

    #[test]
    fn debug_does_not_show_the_key() {
        assert!(!format!("{:?}", Redactor::new([KEY])).contains("AIza"));
    }

    #[test]
    fn other_keys_take_the_place_of_those_before() {
        let first = Redactor::new([KEY]);
        let other = first.with_only(["another-key-43"]);
        assert_eq!((other.finds_key(KEY), other.finds_key("another-key-43")), (false, true));
        assert!(Arc::ptr_eq(&first.0, &first.with_only([KEY]).0));
    }

    proptest! {
        #[test]
        fn a_stream_split_anywhere_is_redacted_like_the_whole(
            before in "[a-zA-Z-]{0,40}", between in "[A-Iz-]{0,30}", cuts in prop::collection::vec(0usize..200, 0..8),
        ) {
            let redactor = Redactor::new([KEY, "AIzaSy-not-a-real-key-42-longer"]);
            let whole = format!("{before}{KEY}{between}{KEY}-longer{before}{KEY}");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (whole.len() + 1)).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let mut writer = redactor.writer(Vec::new());
            for pair in cuts.windows(2) {
                writer.write_all(&whole.as_bytes()[pair[0]..pair[1]]).unwrap();
            }
            let streamed = String::from_utf8(writer.finish().unwrap()).unwrap();
            prop_assert_eq!(streamed, redactor.redact(&whole).into_owned());
        }
    }
}
