//! Where a run of three or more fence characters begins, at the speed of memory.

/// Bytes looked at in one step. The compiler turns a step of this size into vector instructions (the benchmark
/// shows it if it ever does not).
const WINDOW: usize = 64;

/// The start of the first run of at least three equal sigils at or after `from`, which must not lie inside a run.
///
/// A run of three covers two bytes that lie at an even distance from `from`, whichever way it falls. So the text is
/// read as pairs, and only a window in which a pair may be one of sigils is looked at closely.
pub(crate) fn next_run(bytes: &[u8], from: usize) -> Option<usize> {
    let (windows, tail) = bytes.get(from..)?.as_chunks::<WINDOW>();
    let mut skipped = 0;
    while let Some(suspect) = windows.get(skipped..)?.iter().position(may_hold_pair) {
        skipped += suspect;
        let begin = from + skipped * WINDOW;
        let found = run_within(bytes, from, begin, begin + WINDOW);
        if found.is_some() {
            return found;
        }
        skipped += 1;
    }
    run_within(bytes, from, bytes.len() - tail.len(), bytes.len())
}

/// Whether two bytes side by side may be equal sigils. It takes `$%&'` for one character, which saves half the work.
fn may_hold_pair(window: &[u8; WINDOW]) -> bool {
    let (pairs, _) = window.as_chunks::<2>();
    // A mask of 16 bits is what the vector instructions make of a comparison.
    let mask = |is_sigil| if is_sigil { u16::MAX } else { 0 };
    let mark = |pair: &[u8; 2]| {
        let pair = u16::from_ne_bytes(*pair);
        mask(pair == u16::from_ne_bytes(*b"^^")) | mask(pair & 0xFCFC == u16::from_ne_bytes(*b"$$"))
    };
    pairs.iter().fold(0, |found, pair| found | mark(pair)) != 0
}

/// The first run that has a pair between `begin` and `end`, and does not begin before `from`.
fn run_within(bytes: &[u8], from: usize, begin: usize, end: usize) -> Option<usize> {
    let (pairs, _) = bytes.get(begin..end)?.as_chunks::<2>();
    let at = |place: usize| bytes.get(place);
    pairs.iter().zip((begin..).step_by(2)).find_map(|(&[first, second], place)| {
        if first != second || !matches!(first, b'^' | b'&' | b'%' | b'$') {
            None
        } else if place > from && at(place - 1) == Some(&first) {
            Some(place - 1)
        } else {
            (at(place + 2) == Some(&first)).then_some(place)
        }
    })
}

/// The number of newlines in `bytes`.
pub(crate) fn count_newlines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::next_run;

    fn naive(bytes: &[u8], from: usize) -> Option<usize> {
        let is_run = |three: &[u8]| b"^&%$".contains(&three[0]) && three.iter().all(|byte| *byte == three[0]);
        bytes[from..].windows(3).position(is_run).map(|found| from + found)
    }

    fn all(bytes: &[u8], next: impl Fn(&[u8], usize) -> Option<usize>) -> Vec<usize> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(run) = next(bytes, at) {
            found.push(run);
            at = run + bytes[run..].iter().take_while(|byte| **byte == bytes[run]).count();
        }
        found
    }

    #[test]
    fn a_run_at_any_distance_from_a_window_is_found() {
        for sigil in [b'^', b'&', b'%', b'$'] {
            for place in 0..300 {
                let mut bytes = vec![b' '; 400];
                bytes[place..place + 3].fill(sigil);
                assert_eq!(all(&bytes, next_run), [place]);
                bytes[place] = b'\'';
                assert_eq!(all(&bytes, next_run), [] as [usize; 0]);
            }
        }
    }

    proptest! {
        #[test]
        fn the_scan_finds_what_a_naive_search_finds(text in "[\\^&%$' x\n]{0,400}") {
            prop_assert_eq!(all(text.as_bytes(), next_run), all(text.as_bytes(), naive));
        }

        #[test]
        fn sparse_runs_are_found_too(text in "([ab]{0,90}[\\^&%$]{0,4}){0,9}") {
            prop_assert_eq!(all(text.as_bytes(), next_run), all(text.as_bytes(), naive));
        }
    }
}
