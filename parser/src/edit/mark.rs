//! The words and marks of edit blocks: their spelling, the grammar of a mark, and a forward scan that finds the marks.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use memchr::memchr;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while1};
use nom::combinator::{eof, rest, verify};
use nom::error::Error;
use nom::sequence::terminated;
use nom::{IResult, Parser};

use crate::Span;

/// The word before the path that opens an edit block.
pub const EDIT: &str = "edit";
/// The sign of the first mark of a hunk, of the second, and of the last.
const SIGNS: [char; 3] = ['<', '=', '>'];
/// The word after the first mark.
const SEARCH: &str = "SEARCH";
/// The word after the last mark.
const REPLACE: &str = "REPLACE";
/// The length of a mark as it is taught.
const PLAIN: usize = 7;
/// The length of the shortest mark that is read.
const SHORTEST: usize = 5;

/// The marks of a plain hunk, in their order.
#[must_use]
pub fn marks() -> [String; 3] {
    let [search, divider, replace] = SIGNS.map(|sign| sign.to_string().repeat(PLAIN));
    [search + " " + SEARCH, divider, replace + " " + REPLACE]
}

/// The path of `edit PATH`, the text after a fence; `None` if it is not an edit.
pub(crate) fn path(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(EDIT)?;
    rest.starts_with(char::is_whitespace)
        .then(|| rest.trim_start())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Search,
    Divider,
    Replace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MarkLine {
    pub(crate) mark: Mark,
    /// How many signs it has.
    pub(super) length: usize,
    /// Without the white space at its end.
    pub(crate) span: Span,
    /// The whole line, newline included.
    pub(crate) line: Span,
}

/// A line without trailing white space:
///
/// mark = 5*`<` ` SEARCH` remark? / 5*`=` / 5*`>` ` REPLACE` remark?
fn mark(line: &str) -> IResult<&str, (Mark, usize)> {
    let [opens, divides, closes] = SIGNS.map(signs);
    let search = terminated(opens, (tag(" "), tag(SEARCH), remark));
    let divider = terminated(divides, eof);
    let replace = terminated(closes, (tag(" "), tag(REPLACE), remark));
    alt((
        search.map(|length| (Mark::Search, length)),
        divider.map(|length| (Mark::Divider, length)),
        replace.map(|length| (Mark::Replace, length)),
    ))
    .parse(line)
}

/// remark = (neither a letter nor a digit) text; the path of the file, for example
fn remark(line: &str) -> IResult<&str, &str> {
    verify(rest, |text: &str| !text.starts_with(char::is_alphanumeric)).parse(line)
}

fn signs<'t>(sign: char) -> impl Parser<&'t str, Output = usize, Error = Error<&'t str>> {
    verify(take_while1(move |c| c == sign).map(str::len), |&length| {
        length >= SHORTEST
    })
}

/// The first mark at or after `from`, which must be the beginning of a line.
pub(crate) fn next_mark(content: &str, from: usize) -> Option<MarkLine> {
    let mut at = from;
    loop {
        let run = next_run(content.as_bytes(), at)?;
        let tail = content.get(run..)?;
        let length = memchr(b'\n', tail.as_bytes()).map_or(tail.len(), |newline| newline + 1);
        at = run + length;
        let is_at_start = run == 0 || content.as_bytes().get(run - 1) == Some(&b'\n');
        let said = tail.get(..length)?.trim_end();
        if let Some((_, (mark, length))) = mark(said).ok().filter(|_| is_at_start) {
            return Some(MarkLine {
                mark,
                length,
                span: run..run + said.len(),
                line: run..at,
            });
        }
    }
}

/// Searches for all three shortest runs at once with vector instructions; `None` on machines without them.
static RUNS: LazyLock<Option<Searcher>> =
    LazyLock::new(|| Searcher::new(SIGNS.map(|sign| sign.to_string().repeat(SHORTEST))));

/// The start of the first run of at least five equal signs at or after `from`, or a place inside of it if
/// `from` is.
fn next_run(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let is_run = |run: &[u8]| {
        SIGNS
            .iter()
            .any(|sign| run.iter().all(|byte| char::from(*byte) == *sign))
    };
    if rest.get(..SHORTEST).is_some_and(is_run) {
        return Some(from);
    }
    match RUNS.as_ref() {
        Some(runs) => runs
            .find_in(bytes, (from..bytes.len()).into())
            .map(|found| found.start()),
        None => rest
            .windows(SHORTEST)
            .position(is_run)
            .map(|found| from + found),
    }
}
