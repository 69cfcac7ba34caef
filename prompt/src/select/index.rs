//! The words of texts by the ids of their blobs, so that a choice counts only what was not counted before.
//!
//! An index is a sequence of segments. Each is complete in itself: its words, each with the blobs that have it, and its
//! blobs. A segment is read and then forgotten, so that memory is bounded by its size, and what is new is appended.
//!
//! A choice is the same with an index as without one: whether a word of a query is found depends only on the letters,
//! digits and underscores around it.

use std::collections::HashMap;
use std::mem::discriminant;

use serde::{Deserialize, Serialize};

use super::given::{Counted, Counts};
use super::words::Words;
use crate::rollup::{LeftOut, dashes_of, noise};

/// Pairs of a word and a blob after which a segment is full: some 20 MB while it is made.
const MOST_PAIRS: usize = 1_000_000;
/// What a content may be left out for, whatever its path is. Which secret it contains is not kept.
const LEFT_OUT: [LeftOut; 4] = [
    LeftOut::Binary,
    LeftOut::Minified,
    LeftOut::Generated,
    LeftOut::HoldsSecret(""),
];

/// The contents of all segments, counted for the words of one query.
#[derive(Debug, Default)]
pub struct Index {
    known: HashMap<Vec<u8>, Result<Counted, LeftOut>>,
}

/// A segment that is being made.
#[derive(Debug, Default)]
pub struct Segment {
    words: HashMap<Vec<u8>, Vec<(u32, u32)>>,
    blobs: Vec<(Vec<u8>, Blob)>,
    pairs: usize,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Blob {
    /// Its place in [`LEFT_OUT`].
    left_out: Option<u8>,
    bytes: u32,
    dashes: u32,
}

#[derive(Serialize, Deserialize)]
struct Stored<'s> {
    /// One a line.
    words: &'s str,
    /// For each word, the blobs that have it, by place, and how often.
    #[serde(borrow)]
    places: Vec<&'s [u8]>,
    #[serde(borrow)]
    blobs: Vec<(&'s [u8], Blob)>,
}

impl Index {
    /// Adds the contents of a segment. `None` if the bytes are not a segment.
    pub fn add(&mut self, segment: &[u8], words: &Words) -> Option<()> {
        let stored: Stored<'_> = postcard::from_bytes(segment).ok()?;
        let mut counts: Vec<Counts> = vec![Counts::new(); stored.blobs.len()];
        for (line, found) in words.count_in_lines(stored.words) {
            let places: Vec<(u32, u32)> = postcard::from_bytes(stored.places.get(line)?).ok()?;
            for (blob, times) in places {
                let counts = counts.get_mut(usize::try_from(blob).ok()?)?;
                let found = found.iter();
                counts.extend(found.map(|(word, count)| (*word, count.saturating_mul(times))));
            }
        }
        for ((id, blob), mut words) in stored.blobs.into_iter().zip(counts) {
            words.sort_unstable_by_key(|(word, _)| *word);
            words.dedup_by(|more, sum| {
                let is_same = more.0 == sum.0;
                sum.1 = sum.1.saturating_add(if is_same { more.1 } else { 0 });
                is_same
            });
            let known = match blob.left_out {
                Some(why) => Err(*LEFT_OUT.get(usize::from(why))?),
                None => Ok(Counted {
                    bytes: usize::try_from(blob.bytes).ok()?,
                    dashes: usize::try_from(blob.dashes).ok()?,
                    words,
                }),
            };
            self.known.insert(id.to_vec(), known);
        }
        Some(())
    }

    /// What is known of the content of a blob, or why no model should see it.
    #[must_use]
    pub fn known(&self, id: &[u8]) -> Option<&Result<Counted, LeftOut>> {
        self.known.get(id)
    }

    /// The number of contents.
    #[must_use]
    pub fn blobs(&self) -> usize {
        self.known.len()
    }
}

impl Segment {
    /// Adds the content of a blob, as [`text_of`](crate::rollup::text_of) gives it.
    pub fn add(&mut self, id: &[u8], text: Result<&str, LeftOut>) {
        let text = text.and_then(|text| noise("", text).map_or(Ok(text), Err));
        let place_of = |why| {
            let is_same = |one: &LeftOut| discriminant(one) == discriminant(&why);
            u8::try_from(LEFT_OUT.iter().position(is_same)?).ok()
        };
        let left_out = text.err().and_then(place_of);
        let text = text.unwrap_or_default();
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let blob = Blob {
            left_out,
            bytes: short(text.len()),
            dashes: short(dashes_of([text])),
        };
        let place = short(self.blobs.len());
        self.blobs.push((id.to_vec(), blob));
        let words = text.as_bytes().split(|byte| is_between(*byte));
        for word in words.filter(|word| !word.iter().all(u8::is_ascii_digit)) {
            let places = match self.words.get_mut(word) {
                Some(places) => places,
                None => self.words.entry(word.to_owned()).or_default(),
            };
            match places.last_mut() {
                Some((last, count)) if *last == place => *count += 1,
                Some(_) | None => {
                    places.push((place, 1));
                    self.pairs += 1;
                }
            }
        }
    }

    /// Whether it is time for the next one.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.pairs >= MOST_PAIRS
    }

    /// The bytes that [`Index::add`] takes.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        let mut words = Vec::new();
        let mut places: Vec<Vec<u8>> = Vec::new();
        for (word, of_word) in self.words {
            words.extend([&*word, b"\n"].concat());
            places.push(postcard::to_stdvec(&of_word).unwrap_or_default());
        }
        let blobs = self.blobs.iter().map(|(id, blob)| (id.as_slice(), *blob));
        let stored = Stored {
            words: std::str::from_utf8(&words).unwrap_or_default(),
            places: places.iter().map(Vec::as_slice).collect(),
            blobs: blobs.collect(),
        };
        postcard::to_stdvec(&stored).unwrap_or_default()
    }
}

/// Whether the byte separates words. Bytes of characters outside ASCII never do.
fn is_between(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric() && byte != b'_'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Counted, Index, LeftOut, Segment, Words};

    fn index(texts: &[&str], query: &str) -> Option<Index> {
        let mut segment = Segment::default();
        for text in texts {
            segment.add(text.as_bytes(), Ok(text));
        }
        let mut index = Index::default();
        index.add(&segment.finish(), &Words::of(query))?;
        Some(index)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn an_index_counts_what_the_text_itself_has(
            texts in prop::collection::vec("((parse|Parser|read|HTTP|lines?|1_000|größe|[a-z]|[A-Z]|[0-9])(_|-| |\n|))*", 1..5),
            query in "((parsing|read_line|HTTPProxy|größen|1_000|line) ){1,5}",
        ) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let (index, words) = (index(&texts, &query).unwrap(), Words::of(&query));
            for text in texts {
                prop_assert_eq!(index.known(text.as_bytes()), Some(&Ok(Counted::of(text, &words))));
            }
        }

        #[test]
        fn what_is_no_segment_is_refused_or_read_without_panic(cut in 0_usize..200, at in 0_usize..200, byte: u8) {
            let mut segment = Segment::default();
            segment.add(b"1", Ok("fn read_line() {}\n"));
            let mut bytes = segment.finish();
            let _ = Index::default().add(&bytes[..cut.min(bytes.len())], &Words::of("read"));
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = Index::default().add(&bytes, &Words::of("read"));
        }
    }

    #[test]
    fn contents_that_no_model_should_see_are_known() {
        let mut segment = Segment::default();
        segment.add(b"1", Err(LeftOut::Binary));
        segment.add(b"2", Ok("// @generated\nfn read() {}\n"));
        segment.add(b"3", Err(LeftOut::HoldsSecret("a key")));
        let mut index = Index::default();
        index.add(&segment.finish(), &Words::of("read")).unwrap();
        let known: Vec<_> = [b"1", b"2", b"3", b"4"]
            .map(|id| index.known(id).cloned())
            .into();
        let expected = [
            LeftOut::Binary,
            LeftOut::Generated,
            LeftOut::HoldsSecret(""),
        ];
        assert_eq!(
            known,
            [expected.map(|why| Some(Err(why))).as_slice(), &[None]].concat()
        );
        assert_eq!(index.add(b"\x05abc", &Words::of("read")), None);
    }
}
