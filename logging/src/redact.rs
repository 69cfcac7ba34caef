//! Redacts keys in texts and streams. At most a key's last two characters are shown (S1 §Safety).

mod spellings;
mod tokens;
mod view;
mod writer;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

pub use writer::RedactWriter;

use spellings::spellings;
use view::{Rest, View};

/// In bytes. A shorter key is not a secret: local servers accept any word, and redacting that would
/// ruin every log.
const SHORTEST_SECRET: usize = 8;
/// Texts are searched in pieces of this many bytes.
const PIECE: usize = 64 << 10;
/// A key that line breaks or escape sequences stretch over more bytes than this is not found: a
/// stream would have to be held back as far.
const LONGEST_STRETCH: usize = 16 << 10;
/// This many nested layers of escapes are decoded.
const LAYERS: usize = 3;

/// Replaces every known key in any spelling: plain, in hex, in base64 once or twice, in JSON, URL
/// or HTML escapes, nested or not, and broken by line ends, escape sequences or invisible
/// characters.
///
/// Cheap to clone; without keys, text passes through unchanged.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<Known>,
    /// Whether tokens of well-known services are redacted as well.
    tokens: bool,
}

/// What to redact, and the automaton that finds it; no automaton if there is nothing to find.
#[derive(Default)]
struct Known {
    spellings: Vec<Vec<u8>>,
    replacements: Vec<String>,
    automaton: Option<AhoCorasick>,
    /// For each pair of bytes, whether a spelling begins with it: a quick test that hardly ever
    /// succeeds.
    pairs: BTreeSet<[u8; 2]>,
    longest: usize,
}

impl Known {
    /// Whether a spelling begins with `start` and is longer.
    fn begins_with(&self, start: &[u8]) -> bool {
        // Sorted, so spellings with the same beginning are adjacent.
        let from = self
            .spellings
            .partition_point(|spelling| spelling.as_slice() <= start);
        self.spellings
            .get(from)
            .is_some_and(|spelling| spelling.starts_with(start))
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The spellings contain the keys, so they are never printed.
        f.debug_struct("Redactor")
            .field("spellings", &self.known.spellings.len())
            .finish_non_exhaustive()
    }
}

/// A key in a text: where it is, and the number of its replacement.
struct Found {
    at: Range<usize>,
    spelling: usize,
}

/// The result of searching a piece of text.
struct Searched {
    /// In order, without overlaps.
    found: Vec<Found>,
    /// Nothing that follows can make anything before this offset part of a key.
    settled: usize,
}

impl Redactor {
    /// A redactor for these keys. Keys of fewer than eight bytes are ignored.
    pub fn new<K: AsRef<str>>(keys: impl IntoIterator<Item = K>) -> Self {
        Self::default().with_only(keys)
    }

    /// A redactor for these keys only. Cheap if this redactor already has exactly these.
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
        if self.known.spellings == spellings {
            return self.clone();
        }
        let automaton = automaton(&spellings);
        let pairs = spellings
            .iter()
            .filter_map(|spelling| spelling.first_chunk().copied())
            .collect();
        let longest = spellings.iter().map(Vec::len).max().unwrap_or(0);
        let known = Known {
            spellings,
            replacements,
            automaton,
            pairs,
            longest,
        };
        Self {
            known: Arc::new(known),
            tokens: self.tokens,
        }
    }

    /// A redactor of the same keys that also redacts what looks like a token of a well-known service or a private key: for what commands print.
    #[must_use]
    pub fn with_tokens(&self) -> Self {
        Self {
            known: Arc::clone(&self.known),
            tokens: true,
        }
    }

    /// Whether `text` contains a key in any spelling.
    #[must_use]
    pub fn finds_key(&self, text: &(impl AsRef<[u8]> + ?Sized)) -> bool {
        let mut found = false;
        self.pieces(text.as_ref(), |_, searched| {
            found = !searched.found.is_empty();
            !found
        });
        found
    }

    /// `text` with its keys redacted; borrowed if there are none.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Like [`redact`](Self::redact), for bytes that may not be UTF-8.
    #[must_use]
    fn redact_bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        if !self.finds_key(bytes) {
            return self.redact_tokens(bytes);
        }
        let mut redacted = Vec::with_capacity(bytes.len());
        self.pieces(bytes, |piece, searched| {
            self.replace(piece, searched, &mut redacted);
            true
        });
        Cow::Owned(self.redact_tokens(&redacted).into_owned())
    }

    fn redact_tokens<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        if self.tokens {
            tokens::replace(text)
        } else {
            Cow::Borrowed(text)
        }
    }

    /// A writer that redacts a stream, even if a key is split across two writes.
    pub fn writer<W: io::Write>(&self, inner: W) -> RedactWriter<W> {
        RedactWriter::new(self.clone(), inner)
    }

    /// Searches a text piece by piece until `see` returns false.
    fn pieces(&self, text: &[u8], mut see: impl FnMut(&[u8], &Searched) -> bool) {
        let Some(automaton) = &self.known.automaton else {
            return;
        };
        let mut left = text;
        while !left.is_empty() {
            let (piece, rest) = match left.get(..PIECE) {
                Some(piece) if piece.len() < left.len() => (piece, Rest::MayFollow),
                _ => (left, Rest::None),
            };
            let searched = self.search(automaton, piece, rest);
            if !see(piece, &searched) {
                return;
            }
            left = left.get(searched.settled..).unwrap_or_default();
        }
    }

    fn search(&self, automaton: &AhoCorasick, piece: &[u8], rest: Rest) -> Searched {
        let mut found = Vec::new();
        let mut settled = piece.len();
        let mut see = |letters: &[u8], source: &dyn Fn(Range<usize>) -> Option<Range<usize>>| {
            let keys = automaton.find_iter(letters);
            found.extend(keys.filter_map(|key| {
                Some(Found {
                    at: source(key.range())?,
                    spelling: key.pattern().as_usize(),
                })
            }));
            let begun = self.begins_at(letters).and_then(|at| source(at..at + 1));
            settled = begun.map_or(settled, |at| at.start.min(settled));
        };
        see(piece, &Some);
        let hex = View::hex_digits(piece, rest);
        see(&hex.letters, &|letters| hex.source(&letters));
        let layers = layers(piece, rest);
        for depth in 0..layers.len() {
            let below = layers.get(..=depth).unwrap_or_default();
            let source = |letters| {
                below
                    .iter()
                    .rev()
                    .try_fold(letters, |letters, view| view.source(&letters))
            };
            see(below.last().map_or(&[][..], |view| &view.letters), &source);
        }
        let open = layers.iter().enumerate().filter_map(|(depth, view)| {
            let below = layers.get(..depth)?.iter().rev();
            let open = view.open?;
            below
                .clone()
                .try_fold(open..open + 1, |letters, view| view.source(&letters))
                .map(|at| at.start)
        });
        settled = open.chain(hex.open).fold(settled, usize::min);
        let found = apart(found);
        let settled = match rest {
            Rest::None => piece.len(),
            Rest::MayFollow => whole_keys(
                &found,
                settled.max(piece.len().saturating_sub(LONGEST_STRETCH)),
            ),
        };
        Searched { found, settled }
    }

    /// If the letters end with the beginning of a spelling, where that begins.
    fn begins_at(&self, letters: &[u8]) -> Option<usize> {
        let known = &self.known;
        let first = letters
            .len()
            .saturating_sub(known.longest.saturating_sub(1));
        (first..letters.len()).find(|start| {
            let end = letters.get(*start..).unwrap_or_default();
            let pair = end.first_chunk();
            pair.is_none_or(|pair| known.pairs.contains(pair)) && known.begins_with(end)
        })
    }

    /// Appends the settled part of a piece, redacted.
    fn replace(&self, piece: &[u8], searched: &Searched, redacted: &mut Vec<u8>) {
        let mut from = 0;
        for key in searched
            .found
            .iter()
            .filter(|key| key.at.end <= searched.settled)
        {
            redacted.extend_from_slice(piece.get(from..key.at.start).unwrap_or_default());
            redacted.extend(
                self.known
                    .replacements
                    .get(key.spelling)
                    .into_iter()
                    .flat_map(|shown| shown.bytes()),
            );
            from = key.at.end;
        }
        redacted.extend_from_slice(piece.get(from..searched.settled).unwrap_or_default());
    }
}

/// The views of a text, one per layer of escapes.
fn layers(text: &[u8], rest: Rest) -> Vec<View> {
    let mut layers = vec![View::decoded(text, rest)];
    while let Some(last) = layers.last().filter(|view| view.may_hold_escapes())
        && layers.len() < LAYERS
    {
        layers.push(View::decoded(&last.letters, rest));
    }
    layers
}

/// Merges what several views found: overlapping keys become one, shown as the longest of those that
/// begin first.
fn apart(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by_key(|key| (key.at.start, std::cmp::Reverse(key.at.end)));
    let mut apart: Vec<Found> = Vec::new();
    for key in found {
        match apart.last_mut() {
            Some(last) if key.at.start < last.at.end => last.at.end = last.at.end.max(key.at.end),
            _ => apart.push(key),
        }
    }
    apart
}

/// Holds back a key that reaches beyond `settled`, because it may grow; but not an endless row of
/// keys.
fn whole_keys(found: &[Found], settled: usize) -> usize {
    match found
        .iter()
        .find(|key| key.at.start < settled && key.at.end > settled)
    {
        Some(row) if row.at.len() > LONGEST_STRETCH => row.at.end,
        Some(key) => key.at.start,
        None => settled,
    }
}

/// Leftmost-longest: if one key begins with another, the longer one is redacted as a whole.
fn automaton(spellings: &[Vec<u8>]) -> Option<AhoCorasick> {
    let automaton = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        // Built for every run, and keys are rare in the input: fast to build matters more than fast
        // to match.
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(spellings);
    automaton.ok().filter(|_| !spellings.is_empty())
}

#[cfg(test)]
mod tests;
