//! Hunks applied to the text that they were made for.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::HashSet;

use memchr::memmem;

use super::Hunk;
use super::loose::{Loose, Place};
use super::misfit::{Misfit, Rule, Why};
use crate::Span;
use crate::habits::LineEnds;
use crate::scan::count_newlines;

/// A text with its hunks applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    /// The new text.
    pub text: String,
    /// What had to be allowed for it, by the hunk counted from 1; empty if every hunk matched byte for byte.
    pub relaxed: Vec<(usize, Rule)>,
}

/// Replaces the lines of every hunk, or none: [`land`] without what had to be allowed for it.
pub fn apply<'h>(
    old: &str,
    hunks: impl IntoIterator<Item = Hunk<'h>>,
) -> Result<String, Vec<Misfit>> {
    land(old, hunks).map(|landed| landed.text)
}

/// Replaces the lines of every hunk, or none. Every hunk must match whole lines of `old` exactly once, byte for
/// byte or else by the fewest [`Rule`]s, and no two may overlap. All are matched against `old`, whatever their
/// order; if one is not there, each against what those before it have made. A hunk that is given twice counts once.
///
/// In a text whose lines all end in CRLF, hunks of LF lines match and are written with CRLF. A text without
/// a newline at its end stays without one.
pub fn land<'h>(
    old: &str,
    hunks: impl IntoIterator<Item = Hunk<'h>>,
) -> Result<Landed, Vec<Misfit>> {
    let mut known = HashSet::new();
    let hunks: Vec<(usize, Hunk<'h>)> = (1..)
        .zip(hunks)
        .filter(|(_, hunk)| known.insert(*hunk))
        .collect();
    land_at_once(old, &hunks).or_else(|misfits| {
        // What occurs twice has to be told apart by its hunk, not by the order.
        let is_ambiguous = misfits
            .iter()
            .any(|misfit| matches!(misfit.why, Why::Ambiguous(..)));
        let is_short = hunks.len() > 1 && hunks.len() <= MOST_IN_ORDER;
        let landed = if is_short && !is_ambiguous {
            land_in_order(old, &hunks)
        } else {
            None
        };
        landed.ok_or(misfits)
    })
}

/// More hunks are not applied one after the other: each reads the whole text.
const MOST_IN_ORDER: usize = 50;

/// Each hunk has its number.
fn land_in_order(old: &str, hunks: &[(usize, Hunk<'_>)]) -> Option<Landed> {
    let mut whole = Landed {
        text: old.to_owned(),
        relaxed: Vec::new(),
    };
    for hunk in hunks {
        let Landed { text, relaxed } = land_at_once(&whole.text, &[*hunk]).ok()?;
        whole.text = text;
        whole.relaxed.extend(relaxed);
        if hunk.0 > 1 {
            whole.relaxed.push((hunk.0, Rule::InOrder));
        }
    }
    Some(whole)
}

fn land_at_once(old: &str, hunks: &[(usize, Hunk<'_>)]) -> Result<Landed, Vec<Misfit>> {
    let is_crlf = LineEnds::of(old.as_bytes()) == Some(LineEnds::CrLf);
    let newline = if is_crlf { "\r\n" } else { "\n" };
    // With a line break around it, every match is one of whole lines.
    let lacks_newline = !old.is_empty() && !old.ends_with('\n');
    let text = ["\n", old, if lacks_newline { newline } else { "" }].concat();
    let loose = LazyCell::new(|| Loose::of(&text));
    let (mut found, mut misfits, mut relaxed) = (Vec::new(), Vec::new(), Vec::new());
    for &(hunk, Hunk { search, replace }) in hunks {
        let [search, replace] = [search, replace].map(|part| with_ends(part, is_crlf));
        match find(&text, &search) {
            Ok(start) => found.push(Found {
                span: start..start + search.len(),
                replace,
                hunk,
            }),
            Err(Why::Absent) => match loose.place(&search, &replace) {
                Ok(Place {
                    span,
                    replace,
                    rules,
                }) => {
                    found.push(Found {
                        span,
                        replace: Cow::Owned(replace),
                        hunk,
                    });
                    relaxed.extend(rules.into_iter().map(|rule| (hunk, rule)));
                }
                Err(why) => misfits.push(Misfit { hunk, why }),
            },
            Err(why) => misfits.push(Misfit { hunk, why }),
        }
    }
    found.sort_by_key(|one| (one.span.start, one.hunk));
    misfits.extend(overlaps(&found));
    if !misfits.is_empty() {
        misfits.sort_by_key(|misfit| misfit.hunk);
        return Err(misfits);
    }
    let mut new = splice(&text, &found);
    if lacks_newline && new.ends_with(newline) && reaches_end(&text, &found) {
        new.truncate(new.len() - newline.len());
    }
    Ok(Landed { text: new, relaxed })
}

/// Where a hunk matches.
struct Found<'h> {
    span: Span,
    replace: Cow<'h, str>,
    hunk: usize,
}

/// Every hunk that begins before an earlier one in the text has ended. The hunk that reaches furthest may
/// not be the neighbour.
fn overlaps(found: &[Found<'_>]) -> Vec<Misfit> {
    let (mut misfits, mut furthest) = (Vec::new(), None::<&Found<'_>>);
    for one in found {
        if let Some(other) = furthest.filter(|other| one.span.start < other.span.end) {
            let (first, second) = (one.hunk.min(other.hunk), one.hunk.max(other.hunk));
            misfits.push(Misfit {
                hunk: second,
                why: Why::Overlaps(first),
            });
        }
        furthest = furthest
            .filter(|other| one.span.end <= other.span.end)
            .or(Some(one));
    }
    misfits
}

/// The place of whole lines that occur exactly once.
fn find(text: &str, search: &str) -> Result<usize, Why> {
    let needle = ["\n", search].concat();
    let finder = memmem::Finder::new(&needle);
    let from = |start: usize| {
        let rest = text.as_bytes().get(start..).unwrap_or_default();
        finder.find(rest).map(|place| start + place)
    };
    let first = from(0).ok_or(Why::Absent)?;
    let line = |place: usize| count_newlines(text.as_bytes().get(..=place).unwrap_or_default());
    match from(first + 1) {
        Some(second) => Err(Why::Ambiguous(line(first), line(second))),
        None => Ok(first + 1),
    }
}

/// The lines as the text has them: each with its end, which is CRLF in a text of CRLF lines.
fn with_ends(part: &str, is_crlf: bool) -> Cow<'_, str> {
    let lacks_newline = !part.is_empty() && !part.ends_with('\n');
    let newline = if is_crlf { "\r\n" } else { "\n" };
    let converts = is_crlf && !part.contains("\r\n");
    if !lacks_newline && !converts {
        return Cow::Borrowed(part);
    }
    let lines = if converts {
        part.replace('\n', newline)
    } else {
        part.to_owned()
    };
    Cow::Owned(if lacks_newline {
        lines + newline
    } else {
        lines
    })
}

/// Without the line break that was put before the text.
fn splice(text: &str, found: &[Found<'_>]) -> String {
    let mut new = String::with_capacity(text.len());
    let mut at = 1;
    for Found { span, replace, .. } in found {
        new.push_str(text.get(at..span.start).unwrap_or_default());
        new.push_str(replace);
        at = span.end;
    }
    new.push_str(text.get(at..).unwrap_or_default());
    new
}

/// Whether the last line of the new text is one that had no newline, or stands for it.
fn reaches_end(text: &str, found: &[Found<'_>]) -> bool {
    found
        .last()
        .is_none_or(|last| last.span.end < text.len() || !last.replace.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(old: &str, hunks: &[(&str, &str)]) -> Result<String, Vec<Misfit>> {
        apply(
            old,
            hunks
                .iter()
                .map(|(search, replace)| Hunk { search, replace }),
        )
    }

    #[test]
    fn lines_are_replaced_added_and_removed() {
        let old = "one\ntwo\nthree\n";
        for (hunks, new) in [
            (&[("two\n", "2\n")][..], "one\n2\nthree\n"),
            (&[("one\n", "zero\none\n")], "zero\none\ntwo\nthree\n"),
            (&[("two\nthree\n", "")], "one\n"),
            (&[("three\n", "3\n"), ("one\n", "1\n")], "1\ntwo\n3\n"),
            (&[("one\n", ""), ("two\n", ""), ("three\n", "")], ""),
        ] {
            assert_eq!(applied(old, hunks).as_deref(), Ok(new), "{hunks:?}");
        }
    }

    #[test]
    fn only_whole_lines_match_and_only_once() {
        let misfit = |hunk, why| Err(vec![Misfit { hunk, why }]);
        assert_eq!(
            applied("let a = 1;\n", &[("a = 1;\n", "")]),
            misfit(1, Why::Absent)
        );
        assert_eq!(applied("ab\n", &[("a\n", "")]), misfit(1, Why::Absent));
        assert_eq!(applied("", &[("a\n", "")]), misfit(1, Why::Absent));
        assert_eq!(
            applied("x\na\na\n", &[("x\n", ""), ("a\n", "")]),
            misfit(2, Why::Ambiguous(2, 3))
        );
        assert_eq!(
            applied("a\na\na\n", &[("a\na\n", "")]),
            misfit(1, Why::Ambiguous(1, 2)),
            "overlapping"
        );
        assert_eq!(
            applied("a\nb\nc\n", &[("b\nc\n", ""), ("a\nb\n", "")]),
            misfit(2, Why::Overlaps(1))
        );
    }

    #[test]
    fn of_two_places_the_one_that_needs_fewer_rules_is_meant_and_signs_count_less_than_indentation()
    {
        for (old, new) in [
            ("  a - b\na - b\n", "  a - b\nc\n"),
            ("  a \u{2013} b\na - b\n", "  a \u{2013} b\nc\n"),
        ] {
            let hunks = [("a \u{2013} b\n", "c\n")];
            assert_eq!(applied(old, &hunks).as_deref(), Ok(new));
        }
    }

    #[test]
    fn blanks_behind_a_new_line_go_only_if_the_old_ones_have_some_that_the_file_has_not() {
        for (old, search, new) in [
            ("  a\n", "a\n", "  b  \n"),
            ("  a\n", "a  \n", "  b\n"),
            ("a \n", "a  \n", "b  \n"),
        ] {
            let hunks = [(search, "b  \n")];
            assert_eq!(applied(old, &hunks).as_deref(), Ok(new), "{search:?}");
        }
    }

    #[test]
    fn every_hunk_inside_a_longer_one_is_told() {
        let hunks = [
            ("a\nb\nc\nd\ne\n", ""),
            ("b\n", ""),
            ("d\n", ""),
            ("f\n", ""),
        ];
        let overlaps = |hunk| Misfit {
            hunk,
            why: Why::Overlaps(1),
        };
        assert_eq!(
            applied("a\nb\nc\nd\ne\nf\n", &hunks),
            Err(vec![overlaps(2), overlaps(3)])
        );
    }

    #[test]
    fn a_text_of_crlf_lines_keeps_them() {
        assert_eq!(
            applied("a\r\nb\r\n", &[("b\n", "c\nd\n")]).as_deref(),
            Ok("a\r\nc\r\nd\r\n")
        );
        assert_eq!(
            applied("a\r\nb\r\n", &[("b\r\n", "c\r\n")]).as_deref(),
            Ok("a\r\nc\r\n")
        );
        assert_eq!(
            applied("a\r\nb\r\nc", &[("c\n", "d\n")]).as_deref(),
            Ok("a\r\nb\r\nd")
        );
        assert_eq!(
            applied("a\r\nb\n", &[("a\n", "c\n")]).as_deref(),
            Ok("c\r\nb\n")
        );
        let mixed = applied("a\r\nb\n", &[("a\nb\n", "c\n")]);
        assert_eq!(
            mixed,
            Err(vec![Misfit {
                hunk: 1,
                why: Why::Absent
            }]),
            "mixed ends have no rule"
        );
    }

    #[test]
    fn the_last_line_of_a_hunk_is_whole_without_its_newline_too() {
        assert_eq!(
            applied("a\nb\n", &[("a", "c\nd")]).as_deref(),
            Ok("c\nd\nb\n")
        );
        assert_eq!(applied("a\nb\n", &[("a", "")]).as_deref(), Ok("b\n"));
        assert_eq!(applied("a\nb", &[("b", "c")]).as_deref(), Ok("a\nc"));
        assert_eq!(
            applied("a\r\nb\r\n", &[("a\nb", "c")]).as_deref(),
            Ok("c\r\n")
        );
        assert_eq!(
            applied("ab\n", &[("a", "")]),
            Err(vec![Misfit {
                hunk: 1,
                why: Why::Absent
            }])
        );
    }

    #[test]
    fn a_hunk_that_is_given_twice_counts_once() {
        let adds = ("b\n", "b\nc\n");
        assert_eq!(applied("a\nb\n", &[adds, adds]).as_deref(), Ok("a\nb\nc\n"));
        assert_eq!(
            applied("a\nb\n", &[adds, ("a\n", "A\n"), adds, ("c\n", "C\n")]).as_deref(),
            Ok("A\nb\nC\n")
        );
        let wrong = applied("a\n", &[("a\n", "b\n"), ("a\n", "b\n"), ("x\n", "")]);
        assert_eq!(
            wrong,
            Err(vec![Misfit {
                hunk: 3,
                why: Why::Absent
            }])
        );
    }
}
