//! Which lines of a file one change has made, decided by content alone: a rebase keeps that, and later edits keep
//! most of it.

use std::collections::{HashMap, HashSet};

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// One change of one file, whose result is known.
#[derive(Debug)]
pub(super) struct Change {
    /// The content before it, if it is the first change of its run.
    only_before: Option<Vec<u8>>,
    after: Vec<u8>,
    /// The lines of `after` that came with it.
    is_new: Vec<bool>,
    /// Their text: what holds none of it holds nothing of the change.
    texts: HashSet<Vec<u8>>,
}

impl Change {
    /// The change from `before` to `after`. What `first`, the content before the whole run, holds already is not the
    /// run's own, even if one of its rounds removed it and another brought it back.
    pub(super) fn new(first: &[u8], before: &[u8], after: Vec<u8>) -> Self {
        let lines = lines(&after);
        let mut is_new = vec![true; lines.len()];
        for old in [first, before] {
            matched(&self::lines(old), &lines)
                .into_values()
                .for_each(|at| set(&mut is_new, at, false));
        }
        let texts = lines
            .iter()
            .zip(&is_new)
            .filter(|(_, is_new)| **is_new)
            .map(|(text, _)| text.to_vec());
        let texts = texts.collect();
        let only_before = (first == before).then(|| first.to_vec());
        Self {
            only_before,
            after,
            is_new,
            texts,
        }
    }

    /// Which lines of `now` it has made. `now` is the file as one commit has it, `parent` as the commit before has
    /// it, and `asked` the lines that came with that commit.
    pub(super) fn made(&self, now: &[u8], parent: &[u8], asked: &[usize]) -> HashSet<usize> {
        let lines = lines(now);
        let is_like_it = |at: &usize| {
            lines
                .get(*at)
                .is_some_and(|text| self.texts.contains(*text))
        };
        if !asked.iter().any(is_like_it) {
            return HashSet::new();
        }
        if now == self.after {
            // Nothing else happened. Where the same line stands twice, git may take another one for the new one.
            if self.only_before.as_deref() == Some(parent) {
                return asked.iter().copied().collect();
            }
            return asked
                .iter()
                .copied()
                .filter(|at| self.is_new.get(*at) == Some(&true))
                .collect();
        }
        let after = self::lines(&self.after);
        // A line of the change that was committed before is another one with the same text.
        let known: HashSet<usize> = matched(&self::lines(parent), &after)
            .into_values()
            .collect();
        let places = matched(&lines, &after);
        let is_made = |at: &usize| {
            places.get(at).is_some_and(|place| {
                self.is_new.get(*place) == Some(&true) && !known.contains(place)
            })
        };
        asked.iter().copied().filter(is_made).collect()
    }
}

fn set(flags: &mut [bool], at: usize, value: bool) {
    flags.get_mut(at).into_iter().for_each(|flag| *flag = value);
}

/// The lines without their ends, which git may have converted.
pub(super) fn lines(text: &[u8]) -> Vec<&[u8]> {
    let whole = text.strip_suffix(b"\n").unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
    whole
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect()
}

/// The lines of `old` that `new` has as well, in the same order, each with its place there.
fn matched(old: &[&[u8]], new: &[&[u8]]) -> HashMap<usize, usize> {
    let places = |operation| {
        let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = operation
        else {
            return (0..0).zip(0..0);
        };
        (old_index..old_index + len).zip(new_index..new_index + len)
    };
    capture_diff_slices(Algorithm::Myers, old, new)
        .into_iter()
        .flat_map(places)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of `now` that the change has made, where each but those of `parent` came with one commit.
    #[track_caller]
    fn check(change: [&str; 3], now: &str, parent: &str, made: &[usize]) {
        let [first, before, after] = change.map(|words| words.replace(' ', "\n"));
        let change = Change::new(first.as_bytes(), before.as_bytes(), after.into_bytes());
        let [now, parent] = [now, parent].map(|words| words.replace(' ', "\n"));
        let came = |at: &usize| {
            !matched(&lines(parent.as_bytes()), &lines(now.as_bytes()))
                .values()
                .any(|to| to == at)
        };
        let asked: Vec<usize> = (0..lines(now.as_bytes()).len()).filter(came).collect();
        let mut found: Vec<usize> = change
            .made(now.as_bytes(), parent.as_bytes(), &asked)
            .into_iter()
            .collect();
        found.sort_unstable();
        assert_eq!(found, made, "{now:?}");
    }

    #[test]
    fn the_lines_of_a_change_are_its_own_where_it_is_committed_as_it_was() {
        check(
            ["a b c", "a b c", "a X b Y c"],
            "a X b Y c",
            "a b c",
            &[1, 3],
        );
        check(["", "", "X Y"], "X Y", "", &[0, 1]);
    }

    #[test]
    fn what_a_person_wrote_before_or_after_is_not_made_by_it() {
        check(["a mine", "a mine", "a mine X"], "a mine X", "a", &[2]);
        check(["a b", "a b", "a X b Y"], "a X later b", "a b", &[1]);
        check(["a b", "a b", "a X b"], "other a X b", "b", &[2]);
    }

    #[test]
    fn the_same_text_in_a_later_commit_is_another_line() {
        check(["a b", "a b", "a } b"], "a } b }", "a } b", &[]);
    }

    #[test]
    fn a_line_that_was_taken_out_and_put_back_within_a_run_is_not_new() {
        check(["a b", "a", "a b"], "a b", "a", &[]);
    }

    #[test]
    fn line_ends_that_git_converts_do_not_count() {
        let change = Change::new(b"a\r\n", b"a\r\n", b"a\r\nX\r\n".to_vec());
        assert_eq!(change.made(b"a\nX\n", b"a\n", &[1]), HashSet::from([1]));
    }
}
