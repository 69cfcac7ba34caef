//! Changes in the form of another tool. None is ever guessed at: all are refused.

use memchr::memmem;

use crate::Span;
use crate::edit::mark::{Mark, next_mark};
use crate::span::slice;

/// The first line of what `apply_patch` takes.
const PATCH: &str = "*** Begin Patch";

/// The first line of a change anywhere in `text`.
pub(crate) fn anywhere(text: &str) -> Option<Span> {
    let begins_diff = |line: &Span| is_diff(slice(text, &(line.start..text.len())));
    unmistakable(text).or_else(|| lines(text).find(begins_diff))
}

/// The first line of a change in a form that nobody quotes in prose: any but a diff.
pub(crate) fn unmistakable(text: &str) -> Option<Span> {
    let changes = [hunk(text), patch(text)].into_iter().flatten();
    changes.min_by_key(|line| line.start)
}

/// The first line of a change that stands in place of the new content of a whole file. `old` gives its present content,
/// which is read only in doubt: a file that is such a change already may be one again.
pub fn in_place_of_a_file(path: &str, new: &str, old: impl FnOnce() -> String) -> Option<Span> {
    let ends = |endings: &[&str]| {
        let path = path.to_ascii_lowercase();
        endings.iter().any(|ending| path.ends_with(ending))
    };
    let quotes_hunks = || ends(&[".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc"]);
    let of = |text: &str| begins(text).or_else(|| hunk(text).filter(|_| !quotes_hunks()));
    let found = of(new).filter(|_| !ends(&[".diff", ".patch", ".rej"]))?;
    of(&old()).is_none().then_some(found)
}

/// The first line of a text that begins with a change, but for a Markdown fence.
fn begins(text: &str) -> Option<Span> {
    let first = lines(text).find(|line| !is_around(slice(text, line)))?;
    let rest = slice(text, &(first.start..text.len()));
    let is_change = is_diff(rest) || unmistakable(rest).is_some_and(|line| line.start == 0);
    is_change.then_some(first)
}

/// An empty line, or one of a Markdown fence.
pub(crate) fn is_around(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with("```")
}

/// Each line without the white space at its end.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Span> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        start..start + line.trim_end().len()
    })
}

fn patch(text: &str) -> Option<Span> {
    let is_at_start = |at: &usize| *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n');
    let at = memmem::find_iter(text.as_bytes(), PATCH).find(is_at_start)?;
    Some(at..at + PATCH.len())
}

/// The first mark of a hunk that has all three.
fn hunk(text: &str) -> Option<Span> {
    let mut at = 0;
    let (mut opening, mut wanted) = (None, Mark::Search);
    while let Some(found) = next_mark(text, at) {
        at = found.line.end;
        (opening, wanted) = match (found.mark, wanted) {
            (Mark::Search, _) => (Some(found.span), Mark::Divider),
            (Mark::Divider, Mark::Divider) => (opening, Mark::Replace),
            (Mark::Replace, Mark::Replace) => return opening,
            (Mark::Divider | Mark::Replace, _) => (opening, wanted),
        };
    }
    None
}

/// Whether a text begins with a header of a diff.
fn is_diff(text: &str) -> bool {
    let mut lines = text.lines();
    let [first, second] = [lines.next(), lines.next()].map(Option::unwrap_or_default);
    let is_range = first
        .strip_prefix("@@ -")
        .is_some_and(|range| range.starts_with(|c: char| c.is_ascii_digit()));
    first.starts_with("diff --git ")
        || first.starts_with("--- ") && second.starts_with("+++ ")
        || is_range && first.split(' ').skip(2).any(|word| word == "@@")
}
