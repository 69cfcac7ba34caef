//! A fast search for runs of three or more fence characters, and for the tags around thoughts.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;

use crate::fence::kind::{Kind, PLAIN};
use crate::fence::tag::{self, TAGS};

/// Searches for all four plain fences at once with vector instructions; `None` on machines without
/// them.
static FENCES: LazyLock<Option<Searcher>> =
    LazyLock::new(|| Searcher::new(Kind::ALL.map(Kind::fence)));

/// Searches for all fences and tags at once; `None` on machines without vector instructions.
static MARKS: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let tags = TAGS.as_flattened().iter().map(|&tag| tag.to_owned());
    Searcher::new(Kind::ALL.map(Kind::fence).into_iter().chain(tags))
});

/// The start of the first run of at least three equal sigils at or after `from`. `from` must not be
/// inside a run.
pub(crate) fn next_run(bytes: &[u8], from: usize) -> Option<usize> {
    next(bytes, from, &FENCES, |rest| {
        rest.get(..PLAIN).is_some_and(is_run)
    })
}

/// The start of the first run or tag at or after `from`. Slower than [`next_run`] where there is much text like `<th>`.
pub(crate) fn next_mark(bytes: &[u8], from: usize) -> Option<usize> {
    next(bytes, from, &MARKS, |rest| {
        rest.get(..PLAIN).is_some_and(is_run) || tag::at(rest).is_some()
    })
}

fn next(
    bytes: &[u8],
    from: usize,
    searcher: &LazyLock<Option<Searcher>>,
    is_there: impl Fn(&[u8]) -> bool,
) -> Option<usize> {
    // Marker lines with at most an empty line between them: setting up the search would cost more
    // than it saves.
    let near = from + usize::from(bytes.get(from) == Some(&b'\n'));
    if bytes.get(near..)?.get(..PLAIN).is_some_and(is_run) {
        return Some(near);
    }
    match searcher.as_ref() {
        Some(searcher) => searcher
            .find_in(bytes, (from..bytes.len()).into())
            .map(|found| found.start()),
        None => (from..bytes.len()).find(|&at| bytes.get(at..).is_some_and(&is_there)),
    }
}

fn is_run(bytes: &[u8]) -> bool {
    let is_of = |kind: Kind| bytes.iter().all(|&byte| char::from(byte) == kind.sigil());
    Kind::ALL.into_iter().any(is_of)
}

pub(crate) fn count_newlines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{TAGS, next_mark, next_run, tag};

    fn naive(bytes: &[u8], from: usize) -> Option<usize> {
        let is_run = |three: &[u8]| {
            b"^&%$".contains(&three[0]) && three.iter().all(|byte| *byte == three[0])
        };
        bytes[from..]
            .windows(3)
            .position(is_run)
            .map(|found| from + found)
    }

    fn all(bytes: &[u8], next: impl Fn(&[u8], usize) -> Option<usize>) -> Vec<usize> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(run) = next(bytes, at) {
            found.push(run);
            at = run
                + bytes[run..]
                    .iter()
                    .take_while(|byte| **byte == bytes[run])
                    .count();
        }
        found
    }

    #[test]
    fn a_run_at_any_place_is_found() {
        for sigil in [b'^', b'&', b'%', b'$'] {
            for place in 0..150 {
                let mut bytes = vec![b' '; 200];
                bytes[place..place + 3].fill(sigil);
                assert_eq!(all(&bytes, next_run), [place]);
                bytes[place] = b'\'';
                assert_eq!(all(&bytes, next_run), [] as [usize; 0]);
            }
        }
    }

    #[test]
    fn every_tag_is_found_and_told_from_the_others() {
        for [opening, end] in TAGS {
            for tag in [opening, end] {
                let text = format!("< [ </ {tag}>");
                let at = next_mark(text.as_bytes(), 0).unwrap();
                let (found, length) = tag::at(&text.as_bytes()[at..]).unwrap();
                assert_eq!((at, length, found.ends), (7, tag.len(), tag == end));
                assert_eq!(next_run(text.as_bytes(), 0), None);
            }
        }
    }

    proptest! {
        #[test]
        fn the_scan_finds_what_a_naive_search_finds(text in "[\\^&%$' x\n]{0,400}") {
            prop_assert_eq!(all(text.as_bytes(), next_run), all(text.as_bytes(), naive));
            prop_assert_eq!(all(text.as_bytes(), next_mark), all(text.as_bytes(), naive));
        }

        #[test]
        fn sparse_runs_are_found_too(text in "([ab]{0,90}[\\^&%$]{0,4}){0,9}") {
            prop_assert_eq!(all(text.as_bytes(), next_run), all(text.as_bytes(), naive));
        }
    }
}
