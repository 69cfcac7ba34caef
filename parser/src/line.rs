//! Marker lines: the grammar of a single line, and a forward scan that finds all of them.

use memchr::memchr;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::combinator::{eof, rest, verify};
use nom::error::Error;
use nom::sequence::{preceded, terminated};
use nom::{IResult, Parser};

use crate::Span;
use crate::edit::mark;
use crate::fence::kind::{DELETE, END, Kind, PLAIN, START};
use crate::fence::name::{NameFault, check_name};
use crate::scan::next_run;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker<'t> {
    pub(crate) kind: Kind,
    /// How many sigils the fence has.
    pub(crate) length: usize,
    pub(crate) role: Role<'t>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role<'t> {
    /// A path after carets; `start` after the other fences.
    Open(&'t str),
    End,
    Delete,
    /// Carets and nothing else.
    Bare,
    /// `start` or `end` of a thought with more text on the same line.
    Crowded {
        ends: bool,
        /// Whether `start` or `end` is a word of its own, unlike in `started`.
        whole_word: bool,
    },
}

/// A line from its first sigil on, without trailing white space:
///
/// marker = file-marker / user-marker / debug-marker / no-change-marker
fn marker(line: &str) -> IResult<&str, Marker<'_>> {
    alt((
        file_marker,
        thought_marker(Kind::User),
        thought_marker(Kind::Debug),
        thought_marker(Kind::NoChange),
    ))
    .parse(line)
}

/// file-marker = fence blanks (`end` / `delete` / more carets / path)?
fn file_marker(line: &str) -> IResult<&str, Marker<'_>> {
    let role = rest.map(|word: &str| match word {
        END => Role::End,
        DELETE => Role::Delete,
        carets if carets.chars().all(|c| c == Kind::File.sigil() || is_blank(c)) => Role::Bare,
        path => Role::Open(path),
    });
    (fence(Kind::File), preceded(blanks, role))
        .map(|(length, role)| Marker { kind: Kind::File, length, role })
        .parse(line)
}

/// thought-marker = fence blanks (`start` / `end`) text?
fn thought_marker<'t>(kind: Kind) -> impl Parser<&'t str, Output = Marker<'t>, Error = Error<&'t str>> {
    let role =
        (alt((tag(START), tag(END))), rest).map(|(word, text): (&str, &str)| match text.chars().next() {
            None if word == END => Role::End,
            None => Role::Open(word),
            Some(next) => Role::Crowded { ends: word == END, whole_word: !is_of_word(next) },
        });
    (fence(kind), preceded(blanks, role)).map(move |(length, role)| Marker { kind, length, role })
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// glued-end = fence blanks `end` blanks (newline / end of text)
fn glued_end(input: &str) -> IResult<&str, (Kind, usize)> {
    let kind = |kind: Kind| fence(kind).map(move |length| (kind, length));
    let kinds = alt((kind(Kind::File), kind(Kind::User), kind(Kind::Debug), kind(Kind::NoChange)));
    terminated(kinds, (blanks, tag(END), blanks, alt((eof, tag("\n"))))).parse(input)
}

/// fence = 3*`^` / 3*`&` / 3*`%` / 3*`$`
fn fence<'t>(kind: Kind) -> impl Parser<&'t str, Output = usize, Error = Error<&'t str>> {
    let run = take_while1(move |c| c == kind.sigil());
    verify(run.map(str::len), |&length| length >= PLAIN)
}

/// blanks = any Unicode white space except the newline, or nothing
fn blanks(input: &str) -> IResult<&str, &str> {
    take_while(is_blank).parse(input)
}

fn is_blank(c: char) -> bool {
    c != '\n' && c.is_whitespace()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MarkerLine<'t> {
    pub(crate) marker: Marker<'t>,
    /// From the first sigil to the end of the word.
    pub(crate) span: Span,
    /// The whole line, including leading white space and the newline.
    pub(crate) line: Span,
    /// There is text before it on its line, so it is content, whatever it says.
    pub(crate) glued: bool,
}

impl MarkerLine<'_> {
    /// Outside blocks, such a line underlines something, as compilers do: carets alone, or indented
    /// carets followed by two or more words.
    ///
    /// Carets with a single word always open a block, and neither `^^^edit src/a.rs` nor
    /// `^^^delete src/old.rs` is ever prose:
    /// otherwise half of a reply could pass for prose that surrounds the rest.
    pub(crate) fn is_underline(&self) -> bool {
        match self.marker.role {
            Role::Bare => true,
            Role::Open(text) if self.marker.kind == Kind::File => {
                let is_indented = self.span.start > self.line.start;
                let is_attached = self.span.len() == self.marker.length + text.len();
                let is_word = mark::path(text).is_some() || check_name(text) == Err(NameFault::Reserved);
                let is_word_of_fences = is_attached && is_word;
                is_indented && text.contains(is_blank) && !is_word_of_fences
            }
            Role::Open(_) | Role::End | Role::Delete | Role::Crowded { .. } => false,
        }
    }
}

/// Every marker line of a text in order, found in one pass. Includes lines that end in `^^^end`,
/// marked as `glued`.
#[derive(Debug, Clone)]
pub(crate) struct MarkerLines<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> MarkerLines<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self::starting(text, 0)
    }

    /// Starts at `at`, which must be the beginning of a line.
    pub(crate) fn starting(text: &'t str, at: usize) -> Self {
        Self { text, at }
    }
}

impl<'t> Iterator for MarkerLines<'t> {
    type Item = MarkerLine<'t>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let at = next_run(self.text.as_bytes(), self.at)?;
            let found = match line_start(self.text, at) {
                Some(start) => self.read_line(start, at),
                None => self.read_glued(at),
            };
            if found.is_some() {
                return found;
            }
        }
    }
}

impl<'t> MarkerLines<'t> {
    /// Reads the line whose first sigil is at `at`, and moves past it.
    fn read_line(&mut self, start: usize, at: usize) -> Option<MarkerLine<'t>> {
        let tail = self.text.get(at..)?;
        let length = memchr(b'\n', tail.as_bytes()).map_or(tail.len(), |newline| newline + 1);
        self.at = at + length;
        let said = tail.get(..length)?.trim_end();
        let (_, marker) = marker(said).ok()?;
        Some(MarkerLine { marker, span: at..at + said.len(), line: start..self.at, glued: false })
    }

    /// Reads a run of sigils with text before it and moves past it. Does not search for the end of
    /// the line, because many runs may be on the same line.
    fn read_glued(&mut self, at: usize) -> Option<MarkerLine<'t>> {
        let tail = self.text.get(at..)?;
        let Ok((left, (kind, length))) = glued_end(tail) else {
            let run = tail.bytes().take_while(|&byte| Some(&byte) == tail.as_bytes().first()).count();
            self.at = at + run;
            return None;
        };
        self.at = self.text.len() - left.len();
        let said = self.text.get(at..self.at)?.trim_end().len();
        let marker = Marker { kind, length, role: Role::End };
        Some(MarkerLine { marker, span: at..at + said, line: at..self.at, glued: true })
    }
}

/// The beginning of the line, if there is only white space before the marker at `at`. A byte order
/// mark at the start of the text counts as white space.
fn line_start(text: &str, at: usize) -> Option<usize> {
    let head = text.get(..at)?;
    let head = if head.ends_with('\n') { head } else { head.trim_end_matches(is_blank) };
    (head.is_empty() || head.ends_with('\n') || head == "\u{feff}").then_some(head.len())
}

#[cfg(test)]
mod tests;
